import type { JsonObject } from "../../core/json.ts";
import type { ApiKey, ApiKeys } from "../api-keys.ts";
import { CliError } from "../cli-error.ts";
import { type CommandContext, writeJson } from "../command.ts";
import { EXIT, type ExitCode } from "../exit-codes.ts";
import { readConfig } from "../gateway-settings.ts";
import { tableLines } from "../table.ts";
import { plain } from "../terminal.ts";

/** Which gateway's keys. */
export interface KeyPlace {
  readonly config?: string;
  readonly state?: string;
}

/** Options of `key create`. */
export interface KeyCreateOptions extends KeyPlace {
  readonly name: string;
  readonly roles: readonly string[];
  /** How long it is valid, in milliseconds; absent: until it is revoked. */
  readonly expiresMs?: number | undefined;
}

/** Makes a key and prints it: the only time it is shown. */
export async function createKey(options: KeyCreateOptions, context: CommandContext): Promise<ExitCode> {
  const { keys, apiKeys } = await keysOf(options, context);
  const { name, roles, expiresMs } = options;
  const createTimeMs = Date.now();
  const expireTimeMs = expiresMs === undefined ? undefined : createTimeMs + expiresMs;
  const { key, stored } = await keys.create({ name, roles, createTimeMs, expireTimeMs });
  if (context.json) await writeJson({ ...keyJson(stored, createTimeMs), key }, context);
  else {
    await context.out.write(`${key}\n`, context.signal);
    context.err.line(`key ${stored.id} of "${plain(name)}", ${rolesWords(roles)}, ${endWords(stored)}`);
    context.err.line("It is not shown again: keep it where secrets are kept.");
  }
  if (!apiKeys) context.err.line("No gateway takes it yet: set `identity: { api_keys: true }` in gateway.yaml.");
  return EXIT.ok;
}

/** Prints all keys, without what they are. */
export async function listKeys(options: KeyPlace, context: CommandContext): Promise<ExitCode> {
  const { keys } = await keysOf(options, context);
  const now = Date.now();
  const all = await keys.list();
  if (context.json) await writeJson({ keys: all.map((key) => keyJson(key, now)) }, context);
  else {
    const rows = all.map((key) => [
      key.id,
      plain(key.name),
      stateOf(key, now),
      plain(key.roles.join(",")),
      timeText(key.createTimeMs),
      key.expireTimeMs === undefined ? "never" : timeText(key.expireTimeMs),
    ]);
    for (const line of tableLines([["ID", "NAME", "STATE", "ROLES", "CREATED", "EXPIRES"], ...rows]))
      context.out.line(line);
  }
  return EXIT.ok;
}

/** Revokes a key, or all of a name. Gateways that run refuse it within a second. */
export async function revokeKeys(idOrName: string, options: KeyPlace, context: CommandContext): Promise<ExitCode> {
  const { keys } = await keysOf(options, context);
  const now = Date.now();
  const revoked = await keys.revoke(idOrName, now);
  if (revoked.length === 0) {
    throw new CliError(EXIT.notFound, `no key that is not revoked has the id or name "${idOrName}"`, {
      mend: "`toolgate key list` shows them.",
    });
  }
  if (context.json) await writeJson({ keys: revoked.map((key) => keyJson(key, now)) }, context);
  else for (const { id, name } of revoked) context.err.line(`key ${id} of "${plain(name)}" is revoked`);
  return EXIT.ok;
}

async function keysOf(
  { config, state }: KeyPlace,
  context: CommandContext,
): Promise<{ readonly keys: ApiKeys; readonly apiKeys: boolean }> {
  const options = { ...(config === undefined ? {} : { config }), ...(state === undefined ? {} : { state }) };
  const found = await readConfig(options, context.surroundings);
  return {
    keys: await context.loadApiKeys(found.config),
    apiKeys: found.config.identity?.apiKeys === true,
  };
}

function stateOf({ revokeTimeMs, expireTimeMs }: ApiKey, nowMs: number): "active" | "expired" | "revoked" {
  if (revokeTimeMs !== undefined) return "revoked";
  return expireTimeMs !== undefined && expireTimeMs <= nowMs ? "expired" : "active";
}

function keyJson(key: ApiKey, nowMs: number): JsonObject {
  return {
    id: key.id,
    name: key.name,
    state: stateOf(key, nowMs),
    roles: key.roles,
    createTime: timeText(key.createTimeMs),
    ...(key.expireTimeMs === undefined ? {} : { expireTime: timeText(key.expireTimeMs) }),
    ...(key.revokeTimeMs === undefined ? {} : { revokeTime: timeText(key.revokeTimeMs) }),
  };
}

function rolesWords(roles: readonly string[]): string {
  return roles.length === 0
    ? "without a role"
    : `with the role${roles.length > 1 ? "s" : ""} ${plain(roles.join(", "))}`;
}

function endWords({ expireTimeMs }: ApiKey): string {
  return expireTimeMs === undefined ? "valid until it is revoked" : `valid until ${timeText(expireTimeMs)}`;
}

function timeText(ms: number): string {
  return new Date(ms).toISOString();
}
