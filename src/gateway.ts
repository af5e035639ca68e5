import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { createRunHelper } from "./adapters/shared/launcher/run-helper.ts";
import { createKeyFetch } from "./adapters/shared/network/key-fetch.ts";
import type { GatewayConfig } from "./config/gateway-config.ts";
import { LiveSettings, type Reconfigured } from "./config/live-settings.ts";
import { recordFolder } from "./config/record-settings.ts";
import { type Clock, systemClock } from "./core/clock.ts";
import { closeInTurn } from "./core/close-in-turn.ts";
import type { EgressRules } from "./core/egress.ts";
import { addressText, type ListenAddress } from "./core/listen-address.ts";
import type { Logger } from "./core/logger.ts";
import type { AuditTrail } from "./core/observation.ts";
import type { ToolListing } from "./core/registry.ts";
import type { SecretSettings } from "./core/secrets.ts";
import { VERSION } from "./core/version.ts";
import { composeWith, declarationReader, keepResults } from "./gateway-tools.ts";
import { apiKeyFile } from "./identity/api-key-file.ts";
import { createIdentity, type Identity } from "./identity/identity.ts";
import { type Observation, type ObservationOptions, openObservation } from "./observability/observation.ts";
import { createPipelineSteps } from "./pipeline/index.ts";
import { createSchemaChecker } from "./pipeline/schema-checker.ts";
import { createToolRegistry, type RegistryDeps } from "./registry/tool-registry.ts";
import { screenOf } from "./secrets/result-redactor.ts";
import type { Secrets } from "./secrets/secrets.ts";
import { createFrontDoor, type FrontDoorOptions } from "./service/front-door.ts";
import { KeptCalls } from "./service/kept-calls.ts";
import { WindowBudgets } from "./shaping/window-budget.ts";
import { createFileRegistrations } from "./stores/file-registrations.ts";
import { lockFolder } from "./stores/folder-lock.ts";
import { createSpillFiles } from "./stores/spill-files.ts";
import { createSqliteLedger } from "./stores/sqlite-ledger.ts";

/** Compiled argument checks kept at a time; the least recently used gives way. A check takes about 10 KiB. */
const MAX_COMPILED_SCHEMAS = 2_000;

/** What a gateway is made from. */
export interface GatewayOptions {
  readonly config: GatewayConfig;
  /** Where `secret_ref` looks a name up; its redactor masks what was looked up in results. */
  readonly secrets: Secrets;
  /** Has to mask with the redactor of the same secrets, as `createPinoLogger` and `withRedaction` do. */
  readonly logger: Logger;
  /** Default: the system's. */
  readonly clock?: Clock;
  /** Whether the faults of the configuration are put into calls, for rehearsals. Default false. */
  readonly injectFaults?: boolean;
  /**
   * Where proxies for upstreams (`HTTP_PROXY`, `HTTPS_PROXY`, `NO_PROXY`) and the few variables that scripts inherit
   * (`PATH`, `HOME` and their like) are taken from. Default: no proxies, and a standard `PATH`.
   */
  readonly environment?: Readonly<Record<string, string | undefined>>;
}

/** A gateway that serves. Disposing it is the same as stopping it. */
export interface Gateway extends AsyncDisposable {
  /**
   * Where clients reach it: `http://127.0.0.1:7433`, `https://…` with a certificate, or `unix:/…`. Has the real port where
   * the configuration says 0.
   */
  readonly url: string;
  /**
   * Takes over other settings while calls go on. What tools are made of (`defaults`, `groups`, `limits.response_bytes`)
   * is in force for calls that begin once the registry has read its declarations anew, within seconds; the rest needs
   * a new start, and stays as it is until then.
   */
  reconfigure(config: GatewayConfig): Promise<Reconfigured>;
  /** Stops gracefully: running calls go on for up to `shutdown.drain`, then everything is closed. Never rejects. */
  stop(): Promise<void>;
}

/**
 * Loads the tools, opens the port and serves. The one place that knows every part: all else gets what it needs by
 * argument.
 *
 * @throws GatewayError where the port cannot be opened, its certificate cannot be used or another gateway has the state
 * folder; a bad declaration or a dead upstream never keeps it from starting.
 */
