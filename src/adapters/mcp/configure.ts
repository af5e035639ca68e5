import { resolve } from "node:path";
import type { AdapterSettings, Configured } from "../../core/adapter.ts";
import { parseDuration } from "../../core/durations.ts";
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue, jsonPointer, ownValue } from "../../core/json.ts";
import type { DeclaredTool } from "../../core/tool.ts";
import { inheritedEntries } from "../shared/launcher/inherited-environment.ts";
import { type NamedValue, namedValues } from "../shared/value-template.ts";
import { PROTOCOLS, STARTS } from "./config-schema.ts";
import { configureRemote } from "./configure-remote.ts";
import { McpChecker } from "./mcp-checker.ts";
import type { McpConfig, ProgramTarget, RemoteTarget, RestartRules, ServerTarget } from "./mcp-config.ts";
import { secretRefsOf } from "./mcp-config.ts";

/** What MCP servers take from the gateway. */
export interface McpSurroundings {
  /** The gateway's environment. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Absolute path of the folder that a relative `cwd` begins at. */
  readonly folder: string;
}

const DEFAULTS = { startMs: 30_000, firstMs: 1_000, maxMs: 60_000, attempts: 5 } as const;

/** Keys of the block that only one way of reaching a server has. */
const OF_PROGRAM = ["args", "cwd", "env", "inherit_env"] as const;
const OF_REMOTE = ["headers", "auth", "allow_private"] as const;

/** Compiles the keys of an MCP server, or lists all that is wrong with them. Does no I/O. */
export function configureMcp(
  keys: JsonObject,
  tool: DeclaredTool,
  settings: AdapterSettings,
  surroundings: McpSurroundings,
): Configured<McpConfig> {
  const block = ownValue(keys, "mcp");
  const checker = new McpChecker(block !== undefined && isJsonObject(block) ? block : {});
  const outerCwd = ownValue(keys, "cwd");
  if (outerCwd !== undefined && checker.has("cwd")) checker.issue("/cwd", "stands at the top of the declaration too");
  const target = targetOf(checker, outerCwd, settings, surroundings);
  const config: McpConfig = {
    tool,
    settings,
    target,
    protocol: PROTOCOLS.find((word) => word === checker.text("protocol")) ?? "auto",
    start: STARTS.find((word) => word === checker.text("start")) ?? "eager",
    startTimeoutMs: durationOf(checker, "start_timeout", 1) ?? DEFAULTS.startMs,
    idleTimeoutMs: durationOf(checker, "idle_timeout", 1),
    restart: restartOf(checker),
    declared: checker.block,
  };
  const { issues, warnings } = checker;
  if (issues.length > 0) return { ok: false, issues };
  const readOnly = tool.hints.readOnly === true;
  const upstream = target.kind === "program" ? `mcp:${tool.name}` : new URL(target.url).origin;
  return {
    ok: true,
    config,
    warnings,
    readOnly,
    upstream,
    alsoReaches: target.kind === "remote" ? tokenOrigins(target) : [],
    secretRefs: secretRefsOf(config),
    inheritedEnv: inheritedBy(checker),
    ...(target.kind === "program" ? { runsProgram: "an MCP server with `command`" } : {}),
  };
}

/** Who gives tokens, as far as the declaration says; else the server does, which is known itself. */
function tokenOrigins({ auth }: RemoteTarget): readonly string[] {
  if (auth?.kind !== "client_credentials") return [];
  return [auth.tokenUrl, auth.issuer].flatMap((url) => (url === undefined ? [] : [new URL(url).origin]));
}

