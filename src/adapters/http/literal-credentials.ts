import type { ConfigIssue } from "../../core/adapter.ts";
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue, jsonPointer, ownValue } from "../../core/json.ts";
import { isCredentialHeader, isCredentialName } from "./credential-names.ts";

/** A text of a declaration that looks like a credential. */
interface LiteralCredential {
  readonly pointer: string;
  /** Where it stands, for people. */
  readonly place: string;
  readonly value: string;
}

/** Credentials that a declaration spells out instead of naming their variable. */
export function literalCredentials(keys: JsonObject): readonly LiteralCredential[] {
  return [
    ...inEndpoint(keys),
    ...inMap(keys, "query"),
    ...inMap(keys, "form"),
    ...inMap(keys, "headers"),
    ...inBody(keys),
  ];
}

/** Notes that tell where a credential belongs. */
export function literalCredentialNotes(found: readonly LiteralCredential[]): ConfigIssue[] {
  return found.map(({ pointer, place }) => ({
    pointer,
    message: `${place} looks like a credential that is written out: put it into an environment variable, and name that in \`auth.secret_ref\``,
  }));
}

/** Whether a `{param}` template stands for one argument and nothing else. */
export function isOneParam(text: string): boolean {
  return /^\{[^{}]+\}$/.test(text);
}

/** Whether a `$param` template holds an argument. */
export function holdsReference(text: string): boolean {
  return /(?:^|[^$])(?:\$\$)*\$(?:\{|[\p{L}_])/u.test(text);
}

function holdsParam(text: string): boolean {
  return /\{[^{}]+\}/.test(text.replace(/\{\{|\}\}/g, ""));
}

function inEndpoint(keys: JsonObject): LiteralCredential[] {
  const endpoint = ownValue(keys, "endpoint");
  if (typeof endpoint !== "string" || !endpoint.includes("=")) return [];
  const [, query = ""] = endpoint.split(/[?#]/);
  return query.split("&").flatMap((pair) => {
    const [name = "", ...rest] = pair.split("=");
    return literal({ pointer: "/endpoint", place: `query parameter \`${name}\``, value: rest.join("=") }, () =>
      isCredentialName(name),
    );
  });
}

function inMap(keys: JsonObject, key: "query" | "form" | "headers"): LiteralCredential[] {
  const map = ownValue(keys, key);
  if (!isJsonObject(map)) return [];
  const isCredential = key === "headers" ? isCredentialHeader : isCredentialName;
  return Object.entries(map).flatMap(([name, value]) => {
    const text = typeof value === "string" ? value : "";
    const found = { pointer: jsonPointer([key, name]), place: `\`${key}.${name}\``, value: text };
    return literal(found, () => isCredential(name));
  });
}

function literal(found: LiteralCredential, isCredential: () => boolean): LiteralCredential[] {
  return found.value !== "" && isCredential() && !holdsParam(found.value) ? [found] : [];
}

function inBody(keys: JsonObject): LiteralCredential[] {
  return (["body", "request_body"] as const).flatMap((key) => inValue(ownValue(keys, key) ?? null, [key]));
}

function inValue(value: JsonValue, steps: readonly (string | number)[]): LiteralCredential[] {
  if (isJsonArray(value)) return value.flatMap((item, i) => inValue(item, [...steps, i]));
  if (!isJsonObject(value)) return [];
  return Object.entries(value).flatMap(([name, field]) => {
    const place = [...steps, name];
    if (typeof field !== "string") return inValue(field, place);
    const isLiteral = field !== "" && isCredentialName(name) && !holdsReference(field);
    return isLiteral ? [{ pointer: jsonPointer(place), place: `\`${place.join(".")}\``, value: field }] : [];
  });
}
