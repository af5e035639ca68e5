import { resolve } from "node:path";
import type { JsonValue } from "../core/json.ts";
import { isJsonArray } from "../core/json.ts";
import type { SecretHelper, SecretSettings } from "../core/secrets.ts";
import { duration, path, type Setting } from "./setting.ts";

const HOUR = 3_600_000;

/** Where secrets come from besides the environment, by dotted key. */
export const SECRET_SETTINGS = {
  "secrets.key_file": path(
    "File with lines `NAME=value`, relative to this file: a `.env` file. Only its owner may read it (mode 0600). Read again when it changes.",
  ),
  "secrets.folder": path(
    "Folder with a file for each secret, relative to this file: what Kubernetes and Docker mount. The name of the file is the reference. Read again when any of it changes.",
  ),
  "secrets.exec.command": {
    schema: {
      type: "array",
      minItems: 1,
      maxItems: 100,
      items: { type: "string", minLength: 1, pattern: "^[^\\u0000]*$" },
      description:
        "Program that prints a secret, with its arguments; the reference comes after them. Never a shell. Asked for what is neither in the environment nor in a file.",
      examples: [["vault-read", "--field", "value"]],
    },
  },
  "secrets.exec.timeout": duration("5s", [100, 60_000], "Longest run of that program."),
  "secrets.exec.cache": duration("5m", [1_000, 24 * HOUR], "How long what it printed is used again."),
} as const satisfies Readonly<Record<string, Setting>>;

/** Reads where secrets come from; undefined: from the environment alone. */
export function readSecrets(
  values: ReadonlyMap<string, JsonValue>,
  folder: string,
): { readonly secrets?: SecretSettings } {
  const file = (key: keyof typeof SECRET_SETTINGS): string | undefined => {
    const value = values.get(key);
    return typeof value === "string" ? resolve(folder, value) : undefined;
  };
  const settings = {
    keyFile: file("secrets.key_file"),
    folder: file("secrets.folder"),
    helper: helperOf(values, folder),
  };
  return Object.values(settings).every((value) => value === undefined) ? {} : { secrets: settings };
}

function helperOf(values: ReadonlyMap<string, JsonValue>, folder: string): SecretHelper | undefined {
  const value = values.get("secrets.exec.command");
  if (!isJsonArray(value)) return undefined;
  const [program = "", ...args] = value.filter((text) => typeof text === "string");
  return {
    // A name without a slash is looked up in PATH.
    command: [program.includes("/") ? resolve(folder, program) : program, ...args],
    timeoutMs: Number(values.get("secrets.exec.timeout")),
    cacheMs: Number(values.get("secrets.exec.cache")),
  };
}