function targetOf(
  checker: McpChecker,
  outerCwd: JsonValue | undefined,
  settings: AdapterSettings,
  surroundings: McpSurroundings,
): ServerTarget {
  const command = checker.text("command");
  const url = checker.text("url");
  if ((command === undefined) === (url === undefined)) {
    const what = command === undefined ? "has neither `command` nor `url`" : "has both `command` and `url`";
    checker.issue("", `${what}: a server is a program of this machine or a remote one; give one of them`);
  }
  checkKeys(checker, url !== undefined);
  if (url === undefined) return programOf(checker, command ?? "", outerCwd, surroundings);
  if (outerCwd !== undefined) checker.issue("/url", "a remote server has no working folder; remove `cwd`");
  return configureRemote(checker, url, settings);
}

/** Keys of the other way of reaching a server. */
function checkKeys(checker: McpChecker, remote: boolean): void {
  const [own, other] = remote ? ["url", "command"] : ["command", "url"];
  for (const key of remote ? OF_PROGRAM : OF_REMOTE) {
    if (checker.has(key)) checker.issue(`/${key}`, `is for a server with \`${other}\`; remove it`);
  }
  const transport = checker.text("transport") ?? "auto";
  if (transport === "auto" || (transport !== "stdio") === remote) return;
  const fit = remote ? "streamable_http and sse do" : "stdio does";
  checker.issue("/transport", `\`${transport}\` does not go with \`${own}\`; ${fit}`);
}

function programOf(
  checker: McpChecker,
  command: string,
  outerCwd: JsonValue | undefined,
  { environment, folder }: McpSurroundings,
): ProgramTarget {
  const cwd = typeof outerCwd === "string" ? outerCwd : (checker.text("cwd") ?? ".");
  if (cwd.includes("\0") || command.includes("\0")) checker.issue("/command", "holds a NUL, which no path can");
  const list = ownValue(checker.block, "args");
  const args = isJsonArray(list) ? list.filter((each) => typeof each === "string") : [];
  for (const [i, arg] of args.entries()) {
    const pointer = jsonPointer(["args", i]);
    if (arg.includes("\0")) checker.issue(pointer, "holds a NUL, which no argument can");
    if (/\$\{\w+\}/.test(arg)) {
      checker.issue(
        pointer,
        "variables are not filled in here: other users can read arguments; put the value into `env`",
      );
    }
  }
  const own = namedValues(checker, "env");
  for (const { name } of own) {
    if (!/^[^=\0]+$/.test(name)) checker.issue(jsonPointer(["env", name]), "is no name of an environment variable");
  }
  const inherited = inheritedEntries(environment, inheritedBy(checker)).flatMap((entry): NamedValue[] =>
    "value" in entry && !own.some(({ name }) => name === entry.name)
      ? [{ name: entry.name, value: [entry.value] }]
      : [],
  );
  return { kind: "program", command, args, cwd: resolve(folder, cwd), env: [...inherited, ...own] };
}

function inheritedBy(checker: McpChecker): readonly string[] {
  const names = ownValue(checker.block, "inherit_env");
  return isJsonArray(names) ? names.filter((each) => typeof each === "string") : [];
}

function restartOf(checker: McpChecker): RestartRules {
  const rules = checker.object("restart");
  const inner = new McpChecker(rules);
  const firstMs = durationOf(inner, "first", 1) ?? DEFAULTS.firstMs;
  const maxMs = durationOf(inner, "max", 1) ?? Math.max(DEFAULTS.maxMs, firstMs);
  const attempts = ownValue(rules, "attempts");
  for (const { pointer, message } of inner.issues) checker.issue(pointer.replace("/mcp", "/restart"), message);
  if (maxMs < firstMs) checker.issue("/restart/max", "is shorter than `first`");
  return { firstMs, maxMs, attempts: typeof attempts === "number" ? attempts : DEFAULTS.attempts };
}

function durationOf(checker: McpChecker, key: string, leastMs: number): number | undefined {
  const text = checker.text(key);
  const ms = text === undefined ? undefined : parseDuration(text);
  if (ms !== undefined && ms < leastMs) checker.issue(`/${key}`, `is ${text}; it must be longer than 0s`);
  return ms;
}
