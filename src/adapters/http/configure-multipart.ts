import { isJsonObject, type JsonObject, type JsonValue, jsonPointer, ownValue } from "../../core/json.ts";
import { compileBody } from "../shared/body-template.ts";
import { holdsControl } from "../shared/header-rules.ts";
import { textOf } from "../shared/template-checker.ts";
import { parseBraces, type TextTemplate } from "../shared/text-template.ts";
import type { DeclarationChecker } from "./declaration-checker.ts";
import { isJson, isMediaType, parseMediaType } from "./media-type.ts";
import type { MultipartPart } from "./multipart-body.ts";

const KINDS = ["text", "json", "file"] as const;

/** Compiles `multipart`; its problems go to the checker. */
export function configureMultipart(checker: DeclarationChecker): readonly MultipartPart[] {
  const declared = ownValue(checker.keys, "multipart");
  if (!isJsonObject(declared)) return [];
  return Object.entries(declared).flatMap(([name, value]) => {
    const pointer = jsonPointer(["multipart", name]);
    if (name === "" || holdsControl(name)) checker.issue(pointer, "a part needs a name without control characters");
    return partOf(checker, { name, value, pointer });
  });
}

interface DeclaredPart {
  readonly name: string;
  readonly value: JsonValue;
  readonly pointer: string;
}

function partOf(checker: DeclarationChecker, { name, value, pointer }: DeclaredPart): MultipartPart[] {
  if (!isJsonObject(value)) return [textPart(checker, { name, text: textOf(value), pointer, contentType: undefined })];
  const kinds = KINDS.filter((kind) => Object.hasOwn(value, kind));
  const [kind] = kinds;
  if (kind === undefined || kinds.length > 1) {
    checker.issue(pointer, "a part is one of `text`, `json` and `file`");
    return [];
  }
  const idle = ["filename", "max_bytes"].filter((key) => kind !== "file" && Object.hasOwn(value, key));
  for (const key of idle) checker.issue(`${pointer}/${key}`, `has no effect on a part of kind ${kind}: remove it`);
  if (kind === "file") return [filePart(checker, { name, value, pointer })];
  const contentType = literalType(checker, value, pointer);
  if (kind === "json") return [jsonPart(checker, { name, value, pointer }, contentType)];
  return [textPart(checker, { name, text: textOf(ownValue(value, "text")), pointer: `${pointer}/text`, contentType })];
}

function textPart(
  checker: DeclarationChecker,
  part: {
    readonly name: string;
    readonly text: string;
    readonly pointer: string;
    readonly contentType: string | undefined;
  },
): MultipartPart {
  const { name, text, pointer, contentType } = part;
  const template = checker.template(parseBraces(text), text, pointer);
  checker.checkPair(template, pointer, "form");
  return { name, kind: "text", text: template, contentType };
}

function jsonPart(
  checker: DeclarationChecker,
  { name, value, pointer }: DeclaredPart & { readonly value: JsonObject },
  contentType = "application/json",
): MultipartPart {
  const root = `${pointer}/json`;
  if (!isJson(parseMediaType(contentType))) {
    checker.issue(`${pointer}/content_type`, `\`${contentType}\` is no JSON type; use \`text\` for other text`);
  }
  const template = compileBody(ownValue(value, "json") ?? null, {
    reference: (param, inside) => checker.name(param, root + inside, `$${param}`),
    problem: (text, inside) => checker.issue(root + inside, text),
  });
  return { name, kind: "json", template, contentType };
}

function filePart(
  checker: DeclarationChecker,
  { name, value, pointer }: DeclaredPart & { readonly value: JsonObject },
): MultipartPart {
  const text = textOf(ownValue(value, "file"));
  const [only, ...more] = checker.template(parseBraces(text), text, `${pointer}/file`);
  if (typeof only !== "object" || more.length > 0) {
    checker.issue(`${pointer}/file`, "takes one `{param}` alone: the parameter that holds the file's bytes as base64");
  } else checkEncoding(checker, only.param, `${pointer}/file`);
  const type = scalars(checker, value, "content_type", pointer);
  if (type?.every((part) => typeof part === "string") === true && !isMediaType(type.join(""))) {
    checker.issue(`${pointer}/content_type`, `\`${type.join("")}\` is no content type, such as image/png`);
  }
  const maxBytes = ownValue(value, "max_bytes");
  return {
    name,
    kind: "file",
    param: typeof only === "object" ? only.param : "",
    filename: scalars(checker, value, "filename", pointer),
    contentType: type,
    maxBytes: typeof maxBytes === "number" ? maxBytes : Number.POSITIVE_INFINITY,
  };
}

/** A model that is not told would send the file's text, or its path. */
function checkEncoding(checker: DeclarationChecker, param: string, pointer: string): void {
  const schema = ownValue(checker.params, param);
  if (schema === undefined) return;
  const isText = isJsonObject(schema) && [ownValue(schema, "type")].flat().includes("string");
  if (isText && ownValue(schema, "contentEncoding") === "base64") return;
  const mend = `write \`type: string\` and \`contentEncoding: base64\` in its declaration`;
  checker.issue(pointer, `parameter \`${param}\` is sent as a file, so it must be base64; ${mend}`);
}

function scalars(
  checker: DeclarationChecker,
  value: JsonObject,
  key: "filename" | "content_type",
  pointer: string,
): TextTemplate | undefined {
  const text = ownValue(value, key);
  if (typeof text !== "string") return undefined;
  const parts = checker.template(parseBraces(text), text, `${pointer}/${key}`);
  checker.checkScalars(parts, `${pointer}/${key}`, key === "filename" ? "a file name" : "a content type");
  if (holdsControl(text)) checker.issue(`${pointer}/${key}`, "holds a line break or control character");
  return parts;
}

function literalType(checker: DeclarationChecker, value: JsonObject, pointer: string): string | undefined {
  const type = ownValue(value, "content_type");
  if (typeof type !== "string") return undefined;
  if (!isMediaType(type)) {
    checker.issue(`${pointer}/content_type`, `\`${type}\` is no content type, such as text/csv`);
  }
  return type;
}
