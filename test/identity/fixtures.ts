import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from "jose";
import { onTestFinished } from "vitest";
import { createKeyFetch, type KeyFetchOptions } from "../../src/adapters/shared/network/key-fetch.ts";
import type { Clock } from "../../src/core/clock.ts";
import { systemClock } from "../../src/core/clock.ts";
import { GatewayError } from "../../src/core/errors.ts";
import type { FetchKeys, HeaderReader, IdentitySettings, JwtIssuer, Peer } from "../../src/core/identity.ts";
import type { Principal } from "../../src/core/principal.ts";
import { changeApiKeys } from "../../src/identity/api-key-file.ts";
import { createKey, type NewKey } from "../../src/identity/api-keys.ts";
import { createIdentity, type Identity } from "../../src/identity/identity.ts";
import { createFakeClock, type FakeClock } from "../core/fake-clock.ts";
import { createLogRecorder } from "../registry/support.ts";

export const PEER: Peer = { address: "10.1.2.3", port: 1, encrypted: false };

export const NO_WAYS: IdentitySettings = {
  apiKeys: false,
  jwt: [],
  certificates: [],
  trustedHeader: undefined,
  anonymousRoles: undefined,
};

export const ISSUER: JwtIssuer = {
  name: "jwt",
  issuer: "https://idp.example/",
  audiences: ["toolgate"],
  jwks: { file: "" },
  algorithms: ["ES256"],
  clockSkewMs: 30_000,
  subjectClaim: "sub",
  rolesClaim: "roles",
  roleMap: undefined,
  roles: [],
};

export function headersOf(headers: Readonly<Record<string, string>>): HeaderReader {
  return { get: (name) => headers[name] ?? null };
}

/** An identity with a folder and a clock of its own. */
export interface IdentityFixture {
  readonly identity: Identity;
  readonly clock: FakeClock;
  readonly keyFile: string;
  readonly folder: string;
  readonly logger: ReturnType<typeof createLogRecorder>;
  /** Who calls with these headers; a word for why it is refused. */
  who(headers: Readonly<Record<string, string>>, peer?: Peer): Promise<Principal | string>;
  /** Makes a key and keeps it. */
  addKey(name: string, roles?: readonly string[], expireTimeMs?: number): Promise<NewKey>;
}

export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "toolgate-identity-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Asks issuers for their keys, as the gateway does. */
export function fetchKeysWith(options: Partial<KeyFetchOptions> = {}): FetchKeys {
  return createKeyFetch({ clock: systemClock, environment: {}, egress: () => undefined, ...options });
}

export async function identityOf(
  settings: Partial<IdentitySettings>,
  clock: FakeClock = createFakeClock(),
): Promise<IdentityFixture> {
  const folder = await temporaryFolder();
  const keyFile = join(folder, "api-keys.json");
  const logger = createLogRecorder();
  const identity = await createIdentity({
    settings: { ...NO_WAYS, ...settings },
    keyFile,
    clock,
    logger,
    fetchKeys: fetchKeysWith(),
  });
  return {
    identity,
    clock,
    keyFile,
    folder,
    logger,
    who: async (headers, peer = PEER) => {
      try {
        return await identity.authenticate(headersOf(headers), peer);
      } catch (error) {
        return GatewayError.from(error).reason;
      }
    },
    addKey: (name, roles = [], expireTimeMs?: number) => addKey(keyFile, name, roles, { clock, expireTimeMs }),
  };
}

export async function addKey(
  file: string,
  name: string,
  roles: readonly string[],
  { clock, expireTimeMs }: { readonly clock: Clock; readonly expireTimeMs?: number | undefined },
): Promise<NewKey> {
  const made = createKey({ name, roles, createTimeMs: clock.now(), expireTimeMs });
  await changeApiKeys(file, (keys) => [...keys, made.stored]);
  return made;
}

/** One that makes tokens. */
export interface TokenMaker {
  /** What its issuer publishes. */
  readonly jwks: string;
  sign(claims: JWTPayload, options?: { readonly expSeconds?: number }): Promise<string>;
}

export async function tokenMaker(kid = "k1", clock?: Clock): Promise<TokenMaker> {
  const { publicKey, privateKey } = await generateKeyPair("ES256");
  const jwk = { ...(await exportJWK(publicKey)), kid, alg: "ES256", use: "sig" };
  const now = Math.floor((clock?.now() ?? Date.now()) / 1_000);
  return {
    jwks: JSON.stringify({ keys: [jwk] }),
    sign: (claims, { expSeconds = 300 } = {}) =>
      new SignJWT({ iss: ISSUER.issuer, aud: "toolgate", sub: "alice", ...claims })
        .setProtectedHeader({ alg: "ES256", kid })
        .setExpirationTime(now + expSeconds)
        .sign(privateKey),
  };
}
