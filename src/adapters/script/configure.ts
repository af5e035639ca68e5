import { basename, resolve } from "node:path";
import { TextDecoder } from "node:util";
import type { AdapterSettings, Configured } from "../../core/adapter.ts";
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue, jsonPointer, ownValue } from "../../core/json.ts";
import type { DeclaredTool } from "../../core/tool.ts";
import { compileBody } from "../shared/body-template.ts";
import { type EnvironmentEntry, inheritedEntries } from "../shared/launcher/inherited-environment.ts";
import { allowsNull } from "../shared/param-schema.ts";
import { TemplateChecker, textOf } from "../shared/template-checker.ts";
import { parseBraces, parseDollars, type TextTemplate } from "../shared/text-template.ts";
import { RESERVED_VARIABLE, secretRefsOf } from "./environment.ts";
import type { ArgumentGroup, CommandLine, InputTemplate, ScriptConfig, WorkerConfig } from "./script-config.ts";
import { compileShell } from "./shell-command.ts";

/** What scripts take from the gateway. */
export interface ScriptOptions {
  /** The gateway's environment. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Absolute path of the folder that a relative `cwd` begins at. */
  readonly folder: string;
  /** Whether a declaration may say `shell: true`. */
  readonly shell: boolean;
}

/** Reads the keys of one script declaration. */
class ScriptChecker extends TemplateChecker {
  protected override aboutVariables(): string {
    return "environment variables are never read here: what the program gets of them stands in `env` and `inherit_env`";
  }
}

/** Compiles the script keys of a declaration, or lists all that is wrong with them. Does no I/O. */
export function configureScript(
  keys: JsonObject,
  tool: DeclaredTool,
  settings: AdapterSettings,
  options: ScriptOptions,
): Configured<ScriptConfig> {
  const checker = new ScriptChecker(keys, tool);
  const cwd = textFor(checker, "cwd") ?? ".";
  const command = commandOf(checker, options);
  const input = inputOf(checker);
  const worker = workerOf(checker, command, input);
  checkParams(checker, input, worker);
  const config: ScriptConfig = {
    tool,
    settings,
    command,
    cwd: resolve(options.folder, cwd),
    env: environmentOf(checker, options),
    input,
    keepsNull: new Set(
      Object.keys(checker.params).filter((name) => allowsNull(ownValue(checker.params, name) ?? true)),
    ),
    allowDash: allowDashOf(checker),
    encoding: encodingOf(checker),
    successCodes: new Set(numbersOf(keys, "success_codes") ?? [0]),
    lines: linesOf(checker),
    worker,
    readOnly: tool.hints.readOnly === true,
    declared: keys,
  };
  const { issues, warnings } = checker;
  if (issues.length > 0) return { ok: false, issues };
  return {
    ok: true,
    config,
    warnings,
    readOnly: config.readOnly,
    upstream: `script:${tool.name}`,
    runsProgram: "`type: script`",
    secretRefs: secretRefsOf(config),
    inheritedEnv: inheritedBy(checker),
  };
}

function inheritedBy(checker: ScriptChecker): readonly string[] {
  const names = ownValue(checker.keys, "inherit_env");
  return isJsonArray(names) ? names.map(textOf) : [];
}

function commandOf(checker: ScriptChecker, { shell }: ScriptOptions): CommandLine {
  const text = textFor(checker, "command") ?? "";
  const groups = groupsOf(checker);
  if (ownValue(checker.keys, "shell") !== true) {
    for (const [mark, name = ""] of text.matchAll(/\{([^{}]+)\}/g)) {
      if (Object.hasOwn(checker.params, name))
        checker.issue("/command", `\`${mark}\` stands in the command, and no argument may choose the program`);
    }
    return { kind: "program", file: text, groups };
  }
  if (!shell) {
    const mend = "set `scripts.shell: allow` in gateway.yaml, or write the program into `command` and its `args`";
    checker.issue("/shell", `a shell is not allowed on this gateway; ${mend}`);
  }
  if (groups.length > 0) checker.issue("/args", "with `shell: true` the command line stands in `command` alone");
  return shellOf(checker, text);
}

