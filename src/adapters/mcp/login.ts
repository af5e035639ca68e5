import { createHash, randomBytes, randomUUID, timingSafeEqual } from "node:crypto";
import { lookup } from "node:dns";
import type { Clock } from "../../core/clock.ts";
import { GatewayError } from "../../core/errors.ts";
import { stringifyJson } from "../../core/json.ts";
import type { LoginClient, LoginStore, ServerLogin } from "../../core/logins.ts";
import type { SecretSource } from "../../core/secrets.ts";
import { linkSignals } from "../../core/signal.ts";
import { oneLine } from "../../core/text.ts";
import { EgressGuard } from "../shared/network/egress.ts";
import { type ChannelNetwork, HttpChannel, NotConnected } from "../shared/network/http-channel.ts";
import { type BearerChallenge, bearerChallenge, DiscoveryProblem } from "../shared/oauth-discovery.ts";
import { clientRequest, readTokenAnswer, type TokenAnswer } from "../shared/token-endpoint.ts";
import { clientFor } from "./client-registration.ts";
import { tokenClient } from "./login-client.ts";
import { findLoginServer, type LoginServer } from "./login-server.ts";
import type { DeclaredLogin, McpConfig, RemoteTarget } from "./mcp-config.ts";
import { PortTaken, type Redirect, RedirectListener } from "./redirect-listener.ts";
import { RemoteAccess } from "./remote-access.ts";

/** What a login is made with. */
export interface LoginMeans {
  readonly network: ChannelNetwork;
  readonly secrets: SecretSource;
  readonly clock: Clock;
  readonly logins: LoginStore;
}

/** The way to servers and to who gives their tokens, as a gateway in this environment has it. */
export function loginNetwork(environment: ChannelNetwork["environment"]): ChannelNetwork {
  return { lookup, environment };
}

/** The person who logs in. */
export interface LoginPerson {
  /** Has to open this address in a browser. */
  open(address: string): void;
  /** Is told what went on, one line. */
  note(text: string): void;
  /** Gives the address that the browser ended at, where it runs on another machine. */
  readonly pasted?: Promise<string>;
}

/** A server that is logged in at. */
interface LoginTarget {
  readonly server: string;
  readonly target: RemoteTarget;
  readonly auth: DeclaredLogin;
  /** Longest time for whatever does not wait for the person. */
  readonly limitMs: number;
  /** Opens connections to an origin. */
  open(origin: string): HttpChannel;
}

/**
 * Has a person log in at a server, and keeps what comes of it. Source: OAuth 2.1, authorization code with PKCE; RFC 8252;
 * RFC 8707; RFC 9207; MCP 2025-11-25, authorization.
 *
 * @throws GatewayError SECRET_MISSING where no login came of it, UPSTREAM_UNREACHABLE, STORE_FAILED; the signal's reason.
 */
export async function logIn(
  config: McpConfig,
  person: LoginPerson,
  means: LoginMeans,
  signal: AbortSignal,
): Promise<ServerLogin> {
  const at = loginTarget(config, means);
  try {
    // One that cannot be read is replaced.
    const before = await means.logins.read(at.server).catch(() => undefined);
    const found = await within(at, means, signal, async (limited) => {
      const challenge = await challengeOf(config, at, means, limited);
      const place = { server: new URL(at.target.url), issuer: at.auth.issuer, challenge, open: at.open };
      return { ...(await findLoginServer({ ...place, signal: limited })), challenge };
    });
    const known = before?.issuer === found.issuer && before.url === at.target.url ? before : undefined;
    const login = await run({ at, found, known, means, person }, signal);
    await means.logins.put(login);
    return login;
  } catch (error) {
    throw loginFailure(at.server, error, signal);
  }
}

/** A login that goes on. */
interface LoginRun {
  readonly at: LoginTarget;
  readonly found: LoginServer & { readonly challenge: BearerChallenge };
  /** The one before, at the same authorization server. */
  readonly known: ServerLogin | undefined;
  readonly means: LoginMeans;
  readonly person: LoginPerson;
}

