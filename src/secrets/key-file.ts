import { type FileHandle, open } from "node:fs/promises";
import type { Clock } from "../core/clock.ts";
import { GatewayError } from "../core/errors.ts";
import type { Logger } from "../core/logger.ts";
import { type SecretProvider, setValue } from "./secret-provider.ts";
import { WatchedFile } from "./watched-file.ts";

/** Most bytes of a file. */
const MAX_BYTES = 1024 * 1024;

/** Rights of anybody but the owner. */
const OTHERS = 0o077;

const NAME = /^[A-Za-z_][A-Za-z0-9_.-]{0,255}$/;

/** The secrets of a file, read again when it is another; one that cannot be used leaves the last good one in force. */
export class KeyFile implements SecretProvider {
  readonly #file: string;
  readonly #watched: WatchedFile;
  #values: ReadonlyMap<string, string> = new Map();

  constructor(file: string, { clock, logger }: { readonly clock: Clock; readonly logger: Logger }) {
    this.#file = file;
    this.#watched = new WatchedFile({
      file,
      clock,
      read: async () => {
        this.#values = await readKeyFile(file);
        logger.info("secrets-loaded", { file, secrets: this.#values.size });
      },
      failed: (error) => logger.error("secrets-rejected", { file, error, lastGoodServing: true }),
    });
  }

  mend(): string {
    return `put it into ${this.#file}`;
  }

  read(reference: string): string | undefined {
    return setValue(this.#values.get(reference));
  }

  start(): Promise<void> {
    return this.#watched.start();
  }

  look(): Promise<void> | undefined {
    return this.#watched.fresh();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#values = new Map();
  }
}

/** The secrets of a file by name. @throws GatewayError naming the mend, and nothing of what is in it. */
export async function readKeyFile(file: string): Promise<ReadonlyMap<string, string>> {
  await using handle = await openFile(file);
  const { mode, uid, size } = await handle.stat();
  // What is looked at is what is read: the file that is open.
  if (process.platform !== "win32") {
    if ((mode & OTHERS) !== 0) {
      const shown = (mode & 0o777).toString(8).padStart(4, "0");
      throw unusable(`secrets.key_file ${file} can be read or changed by others (mode ${shown}): chmod 600 ${file}`);
    }
    const self = process.getuid?.();
    if (uid !== 0 && self !== 0 && uid !== self) {
      throw unusable(`secrets.key_file ${file} belongs to another user (uid ${uid}): make it the gateway's own`);
    }
  }
  if (size > MAX_BYTES) throw unusable(`secrets.key_file ${file} has ${size} bytes; at most ${MAX_BYTES} are read`);
  const parsed = parseKeyFile(await handle.readFile("utf8"));
  if ("problem" in parsed) throw unusable(`secrets.key_file ${file}, line ${parsed.line}: ${parsed.problem}`);
  return parsed.values;
}

async function openFile(file: string): Promise<FileHandle> {
  try {
    return await open(file, "r");
  } catch (cause) {
    const text = `secrets.key_file ${file} cannot be read: write lines \`NAME=value\` there, readable by the gateway's user alone`;
    throw unusable(text, cause);
  }
}

type ParsedKeyFile =
  | { readonly values: ReadonlyMap<string, string> }
  | { readonly line: number; readonly problem: string };

/**
 * Reads lines `NAME=value`, as dotenv files have them: `export` before them, comments, and values in single quotes (as they
 * stand) or double ones (with `\n`, `\r`, `\t`, `\"` and `\\`). Variables are not filled in.
 */
export function parseKeyFile(text: string): ParsedKeyFile {
  const values = new Map<string, string>();
  for (const [i, raw] of text
    .replace(/^\ufeff/, "")
    .split(/\r?\n/)
    .entries()) {
    const line = raw.trim().replace(/^export\s+/, "");
    if (line === "" || line.startsWith("#")) continue;
    const at = line.indexOf("=");
    const name = line.slice(0, Math.max(at, 0)).trim();
    // Nothing of the line is shown: it may be a secret that stands there by itself.
    if (!NAME.test(name)) return { line: i + 1, problem: "is no `NAME=value`" };
    if (values.has(name)) return { line: i + 1, problem: `${name} stands there twice: remove one` };
    const value = valueOf(line.slice(at + 1).trim());
    if (value === undefined) return { line: i + 1, problem: `the quotes of ${name} do not end` };
    values.set(name, value);
  }
  return { values };
}

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t", '"': '"', "\\": "\\" };

function valueOf(text: string): string | undefined {
  const [quote = ""] = text;
  if (quote !== '"' && quote !== "'") return text.replace(/\s#.*$/, "").trimEnd();
  const quoted = quote === "'" ? /^'([^']*)'\s*(?:#.*)?$/ : /^"((?:[^"\\]|\\.)*)"\s*(?:#.*)?$/;
  const inner = quoted.exec(text)?.[1];
  if (inner === undefined || quote === "'") return inner;
  return inner.replace(/\\(.)/g, (whole, letter: string) => ESCAPES[letter] ?? whole);
}

function unusable(text: string, cause?: unknown): GatewayError {
  return new GatewayError("INTERNAL", text, { cause });
}
