import { ownValue } from "../../core/json.ts";
import { compileBody } from "../shared/body-template.ts";
import { parseDollars } from "../shared/text-template.ts";
import type { HttpMethod } from "./config-schema.ts";
import { configureMultipart } from "./configure-multipart.ts";
import type { DeclarationChecker } from "./declaration-checker.ts";
import type { RequestBody, RestPlacement } from "./http-config.ts";
import { isHtml, isJson, isMediaType, isXml, parseMediaType } from "./media-type.ts";
import { unescapableParams } from "./text-body.ts";
import { compileQueryValue, encodePlain } from "./url-template.ts";

/** Keys that declare a body, of which one counts. */
const BODY_KEYS = ["body", "request_body", "form", "multipart"] as const;

const FORM_TYPE = "application/x-www-form-urlencoded";

/** Compiles what a declaration says of the request's body. */
export class BodyConfiguration {
  readonly #checker: DeclarationChecker;
  readonly #method: HttpMethod;
  /** `content_type` as declared. */
  readonly #declaredType: string | undefined;
  /** Key that declares the body. */
  readonly #key: (typeof BODY_KEYS)[number] | undefined;

  constructor(checker: DeclarationChecker, method: HttpMethod) {
    this.#checker = checker;
    this.#method = method;
    this.#declaredType = checker.text("content_type");
    this.#key = BODY_KEYS.find((key) => ownValue(checker.keys, key) !== undefined);
  }

  /** The body that is declared. */
  body(): RequestBody | undefined {
    this.#checkKeys();
    if (this.#key === undefined) return undefined;
    this.#checkMethod(`/${this.#key}`);
    if (this.#key === "form") return this.#form();
    if (this.#key === "multipart") return { kind: "multipart", parts: configureMultipart(this.#checker) };
    return this.#isJson() ? this.#json(this.#key) : this.#text(this.#key);
  }

  /** The content type of the request's body; a multipart one says it by itself. */
  contentType(body: RequestBody | undefined): string {
    if (body?.kind === "form") return FORM_TYPE;
    const type = this.#declaredType ?? "application/json";
    // Servers guess otherwise, each in its own way.
    return body?.kind === "text" && parseMediaType(type).charset === undefined ? `${type}; charset=utf-8` : type;
  }

  /** Where arguments go that no template names. */
  rest(body: RequestBody | undefined, unnamed: readonly string[]): RestPlacement {
    if (body !== undefined) {
      for (const name of unnamed) {
        const mend = this.#isForm()
          ? `\`{${name}}\` in the form or the URL`
          : `\`$${name}\` in the body or \`{${name}}\` in the URL`;
        this.#checker.issue(`/${this.#key ?? ""}`, `parameter \`${name}\` stands nowhere; write ${mend}`);
      }
      return "nowhere";
    }
    if (this.#sendsRest()) return "body";
    return "query";
  }

  #sendsRest(): boolean {
    return this.#method !== "GET" && this.#method !== "HEAD" && this.#method !== "DELETE";
  }

  #isForm(): boolean {
    return this.#key === "form" || this.#key === "multipart";
  }

  #isJson(): boolean {
    return this.#declaredType === undefined || isJson(parseMediaType(this.#declaredType));
  }

  #checkKeys(): void {
    const { keys } = this.#checker;
    if (this.#key === "body" && ownValue(keys, "request_body") !== undefined) {
      this.#checker.issue("/request_body", "`body` and `request_body` are the same key; set only one of them");
    }
    for (const other of ["form", "multipart"] as const) {
      if (this.#key === undefined || this.#key === other || ownValue(keys, other) === undefined) continue;
      this.#checker.issue(`/${other}`, `a request has one body; set either \`${this.#key}\` or \`${other}\``);
    }
    this.#checkType();
    this.#checkTypeHeader();
  }

  #checkType(): void {
    const type = this.#declaredType;
    if (type === undefined) return;
    const problem = this.#typeProblem(type);
    if (problem !== undefined) this.#checker.issue("/content_type", problem);
  }