export async function createGateway(options: GatewayOptions): Promise<Gateway> {
  const { config, logger, clock = systemClock } = options;
  const { source: secrets, redactor } = options.secrets;
  const checker = createSchemaChecker({ maxCompiled: MAX_COMPILED_SCHEMAS });
  const settings = new LiveSettings(config);
  const results = keepResults(options, clock);
  const listing = (): ToolListing => registry.whole();
  const sources = { listing, steps: () => steps, programs: () => reader.programs() };
  const seen = await openObservation({ ...observed(config), clock, redactor, logger, sources });
  const steps = createPipelineSteps({
    checker,
    attempts: seen.attempts,
    handles: results?.handles,
    faults: options.injectFaults === true ? () => settings.faults : undefined,
    changed: (affected) => registry.lookAgain(affected),
    rateLimit: () => settings.rateLimit,
  });
  const { prepare, ...reader } = declarationReader(options, settings, { steps, checker, results, clock });
  const budgets = new WindowBudgets(config.results.modelWindow, clock);
  const compose = composeWith(steps, { secrets: options.secrets, clock, results, budgets, watch: seen.watch });
  const takeSecrets = secretsTaker(options, clock);
  await takeSecrets(config);
  const identity = await openIdentity(options, settings, { clock, audit: seen.audit });
  const lock = await lockState(config, clock, logger);
  const store = createFileRegistrations(join(config.state.folder, "registrations"));
  const more = besideTools(identity, options.secrets, seen);
  const means = { clock, logger, secrets, store, compose, steps, ...reader, ...more };
  const registry = createToolRegistry({ ...means, ...toolRules(config, settings), tools: config.tools });
  const kept = keepCalls(config, { clock, logger });
  const face = { registry, kept, clock, logger, results: results?.reader, authenticate: identity.authenticate };
  const about = { version: VERSION, startedAtMs: clock.now() };
  const door = createFrontDoor({ ...face, ...about, ...portSettings(config), ...seen });
  const close = async (): Promise<void> => {
    seen.life("gateway-stop");
    await closeInTurn([door, kept, registry, store, results?.store, lock, ...steps, seen, options.secrets]);
  };
  const reconfigure = async (next: GatewayConfig): Promise<Reconfigured> => {
    await takeSecrets(next);
    await identity.take(next.identity);
    const changes = settings.take(next);
    seen.audit.note({ action: "settings-reload", outcome: "done", actor: "gateway.yaml", facts: { ...changes } });
    // Whatever has changed: the lines that origins name may be others.
    await registry.readAgain();
    return changes;
  };
  try {
    // The tools come first: a call that arrives while they load would be told that its tool does not exist.
    await prepare();
    await results?.store.start();
    await registry.start(new AbortController().signal);
    const address = await door.listen();
    door.setReady(true);
    seen.life("gateway-start");
    return { url: urlOf(address, config), reconfigure, stop: close, [Symbol.asyncDispose]: close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** What is on record, counted and traced. */
function observed(config: GatewayConfig): Pick<ObservationOptions, "records" | "telemetry" | "facts"> {
  const { gateway, session, audit, ...limits } = config.records;
  const facts = { listen: addressText(config.listen), drainMs: config.shutdown.drainMs };
  const records = { folder: recordFolder(config), keeps: { gateway, session, audit }, limits };
  return { records, telemetry: config.telemetry, facts };
}

type ToolRules = Pick<RegistryDeps, "registrars" | "tellsDenied" | "toolsets">;

/** Who may do what with tools, by the settings of the moment. */
function toolRules({ registration: { codeRoles, hostRoles } }: GatewayConfig, live: LiveSettings): ToolRules {
  const registrars = { code: codeRoles, hosts: hostRoles };
  return { registrars, tellsDenied: () => live.tellsDenied, toolsets: () => live.toolsets };
}

type PortSettings = Pick<
  FrontDoorOptions,
  "listen" | "tls" | "limits" | "keepalive" | "drainMs" | "reflection" | "allowedOrigins" | "registrationRoles"
>;

/** Opens the places of secrets that a configuration names. @throws GatewayError where one cannot be used. */
function secretsTaker(
  { secrets, logger, environment = {} }: GatewayOptions,
  clock: Clock,
): (config: GatewayConfig) => Promise<void> {
  const run = createRunHelper({ environment, cwd: "/" });
  const none = { keyFile: undefined, folder: undefined, helper: undefined };
  let taken: SecretSettings = none;
  return async ({ secrets: settings = none, defaults }) => {
    secrets.mask(defaults.result.redact?.patterns ?? []);
    // What was read and asked for stays where nothing is said anew.
    if (isDeepStrictEqual(settings, taken)) return;
    await secrets.take(settings, { clock, logger, run });
    taken = settings;
  };
}

/** Tells callers apart. @throws GatewayError where a file that this takes cannot be used. */
function openIdentity(
  { config, logger, environment = {} }: GatewayOptions,
  live: LiveSettings,
  deps: { readonly clock: Clock; readonly audit: AuditTrail },
): Promise<Identity> {
  const { identity: settings, state } = config;
  const egress = (): EgressRules | undefined => live.ofDeclarations.defaults.egress;
  const fetchKeys = createKeyFetch({ clock: deps.clock, environment, egress });
  return createIdentity({ settings, keyFile: apiKeyFile(state.folder), logger, fetchKeys, ...deps });
}

/** What the registry asks and tells others beside its tools. */
function besideTools(
  identity: Identity,
  secrets: Secrets,
  { denied }: Observation,
): Pick<RegistryDeps, "screen" | "examineMore" | "denied"> {
  return {
    screen: ({ redact }) => screenOf(redact, secrets),
    examineMore: (signal) => identity.examine(signal),
    denied,
  };
}

/** Keeps other gateways out of the state folder. @throws GatewayError STORE_FAILED. */
async function lockState({ state }: GatewayConfig, clock: Clock, logger: Logger): Promise<AsyncDisposable | undefined> {
  const lock = await lockFolder(state.folder, clock);
  if (lock === undefined) logger.warn("state-folder-not-writable", { folder: state.folder });
  return lock;
}

function urlOf(address: ListenAddress, { tls }: GatewayConfig): string {
  if ("path" in address) return addressText(address);
  return `${tls === undefined ? "http" : "https"}://${addressText(address)}`;
}

/** Where calls are kept that are more than one caller's or one connection's. */
function keepCalls(
  { state, ledger, resume }: GatewayConfig,
  deps: { readonly clock: Clock; readonly logger: Logger },
): KeptCalls {
  const store = createSqliteLedger({ file: join(state.folder, "ledger", "calls.db"), ...deps, ...ledger });
  const spill = createSpillFiles(join(state.folder, "streams"));
  return new KeptCalls({ store, spill, ...deps, resume });
}

/** What the configuration says of the port. */
function portSettings(config: GatewayConfig): PortSettings {
  const { listen, tls, limits, keepalive, shutdown, reflection, cors, registration } = config;
  return {
    listen,
    ...(tls === undefined ? {} : { tls }),
    limits,
    keepalive,
    drainMs: shutdown.drainMs,
    reflection,
    allowedOrigins: cors.allowedOrigins,
    registrationRoles: registration.roles,
  };
}