function shellOf(checker: ScriptChecker, text: string): CommandLine {
  const parts = templateOf(checker, text, "/command");
  checker.checkScalars(parts, "/command", "a command line");
  checker.checkAlwaysGiven(parts, "/command", "a command line");
  const compiled = compileShell(parts);
  if (compiled.ok) return { kind: "shell", text: compiled.text, values: compiled.values };
  checker.issue("/command", compiled.problem);
  return { kind: "shell", text, values: [] };
}

function groupsOf(checker: ScriptChecker): readonly ArgumentGroup[] {
  const args = ownValue(checker.keys, "args");
  if (!isJsonArray(args)) return [];
  let operands = false;
  checkCode(checker, args);
  return args.map((entry, i) => {
    const group = isJsonArray(entry) ? entry : [entry];
    return group.map((item, j) => {
      const pointer = jsonPointer(isJsonArray(entry) ? ["args", i, j] : ["args", i]);
      const text = textOf(item);
      if (text.includes("\0")) checker.issue(pointer, "holds a NUL, which no argument can");
      const parts = templateOf(checker, text, pointer);
      const alone = parts.length === 1;
      checker.checkScalars(parts, pointer, alone ? "an argument" : "text in an argument", alone);
      const bare = !operands && typeof parts[0] === "object";
      if (text === "--") operands = true;
      return { parts, bare };
    });
  });
}

/** Programs that read an argument as code, and the option before it. */
const CODE_OPTIONS: readonly (readonly [program: RegExp, option: RegExp])[] = [
  [/^(ba|da|z|k|a|fi)?sh$/, /^-[a-z]*c$/],
  [/^python[\d.]*$/, /^-[A-Za-z]*c$/],
  [/^(node|bun|deno|perl|ruby|php|lua)[\d.]*$/, /^(-[a-z]*[eEpr]|--eval|--print|eval)$/],
];

/** An argument within code would be read as code, whatever stands around it. */
function checkCode(checker: ScriptChecker, args: readonly JsonValue[]): void {
  const program = basename(checker.text("command") ?? "");
  const option = CODE_OPTIONS.find(([name]) => name.test(program))?.[1];
  const entries = args.flatMap((entry, i) => [entry].flat().map((item) => ({ text: textOf(item), i })));
  for (const [at, { text }] of entries.entries()) {
    const code = entries[at + 1];
    if (option?.test(text) !== true || code === undefined) continue;
    const parsed = parseBraces(code.text);
    if (
      !parsed.ok ||
      !parsed.parts.some((part) => typeof part === "object" && Object.hasOwn(checker.params, part.param))
    )
      continue;
    const mend = "write it as an entry of its own after it, which the code takes from its arguments";
    checker.issue(
      jsonPointer(["args", code.i]),
      `\`${program} ${text}\` would read the argument in it as code; ${mend}`,
    );
  }
}

function templateOf(checker: ScriptChecker, text: string, pointer: string): TextTemplate {
  const parsed = parseBraces(text);
  if (!parsed.ok) {
    checker.issue(pointer, parsed.problem);
    return [];
  }
  checker.refer(parsed.parts, pointer);
  return parsed.parts;
}

function inputOf(checker: ScriptChecker): InputTemplate | undefined {
  const input = ownValue(checker.keys, "stdin");
  if (input === undefined || input === "arguments") return input === undefined ? undefined : { kind: "arguments" };
  if (typeof input !== "string") {
    const template = compileBody(input, {
      reference: (param, pointer) => checker.name(param, `/stdin${pointer}`, `$${param}`),
      problem: (text, pointer) => checker.issue(`/stdin${pointer}`, text),
    });
    return { kind: "json", template };
  }
  const parsed = parseDollars(input);
  if (!parsed.ok) {
    checker.issue("/stdin", parsed.problem);
    return undefined;
  }
  for (const part of parsed.parts) if (typeof part === "object") checker.name(part.param, "/stdin", `$${part.param}`);
  checker.checkScalars(parsed.parts, "/stdin", "a text");
  checker.checkAlwaysGiven(parsed.parts, "/stdin", "a text");
  return { kind: "text", parts: parsed.parts };
}

