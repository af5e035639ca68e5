import type { JsonObject } from "../../core/json.ts";

/** How streamed output is cut. */
const STREAM_MODES = ["chunks", "lines"] as const;

const ARGUMENT: JsonObject = { type: "string" };

/** Keys of a script tool. */
export const SCRIPT_CONFIG_SCHEMA: JsonObject = {
  type: "object",
  required: ["command"],
  properties: {
    command: {
      type: "string",
      minLength: 1,
      description:
        "The program: a name that is looked up in PATH, or a path, which begins at `cwd` where it is relative. Fixed " +
        "text, never a shell; with `shell: true` a command line for `/bin/sh`, in which `{param}` stands for an argument.",
    },
    args: {
      type: "array",
      items: { anyOf: [ARGUMENT, { type: "array", minItems: 1, items: ARGUMENT }] },
      description:
        "Arguments of the program, each one entry of its argument list whatever it holds. `{param}` stands for an " +
        "argument, `{{` and `}}` are braces. An entry whose argument is absent is dropped; a list alone in an entry " +
        "becomes an entry for each of its values. Entries in a list of their own are dropped together.",
    },
    shell: {
      type: "boolean",
      default: false,
      description:
        "Whether `command` is a command line for `/bin/sh`. Needs `scripts.shell: allow` in gateway.yaml. Arguments " +
        "reach the shell as values and are never read as commands.",
    },
    cwd: {
      type: "string",
      minLength: 1,
      description: "Working folder of the program; a relative one begins at the watched folder, which is the default.",
    },
    env: {
      type: "object",
      additionalProperties: {
        type: ["string", "object"],
        required: ["secret_ref"],
        additionalProperties: false,
        properties: {
          secret_ref: {
            type: "string",
            minLength: 1,
            description: "Name of the gateway's environment variable whose value the program gets.",
          },
        },
      },
      description:
        "Variables of the program's environment by name: a text, or `{ secret_ref: NAME }` for a secret. Besides these " +
        "it gets PATH, HOME, USER, LOGNAME, SHELL, LANG, LANGUAGE, LC_*, TZ and TMPDIR of the gateway, and TOOLGATE_*.",
      examples: [{ REPORT_MODE: "fast", API_TOKEN: { secret_ref: "REPORT_API_TOKEN" } }],
    },
    inherit_env: {
      type: "array",
      uniqueItems: true,
      items: { type: "string", pattern: "^[^=\\u0000]+$" },
      description: "More variables of the gateway's environment that the program gets where they are set.",
    },
    stdin: {
      type: ["string", "object", "array"],
      description:
        "Standard input of the program: `arguments` for the call's arguments as a JSON object, a text, or a JSON map " +
        "or list. `$param` stands for an argument as in a body. Without it the program reads the end at once.",
    },
    encoding: {
      type: "string",
      minLength: 1,
      default: "utf-8",
      description: "Encoding of the program's output, such as `gbk`, `shift_jis`, `utf-16` or `latin1`.",
    },
    success_codes: {
      type: "array",
      minItems: 1,
      uniqueItems: true,
      items: { type: "integer", minimum: 0, maximum: 255 },
      default: [0],
      description: "Exit codes that tell success.",
    },
    allow_dash: {
      type: "array",
      uniqueItems: true,
      items: { type: "string" },
      description:
        "Parameters whose value may begin with `-` where the program could take it for an option. Others are refused " +
        "there, unless the declaration names the value in an `enum` or an entry `--` stands before.",
    },
    stream: {
      enum: [...STREAM_MODES],
      default: "chunks",
      description:
        "With `delivery: incremental`: output is passed on as it comes (`chunks`), or line by line (`lines`).",
    },
    worker: {
      type: "object",
      additionalProperties: false,
      description:
        "Keeps programs running that answer one call after the other, a line of JSON each way, instead of starting " +
        "one for each call.",
      properties: {
        processes: {
          type: "integer",
          minimum: 1,
          maximum: 64,
          default: 1,
          description: "Most programs at a time, each with one call at a time. They are started when they are needed.",
        },
        max_calls: {
          type: "integer",
          minimum: 1,
          maximum: 1_000_000,
          default: 1_000,
          description: "A program is replaced after this many calls.",
        },
      },
    },
  },
};
