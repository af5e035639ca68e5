import type { Principal } from "./principal.ts";

/** Request headers by lower-case name; several values of one name are joined by `, `. */
export interface HeaderReader {
  get(name: string): string | null;
}

/** Whom a certificate of a caller is for. */
export interface CertificateName {
  readonly type: CertificateNameType;
  readonly value: string;
}

/** Kinds of names in a certificate: alternative names, and the common name of its subject. */
export type CertificateNameType = "uri" | "dns" | "email" | "common_name";

/** The certificate a caller showed. */
export interface CallerCertificate {
  /** Why it does not count, for the log; undefined: the gateway's client authority vouches for it. */
  readonly problem: string | undefined;
  readonly names: readonly CertificateName[];
}

/** Who is on the other end of a connection. */
export interface Peer {
  /** IP address, or empty where the transport has none, as a Unix socket. */
  readonly address: string;
  readonly port: number;
  readonly encrypted: boolean;
  /** What certificate it showed, if any. Absent: none is ever asked for. */
  readonly certificate?: () => CallerCertificate | undefined;
}

/**
 * Tells who calls, from headers and connection alone: it runs before the body is read.
 *
 * @throws GatewayError to refuse the call.
 */
export type Authenticate = (headers: HeaderReader, peer: Peer) => Principal | Promise<Principal>;

/** Asks an issuer for its keys. `allowPrivate`: the name in the URL may lead to an address that is not public. */
export type FetchKeys = (
  url: string,
  options: { readonly allowPrivate: boolean; readonly signal: AbortSignal },
) => Promise<{ readonly status: number; readonly text: string }>;

/** Whose tokens are taken. */
export interface JwtIssuer {
  /** First part of the ids of its principals: `jwt` in `jwt:alice`. */
  readonly name: string;
  /** What `iss` has to be. */
  readonly issuer: string;
  /** One of which `aud` has to hold. */
  readonly audiences: readonly string[];
  /** Where its keys are: a URL, or the absolute path of a file. */
  readonly jwks: { readonly url: string; readonly allowPrivate: boolean } | { readonly file: string };
  readonly algorithms: readonly string[];
  readonly clockSkewMs: number;
  /** Claim that has the subject. */
  readonly subjectClaim: string;
  /** Dotted path of the claim that has the roles: a list, or words in a text. */
  readonly rolesClaim: string;
  /** Roles by what the claim says; undefined: what it says are the roles. */
  readonly roleMap: ReadonlyMap<string, readonly string[]> | undefined;
  /** Roles of everybody with a token of this issuer. */
  readonly roles: readonly string[];
}

/** Whom a certificate makes its holder. */
export interface CertificateRule {
  readonly type: CertificateNameType;
  /** The name; each `*` stands for any characters. */
  readonly name: string;
  readonly roles: readonly string[];
}

/** How callers are told apart. */
export interface IdentitySettings {
  /** Whether the keys of `toolgate key` are taken. */
  readonly apiKeys: boolean;
  readonly jwt: readonly JwtIssuer[];
  readonly certificates: readonly CertificateRule[];
  /** Headers by which a proxy on this machine says who calls. */
  readonly trustedHeader: { readonly subject: string; readonly roles: string | undefined } | undefined;
  /** Roles of callers that show nothing; undefined: they are refused. */
  readonly anonymousRoles: readonly string[] | undefined;
}