function workerOf(
  checker: ScriptChecker,
  command: CommandLine,
  input: InputTemplate | undefined,
): WorkerConfig | undefined {
  const worker = ownValue(checker.keys, "worker");
  if (!isJsonObject(worker)) return undefined;
  if (input !== undefined) checker.issue("/stdin", "a worker reads its calls there; remove `stdin`");
  const fixed = command.kind === "shell" ? command.values.length === 0 : checker.named.size === 0;
  if (!fixed) checker.issue("/worker", "a worker is started before its calls, so its command takes no `{param}`");
  for (const key of ["success_codes", "stream", "encoding"]) {
    if (ownValue(checker.keys, key) !== undefined)
      checker.issue(
        `/${key}`,
        "a worker answers in lines of JSON, in UTF-8, and its answers tell success; remove this key",
      );
  }
  const [processes, maxCalls] = ["processes", "max_calls"].map((key) => ownValue(worker, key));
  return {
    processes: typeof processes === "number" ? processes : 1,
    maxCalls: typeof maxCalls === "number" ? maxCalls : 1_000,
  };
}

/** An argument that reaches nobody would be a promise to the model that nobody keeps. */
function checkParams(checker: ScriptChecker, input: InputTemplate | undefined, worker: WorkerConfig | undefined): void {
  if (input?.kind === "arguments" || worker !== undefined) return;
  for (const name of Object.keys(checker.params)) {
    if (checker.named.has(name)) continue;
    const pointer = ownValue(checker.keys, "args") === undefined ? "/command" : "/args";
    checker.issue(
      pointer,
      `parameter \`${name}\` stands nowhere; write \`{${name}}\` in \`args\`, or \`stdin: arguments\``,
    );
  }
}

function environmentOf(checker: ScriptChecker, options: ScriptOptions): EnvironmentEntry[] {
  const declared = ownValue(checker.keys, "env");
  const inherited = inheritedEntries(options.environment, inheritedBy(checker));
  const own = Object.entries(isJsonObject(declared) ? declared : {}).map(([name, value]): EnvironmentEntry => {
    const pointer = jsonPointer(["env", name]);
    if (!/^[^=\0]+$/.test(name)) checker.issue(pointer, "is no name of an environment variable");
    if (RESERVED_VARIABLE.test(name))
      checker.issue(pointer, "is set by the gateway for each call; choose another name");
    if (isJsonObject(value)) return { name, secretRef: textOf(ownValue(value, "secret_ref")) };
    if (textOf(value).includes("\0")) checker.issue(pointer, "holds a NUL, which no variable can");
    return { name, value: textOf(value) };
  });
  return [...inherited.filter(({ name }) => own.every((entry) => entry.name !== name)), ...own];
}

function allowDashOf(checker: ScriptChecker): ReadonlySet<string> {
  const names = ownValue(checker.keys, "allow_dash");
  const allowed = (isJsonArray(names) ? names : []).map(textOf);
  for (const [i, name] of allowed.entries()) {
    if (!Object.hasOwn(checker.params, name))
      checker.issue(jsonPointer(["allow_dash", i]), `\`${name}\` is no parameter`);
  }
  return new Set(allowed);
}

function encodingOf(checker: ScriptChecker): string {
  const encoding = checker.text("encoding") ?? "utf-8";
  try {
    return new TextDecoder(encoding).encoding === "utf-8" ? "utf-8" : encoding.toLowerCase();
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    checker.issue("/encoding", `\`${encoding}\` is no encoding that is known, such as utf-8, gbk, utf-16 or latin1`);
    return "utf-8";
  }
}

function linesOf(checker: ScriptChecker): boolean {
  const mode = checker.text("stream");
  if (mode !== undefined && checker.tool.delivery !== "incremental")
    checker.issue("/stream", "only `delivery: incremental` passes output on as it comes; add it, or remove `stream`");
  return mode === "lines";
}

/** A text that the system takes. */
function textFor(checker: ScriptChecker, key: string): string | undefined {
  const text = checker.text(key);
  if (text?.includes("\0")) checker.issue(`/${key}`, "holds a NUL, which no path can");
  return text;
}

function numbersOf(keys: JsonObject, key: string): number[] | undefined {
  const list = ownValue(keys, key);
  return isJsonArray(list) ? list.map(Number) : undefined;
}
