import type { ToolCall, ToolEvent, TruncationMode, UpstreamEvent } from "./call.ts";
import type { JsonValue } from "./json.ts";

/** What a result is read as. `auto`: JSON where the answer says so. */
export type ResultFormat = "auto" | "json" | "text";

/** The `result:` block of a declaration, defaults filled in. */
export interface ResultRules {
  readonly format: ResultFormat;
  /** Dotted path of the field that tells success. Absent: the upstream's status alone decides. */
  readonly successField: string | undefined;
  /** Compared by JSON equality: `0` is not `"0"`. */
  readonly successValue: JsonValue;
  /** Dotted path of the payload. Absent: the whole answer. */
  readonly dataField: string | undefined;
  /** Most characters (Unicode code points) of the text, the mark included; infinite: no limit. */
  readonly maxLength: number;
  /** `error`: an over-long result is a failure. */
  readonly truncation: TruncationMode | "error";
}

/** Makes a model-fit result. Two event types make a result that was not shaped and redacted a compile error. */
export interface ResultShaper {
  shape(events: AsyncIterable<UpstreamEvent>, call: ToolCall): AsyncIterable<ToolEvent>;
}
