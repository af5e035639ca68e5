import { stringifyJson } from "../../core/json.ts";
import { type HandleValues, queryInvalid, type ResultStore } from "../../core/results.ts";
import { valueAt } from "./json-page.ts";
import { isJson, isText, jsonOf } from "./result-reader.ts";

/** Longest value that stands for a handle, in characters of its text. */
const MAX_VALUE_LENGTH = 1_000_000;

/** Finds what handles in arguments stand for. */
export function createHandleValues(store: ResultStore): HandleValues {
  return {
    async value(handle, pointer, principal, signal) {
      await using source = await store.open(handle, principal);
      signal.throwIfAborted();
      const { facts } = source;
      if (!isText(facts)) throw queryInvalid("handle", `names ${facts.mediaType}, which no argument can hold`);
      if (!facts.complete) throw queryInvalid("handle", "names a result of which only the beginning was kept");
      if (isJson(facts)) {
        const value = valueAt(await jsonOf(source), pointer, "handle");
        const length = (typeof value === "string" ? value : stringifyJson(value)).length;
        if (length > MAX_VALUE_LENGTH) throw tooLong(length, "add a JSON pointer to a part of it, such as #/items/0");
        return value;
      }
      if (pointer !== "") throw queryInvalid("handle", "has a JSON pointer, and the result is a text");
      if (facts.bytes > MAX_VALUE_LENGTH) throw tooLong(facts.bytes, "read the part that is needed and send that");
      return Buffer.from(await source.read(0, facts.bytes)).toString("utf8");
    },
  };
}

function tooLong(length: number, mend: string): Error {
  return queryInvalid(
    "handle",
    `names ${length} characters, more than the ${MAX_VALUE_LENGTH} of an argument: ${mend}`,
  );
}