async function run(login: LoginRun, signal: AbortSignal): Promise<ServerLogin> {
  const { at, found, known, means, person } = login;
  const nowMs = means.clock.now();
  const usable =
    known?.client.secretEndMs !== undefined && known.client.secretEndMs <= nowMs ? undefined : known?.client;
  await using listener = await listen(at.auth.redirectPort, usable);
  const scopes = scopesOf(login);
  const client = await within(at, means, signal, (limited) => {
    const ask = { auth: at.auth, found, before: usable, redirectUri: listener.uri, scopes, open: at.open };
    return clientFor({ ...ask, signal: limited });
  });
  const proof = { state: random(), verifier: random() };
  const resource = at.auth.resource ?? found.resource;
  person.open(addressFor({ found, client, scopes, resource, proof }));
  void person.pasted?.then((address) => {
    if (!listener.take(address)) person.note("what was pasted is not the address that the login ends at");
  });
  const redirect = await redirectOf(listener, proof.state, person, signal);
  try {
    const code = codeOf(redirect.params, found);
    const fields = {
      grant_type: "authorization_code",
      code,
      redirect_uri: client.redirectUri,
      code_verifier: proof.verifier,
      resource,
    };
    const answer = await within(at, means, signal, (limited) => exchange(login, client, fields, limited));
    redirect.answer(true, "You are logged in. This page can be closed.");
    const loginTimeMs = means.clock.now();
    return {
      id: randomUUID(),
      server: at.server,
      url: at.target.url,
      issuer: found.issuer,
      tokenUrl: found.tokenUrl.href,
      revocationUrl: found.revocationUrl?.href,
      resource,
      client,
      scopes: answer.scopes ?? scopes,
      wanted: [],
      accessToken: answer.accessToken,
      accessEndMs: answer.lifeMs === undefined ? undefined : loginTimeMs + answer.lifeMs,
      accessTimeMs: loginTimeMs,
      refreshToken: answer.refreshToken,
      loginTimeMs,
    };
  } catch (error) {
    redirect.answer(false, "The login failed. What went wrong stands where it was begun.");
    throw error;
  }
}

/** @throws GatewayError DECLARATION_INVALID where the server is not one to log in at. */
function loginTarget(
  { tool, target, settings, startTimeoutMs: limitMs }: McpConfig,
  { network, clock }: Pick<LoginMeans, "network" | "clock">,
): LoginTarget {
  if (target.kind !== "remote" || target.auth?.kind !== "oauth") {
    const text = `${tool.name}: nobody logs in at it; declare \`auth: { oauth: {} }\` in the block \`mcp\``;
    throw new GatewayError("DECLARATION_INVALID", text);
  }
  const guard = new EgressGuard(target.egress);
  const { connectMs } = settings.timeouts;
  const open = (origin: string): HttpChannel =>
    new HttpChannel({ ...network, guard, connectMs, clock, origin, maxConnections: 1 });
  return { server: tool.name, target, auth: target.auth, limitMs, open };
}

/** What the server says to who comes without a token. Empty: nothing. */
async function challengeOf(
  { settings }: McpConfig,
  { server, target }: LoginTarget,
  { network, secrets, clock }: LoginMeans,
  signal: AbortSignal,
): Promise<BearerChallenge> {
  const { connectMs } = settings.timeouts;
  const nobody = { ...target, auth: undefined };
  await using access = new RemoteAccess({
    server,
    target: nobody,
    network,
    secrets,
    clock,
    connectMs,
    maxConnections: 1,
  });
  const accept = "application/json, text/event-stream";
  const post = (method: string) => ({
    method: "POST" as const,
    headers: { accept, "content-type": "application/json" },
    body: stringifyJson({ jsonrpc: "2.0", id: 1, method, params: {} }),
  });
  // Some servers let everybody begin, and ask for a token later; older ones know the GET alone.
  const asked = [post("tools/list"), post("initialize"), { method: "GET" as const, headers: { accept } }];
  for (const request of asked) {
    const answer = await access.send({ ...request, signal });
    answer.drop();
    if (answer.status === 401 || answer.status === 403) return bearerChallenge(answer.header("www-authenticate"));
  }
  return bearerChallenge(undefined);
}

/** Where a client registered itself, it has to be sent back to the same port again. */
async function listen(declared: number | undefined, client: LoginClient | undefined): Promise<RedirectListener> {
  if (declared !== undefined) return RedirectListener.open(declared);
  if (client?.origin !== "registered") return RedirectListener.open(0);
  return RedirectListener.open(Number(new URL(client.redirectUri).port)).catch((error: unknown) => {
    if (error instanceof PortTaken) return RedirectListener.open(0);
    throw error;
  });
}

/** What is asked for: what is declared, else what the server wants, and what was there before. */
function scopesOf({ at, found, known }: LoginRun): readonly string[] {
  if (at.auth.scopes.length > 0) return at.auth.scopes;
  const named = (found.challenge.scope ?? "").split(" ").filter((scope) => scope !== "");
  const wanted = named.length > 0 ? named : found.scopes;
  const offline = found.offersOffline ? ["offline_access"] : [];
  return [...new Set([...wanted, ...(known?.scopes ?? []), ...(known?.wanted ?? []), ...offline])];
}

