import type { CallContext, ToolCall, ToolEvent, TruncationMode, UpstreamEvent } from "./call.ts";
import type { JsonObject, JsonValue } from "./json.ts";
import type { KeepResult } from "./results.ts";

/** What a result is read as. `auto`: JSON where the answer says so. */
export type ResultFormat = "auto" | "json" | "text";

/** What becomes of a result that is too long. */
export const TRUNCATIONS = ["head", "tail", "head_tail", "error", "summary"] as const satisfies readonly (
  | TruncationMode
  | "error"
)[];

/** What becomes of characters that are not seen. */
export const HIDDEN_CHARACTERS = ["show", "keep"] as const;

/** The `result:` block of a declaration, defaults filled in. */
export interface ResultRules {
  readonly format: ResultFormat;
  /** Dotted path of the field that tells success. Absent: the upstream's status alone decides. */
  readonly successField: string | undefined;
  /** Compared by JSON equality: `0` is not `"0"`, unless `loose`. */
  readonly successValue: JsonValue;
  /** Compare scalars by their text: `0` is `"0"`. Absent: no. */
  readonly loose?: boolean | undefined;
  /** Dotted path of the upstream's words about what went wrong; without a success field, what stands there is a failure. */
  readonly errorField?: string | undefined;
  /** Dotted path of the payload. Absent: the whole answer. */
  readonly dataField: string | undefined;
  /** JMESPath that picks from the payload. Absent: all of it. */
  readonly select?: string | undefined;
  /** Which fields of the payload are given. Absent: all as they are. */
  readonly fields?: FieldRules | undefined;
  /** Text the payload is filled into. Absent: it is given as it is. */
  readonly template?: string | undefined;
  /** Most characters (Unicode code points) of the text, the mark included; infinite: no limit. */
  readonly maxLength: number;
  /** Most tokens of the text, estimated. Absent: no limit but `maxLength`. */
  readonly maxTokens?: number | undefined;
  /** `error`: an over-long result is a failure. */
  readonly truncation: TruncationMode | "error";
  /** Whether the whole of an over-long result may be kept for reading on. Absent: it may. */
  readonly handle?: boolean | undefined;
  /** What is masked besides the values of secrets. Absent: what has the shape of a credential. */
  readonly redact?: RedactRules | undefined;
  /** What becomes of characters that are not seen. Absent: they are shown. */
  readonly hiddenCharacters?: (typeof HIDDEN_CHARACTERS)[number] | undefined;
  /** When a stream is enough. Absent: never before its end or `maxLength`. */
  readonly earlyStop?: EarlyStopRules | undefined;
  /** Whether the content may be taken for more than data. Absent: `none`, and a result says so. */
  readonly trust?: Trust | undefined;
}

/** When a stream is enough: the first rule that holds ends the upstream's call. */
export interface EarlyStopRules {
  /** A regular expression: what matches first is the last of the text. */
  readonly match?: string | undefined;
  /** So many code points. */
  readonly maxLength?: number | undefined;
  /** So many tokens, estimated. */
  readonly maxTokens?: number | undefined;
}

/** How far content is trusted. `wrapped`: not at all, and its texts stand between lines that content cannot forge. */
export type Trust = "none" | "wrapped" | "full";

/** What is masked of a result, besides the values of the gateway's secrets, which always are. */
export interface RedactRules {
  /** Whatever has the shape of a well-known credential. */
  readonly tokens: boolean;
  /** Values of these fields of JSON, at any depth; names in a row are joined by dots. */
  readonly fields: readonly string[];
  /** What matches one of these regular expressions. */
  readonly patterns: readonly string[];
}

/** Which fields a result has. Names are dotted; lists are gone through. */
export interface FieldRules {
  /** These alone. Absent: all. */
  readonly keep?: readonly string[] | undefined;
  readonly drop?: readonly string[] | undefined;
  /** New names by dotted old ones. */
  readonly rename?: JsonObject | undefined;
}

/** What shaping one call's output takes from outside. */
export interface ShapeMeans {
  /** Keeps the whole of a result that is too long. Absent: nothing is kept. */
  readonly keep?: KeepResult | undefined;
  /** Whose call it is and which turn it belongs to, for budgets. Absent: there are none. */
  readonly context?: CallContext;
}

/** Makes a model-fit result. Two event types make a result that was not shaped and redacted a compile error. */
export interface ResultShaper {
  shape(events: AsyncIterable<UpstreamEvent>, call: ToolCall, means?: ShapeMeans): AsyncIterable<ToolEvent>;
}
