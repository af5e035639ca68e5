import type { ToolCall } from "../core/call.ts";
import { isJsonArray, isJsonObject, type JsonValue } from "../core/json.ts";

/** Most characters of arguments that stand for a question. */
const MAX_LENGTH = 500;

/** Arguments within arguments count down to this depth. */
const MAX_DEPTH = 3;

/** What a call wants to know: its question, else the texts among its arguments. */
export function questionOf({ question, arguments: args }: ToolCall): string {
  if (question !== undefined && question.trim() !== "") return question;
  const texts: string[] = [];
  let room = MAX_LENGTH;
  const collect = (value: JsonValue, depth: number): void => {
    if (room <= 0 || depth > MAX_DEPTH) return;
    if (typeof value === "string") {
      texts.push(value.slice(0, room));
      room -= value.length + 1;
    } else if (isJsonArray(value)) for (const item of value) collect(item, depth + 1);
    else if (isJsonObject(value)) for (const item of Object.values(value)) collect(item, depth + 1);
  };
  collect(args, 0);
  return texts.join(" ");
}
