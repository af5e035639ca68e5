import type { UpstreamResult } from "../core/call.ts";
import type { ResultRules } from "../core/shaper.ts";
import { followPath, parseFieldPath } from "./field-path.ts";
import { type Judge, missing } from "./success.ts";

/**
 * The data rule of a tool: a successful result becomes what `data_field` names, null included, or FIELD_MISSING. An
 * answer without any content has nothing to extract and stays a success.
 */
export function createExtract(tool: string, rules: ResultRules): Judge {
  const path = rules.dataField === undefined ? undefined : parseFieldPath(rules.dataField);
  if (path === undefined) return (result) => result;
  return (result): UpstreamResult => {
    if (result.failure !== undefined || result.needsInput !== undefined) return result;
    const { value, content, ...rest } = result;
    if (value === undefined) {
      return content.length === 0 ? result : { ...rest, content: [], failure: missing(tool, path, undefined, result) };
    }
    const got = followPath(value, path);
    // What the path names is the result; texts beside the answer say the rest of it, or the same.
    if (got.found) return { ...rest, content: content.filter((part) => part.type !== "text"), value: got.value };
    return { ...rest, content: [], failure: missing(tool, path, got, result) };
  };
}
