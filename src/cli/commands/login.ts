import { once } from "node:events";
import { createInterface } from "node:readline";
import type { GatewayConfig } from "../../config/gateway-config.ts";
import { type ErrorReason, GatewayError } from "../../core/errors.ts";
import { linkSignals } from "../../core/signal.ts";
import { CliError } from "../cli-error.ts";
import { type CommandContext, writeJson } from "../command.ts";
import { durationWords } from "../durations.ts";
import { EXIT, type ExitCode } from "../exit-codes.ts";
import { readConfig } from "../gateway-settings.ts";
import type { LoginFacts } from "../logins.ts";
import { plain } from "../terminal.ts";

/** Which gateway's logins. */
export interface LoginPlace {
  readonly config?: string;
  readonly state?: string;
}

/** Options of `login`. */
export interface LoginOptions extends LoginPlace {
  /** The address is opened, not only printed. */
  readonly open?: boolean;
  /** The browser runs on another machine: the address that it ends at comes from stdin. */
  readonly paste?: boolean;
  /** How long the person may take. */
  readonly timeoutMs: number;
}

const EXITS: Partial<Record<ErrorReason, ExitCode>> = {
  TOOL_NOT_FOUND: EXIT.notFound,
  DECLARATION_INVALID: EXIT.refused,
  SECRET_MISSING: EXIT.denied,
  UPSTREAM_UNREACHABLE: EXIT.upstream,
};

/** Has a person log in at an MCP server, for the gateway. */
export async function login(server: string, options: LoginOptions, context: CommandContext): Promise<ExitCode> {
  const { err, json, signal } = context;
  const config = await configOf(options, context);
  using link = linkSignals(signal);
  const words = durationWords(options.timeoutMs);
  const late = setTimeout(
    () => link.abort(new CliError(EXIT.deadline, `nobody logged in within ${words}`)),
    options.timeoutMs,
  );
  const input = options.paste === true ? createInterface({ input: context.stdin }) : undefined;
  try {
    await using logins = await context.loadLogins(config);
    const facts = await logins.login(
      server,
      {
        open: (address) => {
          err.line(`Open this address in a browser to log in at ${plain(server)}:`);
          err.line();
          err.line(plain(address));
          err.line();
          if (options.paste === true)
            err.line("Then paste the address that the browser ends at, which it need not find:");
          if (options.open === true) context.openAddress(address);
        },
        note: (text) => err.line(`${err.paint("yellow", "note:")} ${plain(text)}`),
        ...(input === undefined ? {} : { pasted: firstLine(input, link.signal) }),
      },
      link.signal,
    );
    if (json) await writeJson(factsJson(facts), context);
    else printFacts(facts, context);
    return EXIT.ok;
  } catch (error) {
    throw asCliError(error, server);
  } finally {
    clearTimeout(late);
    input?.close();
  }
}

/** Forgets the login at a server, and gives its tokens back where that can be. */
export async function logout(server: string, options: LoginPlace, context: CommandContext): Promise<ExitCode> {
  try {
    await using logins = await context.loadLogins(await configOf(options, context));
    const done = await logins.logout(server, context.signal);
    if (done === undefined) {
      throw new CliError(EXIT.notFound, `nobody is logged in at "${plain(server)}"`, {
        mend: "Look at --config and --state: logins are kept in the gateway's state folder.",
      });
    }
    if (context.json) await writeJson({ server, ...done }, context);
    else {
      const end = done.revoked ? "its tokens are revoked" : "its tokens end by themselves";
      context.err.line(`logged out at ${plain(server)}: ${plain(done.issuer)}, ${end}`);
    }
    return EXIT.ok;
  } catch (error) {
    throw asCliError(error, server);
  }
}

async function configOf({ config, state }: LoginPlace, context: CommandContext): Promise<GatewayConfig> {
  const options = { ...(config === undefined ? {} : { config }), ...(state === undefined ? {} : { state }) };
  return (await readConfig(options, context.surroundings)).config;
}

function printFacts({ server, issuer, scopes, accessEndMs, renewable }: LoginFacts, { err }: CommandContext): void {
  const scope = scopes.length === 0 ? "" : `, for ${plain(scopes.join(" "))}`;
  err.line(`logged in at ${plain(server)}: ${plain(issuer)}${scope}`);
  err.line("A gateway that runs takes it over within a second.");
  if (renewable) return;
  const end = accessEndMs === undefined ? "When it ends" : `It ends at ${new Date(accessEndMs).toISOString()};`;
  err.line(`${err.paint("yellow", "note:")} ${end} somebody has to log in again: it cannot be renewed.`);
}

function factsJson({ server, issuer, resource, scopes, accessEndMs, renewable }: LoginFacts) {
  const end = accessEndMs === undefined ? {} : { accessEndTime: new Date(accessEndMs).toISOString() };
  return { server, issuer, resource, scopes, ...end, renewable };
}

/** A person's first line; never, where there is none. */
async function firstLine(input: ReturnType<typeof createInterface>, signal: AbortSignal): Promise<string> {
  const lines: readonly unknown[] = await once(input, "line", { signal }).catch(
    () => new Promise<never>(() => undefined),
  );
  return String(lines[0]);
}

function asCliError(error: unknown, server: string): unknown {
  if (!(error instanceof GatewayError)) return error;
  const mend =
    error.reason === "TOOL_NOT_FOUND"
      ? "Look at --config: the declarations are those of `tools.folder` in gateway.yaml."
      : `\`toolgate login ${server}\` begins anew; the login before it, if there was one, stays as it was.`;
  return new CliError(EXITS[error.reason] ?? EXIT.internal, error.message, { mend, cause: error });
}