function addressFor(request: {
  readonly found: LoginServer;
  readonly client: LoginClient;
  readonly scopes: readonly string[];
  readonly resource: string;
  readonly proof: { readonly state: string; readonly verifier: string };
}): string {
  const { found, client, scopes, resource, proof } = request;
  const address = new URL(found.authorizationUrl);
  const fields = {
    response_type: "code",
    client_id: client.clientId,
    redirect_uri: client.redirectUri,
    state: proof.state,
    code_challenge: createHash("sha256").update(proof.verifier).digest("base64url"),
    code_challenge_method: "S256",
    resource,
    ...(scopes.length === 0 ? {} : { scope: scopes.join(" ") }),
  };
  for (const [name, value] of Object.entries(fields)) address.searchParams.set(name, value);
  // Source: OpenID Connect Core, section 11: some give no lasting token without being asked so.
  if (scopes.includes("offline_access")) address.searchParams.set("prompt", "consent");
  return address.href;
}

/** The redirect of this login: anybody can send a browser here. */
async function redirectOf(
  listener: RedirectListener,
  state: string,
  person: LoginPerson,
  signal: AbortSignal,
): Promise<Redirect> {
  for (;;) {
    const redirect = await listener.next(signal);
    const [given = "", ...more] = redirect.params.getAll("state");
    if (more.length === 0 && isSame(given, state)) return redirect;
    redirect.answer(false, "This is not the login that is waited for.");
    person.note(
      "a browser came back from another login (its `state` is not the one that was sent); it was turned away",
    );
  }
}

/** Takes the code out of a redirect. @throws DiscoveryProblem. Source: RFC 9207, section 2.4. */
function codeOf(params: URLSearchParams, { issuer, namesItself }: LoginServer): string {
  const one = (name: string): string | undefined => {
    const [value, ...more] = params.getAll(name);
    if (more.length > 0) throw new DiscoveryProblem(`the redirect has more than one \`${name}\``);
    return value;
  };
  const iss = one("iss");
  if (iss === undefined ? namesItself : iss !== issuer) {
    const what = iss === undefined ? "does not say who sent it" : "is of another issuer";
    throw new DiscoveryProblem(`the redirect ${what}, so that its code may be meant for somebody else`);
  }
  const error = one("error");
  if (error !== undefined) {
    const word = /^[a-z_]{1,64}$/.test(error) ? error : "an error";
    throw new DiscoveryProblem(`${new URL(issuer).origin} answered ${word}`);
  }
  const code = one("code");
  if (code === undefined || code === "") throw new DiscoveryProblem("the redirect has no code");
  return code;
}

async function exchange(
  { at, found, means }: LoginRun,
  client: LoginClient,
  fields: Readonly<Record<string, string>>,
  signal: AbortSignal,
): Promise<Extract<TokenAnswer, { readonly ok: true }>> {
  const { secrets, clock } = means;
  const identity = await tokenClient(
    { server: at.server, auth: at.auth, client, issuer: found.issuer, secrets },
    signal,
  );
  const request = clientRequest(fields, identity, clock.now());
  if (request === undefined) throw new DiscoveryProblem("`secret_ref` is no private key (RSA, EC or Ed25519, PEM)");
  await using channel = at.open(found.tokenUrl.origin);
  const target = found.tokenUrl.pathname + found.tokenUrl.search;
  const answer = await channel.send({ method: "POST", target, ...request, signal });
  const read = readTokenAnswer(answer.status, await answer.text());
  if (!read.ok) throw new DiscoveryProblem(`${found.tokenUrl.origin} took the code and gave nothing: ${read.why}`);
  secrets.remember(read.accessToken);
  if (read.refreshToken !== undefined) secrets.remember(read.refreshToken);
  return read;
}

/** Runs what does not wait for the person, within the time that a start of the server has. */
async function within<T>(
  { limitMs }: LoginTarget,
  { clock }: LoginMeans,
  signal: AbortSignal,
  task: (limited: AbortSignal) => Promise<T>,
): Promise<T> {
  using link = linkSignals(signal);
  using _timer = clock.after(limitMs, () => {
    link.abort(new DiscoveryProblem(`no answer within ${limitMs / 1_000} s (start_timeout)`));
  });
  return await task(link.signal);
}

function loginFailure(server: string, error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  if (error instanceof GatewayError) return error;
  if (error instanceof DiscoveryProblem || error instanceof PortTaken) {
    return new GatewayError("SECRET_MISSING", oneLine(`${server}: no login: ${error.message}`), {
      metadata: { tool: server },
      cause: error,
    });
  }
  const why = error instanceof NotConnected ? `no connection: ${error.message}` : "the exchange broke off";
  return new GatewayError("UPSTREAM_UNREACHABLE", oneLine(`${server}: no login: ${why}`), {
    metadata: { tool: server },
    cause: error,
  });
}

function isSame(given: string, expected: string): boolean {
  const [a, b] = [given, expected].map((text) => createHash("sha256").update(text).digest());
  return a !== undefined && b !== undefined && timingSafeEqual(a, b);
}

function random(): string {
  return randomBytes(32).toString("base64url");
}
