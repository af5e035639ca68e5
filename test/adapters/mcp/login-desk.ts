import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type GatewayConfig, parseGatewayConfig } from "../../../src/config/gateway-config.ts";
import { systemClock } from "../../../src/core/clock.ts";
import type { JsonObject } from "../../../src/core/json.ts";
import type { LoginStore } from "../../../src/core/logins.ts";
import { type LoginFacts, openLogins } from "../../../src/logins.ts";
import { createEnvironmentSecrets } from "../../../src/secrets/environment-secrets.ts";
import { SecretMemory } from "../../../src/secrets/secret-memory.ts";
import { createFileLogins, loginsPlace } from "../../../src/stores/file-logins.ts";

/** What is declared, and where. */
export interface DeskOptions {
  /** The block `mcp`. */
  readonly mcp: JsonObject;
  readonly name?: string;
  /** gateway.yaml, beside the folders of its tools and its state. */
  readonly settings?: JsonObject;
  readonly environment?: Readonly<Record<string, string | undefined>>;
}

/** How a person logs in. */
export interface LoginWays {
  /** What the browser does with the address. Default: goes where it is sent. */
  readonly browse?: (address: string) => Promise<unknown>;
  readonly pasted?: Promise<string>;
  readonly signal?: AbortSignal;
}

/** A folder with a declared server and a place for logins, and a person who logs in. */
export interface LoginDesk extends AsyncDisposable {
  readonly folder: string;
  readonly config: GatewayConfig;
  /** As the gateway sees them. */
  readonly logins: LoginStore;
  /** What was said to the person. */
  readonly notes: readonly string[];
  /** Addresses that were to be opened. */
  readonly addresses: readonly string[];
  /** Logs in as `toolgate login` does. */
  logIn(ways?: LoginWays): Promise<LoginFacts>;
  logOut(): ReturnType<Awaited<ReturnType<typeof openLogins>>["logout"]>;
}

/** Makes one. */
export async function openLoginDesk(options: DeskOptions): Promise<LoginDesk> {
  const { mcp, name = "fake", settings = {}, environment = {} } = options;
  const folder = await mkdtemp(join(tmpdir(), "toolgate-login-"));
  await writeFile(join(folder, "server.json"), JSON.stringify({ name, type: "mcp", mcp }));
  const text = JSON.stringify({ tools: { folder: "." }, ...settings });
  await writeFile(join(folder, "gateway.yaml"), text);
  const outcome = parseGatewayConfig(text, { file: "gateway.yaml", folder });
  if (!outcome.ok) throw new Error(JSON.stringify(outcome.problems));
  const { config } = outcome;
  const secrets = createEnvironmentSecrets(environment, new SecretMemory());
  const notes: string[] = [];
  const addresses: string[] = [];
  return {
    folder,
    config,
    logins: createFileLogins({ ...loginsPlace(config.state), clock: systemClock, secrets }),
    notes,
    addresses,
    async logIn({ browse = followed, pasted, signal = new AbortController().signal } = {}) {
      await using logins = await openLogins({ config, environment });
      const person = {
        note: (note: string) => void notes.push(note),
        open: (address: string) => {
          addresses.push(address);
          browse(address).catch((error: unknown) => notes.push(String(error)));
        },
        ...(pasted === undefined ? {} : { pasted }),
      };
      return await logins.login(name, person, signal);
    },
    async logOut() {
      await using logins = await openLogins({ config, environment });
      return await logins.logout(name, new AbortController().signal);
    },
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

/** A browser without a window, whose person agrees to everything: it goes where it is sent, once. Gives the last page. */
export async function followed(address: string): Promise<Response> {
  return fetch(await redirectedTo(address));
}

/** Where an authorization server sends a browser. */
export async function redirectedTo(address: string): Promise<string> {
  const answer = await fetch(address, { redirect: "manual" });
  const location = answer.headers.get("location");
  if (location === null) throw new Error(`no redirect: HTTP ${answer.status}`);
  return location;
}