  #typeProblem(type: string): string | undefined {
    if (!isMediaType(type)) return `\`${type}\` is no content type, such as application/xml`;
    const { name, charset } = parseMediaType(type);
    if (name === FORM_TYPE) return "a form is declared by `form`, and sets its content type itself";
    if (name.startsWith("multipart/"))
      return "a multipart form is declared by `multipart`, and sets its content type itself";
    if (charset !== undefined && charset.toLowerCase() !== "utf-8") return "bodies are sent in UTF-8 only";
    if (this.#isForm()) return "a form sets its content type itself; remove `content_type`";
    if (this.#key !== undefined) return undefined;
    if (!this.#sendsRest()) return "the request has no body that it could be the type of; add `body`";
    return this.#isJson() ? undefined : "a body of this type must be declared as a text; add `body`";
  }

  #checkTypeHeader(): void {
    const entry = this.#checker.entries("headers").find(([name]) => name.toLowerCase() === "content-type");
    if (entry === undefined) return;
    const [, text, pointer] = entry;
    if (this.#declaredType !== undefined) this.#checker.issue(pointer, "the content type is set by `content_type` too");
    else if (this.#isForm()) this.#checker.issue(pointer, "a form sets its content type itself");
    else if (!/json/i.test(text)) {
      const message =
        "bodies are sent as JSON, so the content type must be a JSON one; for a text body use `content_type`";
      this.#checker.issue(pointer, message);
    }
  }

  #checkMethod(pointer: string): void {
    if (this.#method === "HEAD") this.#checker.issue(pointer, "a HEAD request has no body");
    if (this.#method === "GET") {
      this.#checker.warn(pointer, "HTTP gives the body of a GET no meaning: some servers and proxies drop it");
    }
  }

  #form(): RequestBody {
    const pairs = this.#checker.entries("form").map(([name, text, pointer]) => {
      const parts = this.#checker.template(compileQueryValue(text), text, pointer);
      this.#checker.checkPair(parts, pointer, "form");
      return { name: encodePlain(name), parts };
    });
    return { kind: "form", pairs };
  }

  #json(key: "body" | "request_body"): RequestBody {
    const root = `/${key}`;
    const body = ownValue(this.#checker.keys, key) ?? null;
    const template = compileBody(body, {
      reference: (param, pointer) => this.#checker.name(param, root + pointer, `$${param}`),
      problem: (text, pointer) => this.#checker.issue(root + pointer, text),
    });
    if (typeof body === "string" && template.kind !== "reference") {
      const mend = "write a map or a list or one `$param` alone, or add a `content_type` such as text/plain";
      this.#checker.issue(root, `a JSON body is no text with parameters in it; ${mend}`);
    }
    return { kind: "json", template };
  }

  #text(key: "body" | "request_body"): RequestBody {
    const root = `/${key}`;
    const media = parseMediaType(this.#declaredType);
    const markup = isXml(media) || isHtml(media);
    const body = this.#checker.text(key);
    if (body === undefined) this.#checker.issue(root, `with content type ${media.name} the body must be a text`);
    const parsed = parseDollars(body ?? "");
    if (!parsed.ok) {
      this.#checker.issue(root, parsed.problem);
      return { kind: "text", parts: [], markup };
    }
    for (const part of parsed.parts)
      if (typeof part === "object") this.#checker.name(part.param, root, `$${part.param}`);
    this.#checker.checkScalars(parsed.parts, root, "a text body");
    this.#checker.checkAlwaysGiven(parsed.parts, root, "a text body");
    for (const param of markup ? unescapableParams(parsed.parts) : []) {
      this.#checker.issue(root, `\`$${param}\` stands in a CDATA section or comment, where it cannot be escaped`);
    }
    return { kind: "text", parts: parsed.parts, markup };
  }
}
