import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { createSecureContext } from "node:tls";
import { GatewayError } from "../core/errors.ts";

/** Larger than any chain of certificates. */
const MAX_FILE_BYTES = 1024 * 1024;

/** Others than owner and group may read. */
const READABLE_BY_OTHERS = 0o004;

/** Where a certificate and its key are, in PEM. */
export interface CertificateFiles {
  /** The certificate, followed by the intermediate ones. */
  readonly certFile: string;
  readonly keyFile: string;
  /** The oldest version of TLS that is spoken. */
  readonly minVersion: "TLSv1.2" | "TLSv1.3";
  /** Authorities of callers' certificates; absent: none is asked for. */
  readonly client?: ClientAuthorities;
}

/** Whose certificates callers may show. */
export interface ClientAuthorities {
  readonly caFile: string;
  /** Whether the handshake of a caller without one fails. */
  readonly required: boolean;
}

/** A certificate and its key, fit for use. */
export interface Certificate {
  readonly cert: Buffer;
  readonly key: Buffer;
  /** Certificates of the authorities of callers. */
  readonly clientCa: Buffer | undefined;
  readonly minVersion: CertificateFiles["minVersion"];
  /** Whom it is for, such as `DNS:gateway.example.com, IP Address:10.0.0.1`. */
  readonly names: string;
  /** Milliseconds since the epoch. */
  readonly validFromMs: number;
  readonly validToMs: number;
  /** Whether everybody on the machine may read the key. */
  readonly keyIsOpen: boolean;
}

/**
 * Reads a certificate and its key and makes sure that a handshake can be done with them.
 *
 * @throws GatewayError naming the file and the mend.
 */
export async function readCertificate(files: CertificateFiles): Promise<Certificate> {
  const { certFile, keyFile, minVersion } = files;
  const certPlace = `\`tls.cert\` ${certFile}`;
  const keyPlace = `\`tls.key\` ${keyFile}`;
  const { bytes: cert } = await readPem(certFile, certPlace);
  const { bytes: key, mode } = await readPem(keyFile, keyPlace);
  const leaf = attempt(() => new X509Certificate(cert), `${certPlace} ${NO_CERTIFICATE}`);
  const privateKey = parseKey(key, keyPlace);
  if (!leaf.checkPrivateKey(privateKey)) {
    throw unusable(
      `${keyPlace} is not the key of the first certificate in ${certPlace}: write the two that were issued together, the gateway's own certificate before the intermediate ones`,
    );
  }
  const clientCa = await readAuthorities(files.client);
  attempt(
    () => createSecureContext({ cert, key, minVersion }),
    (code) =>
      `${certPlace} cannot be used (${code}): issue it again, with a key of at least 2048 bits RSA or 256 bits EC`,
  );
  return {
    cert,
    key,
    clientCa,
    minVersion,
    names: leaf.subjectAltName ?? leaf.subject,
    validFromMs: leaf.validFromDate.getTime(),
    validToMs: leaf.validToDate.getTime(),
    // Windows has no such modes.
    keyIsOpen: process.platform !== "win32" && (mode & READABLE_BY_OTHERS) !== 0,
  };
}

async function readAuthorities(client: ClientAuthorities | undefined): Promise<Buffer | undefined> {
  if (client === undefined) return undefined;
  const place = `\`tls.client_ca\` ${client.caFile}`;
  const { bytes } = await readPem(client.caFile, place);
  attempt(() => new X509Certificate(bytes), `${place} ${NO_CERTIFICATE}`);
  return bytes;
}

const NO_CERTIFICATE = "holds no certificate in PEM form, which begins with -----BEGIN CERTIFICATE-----";
const ENCRYPTED = "is encrypted: write it without a passphrase (openssl pkey -in KEY -out KEY)";
const NO_KEY = "holds no private key in PEM form, such as -----BEGIN PRIVATE KEY-----";

function parseKey(key: Buffer, place: string): KeyObject {
  const isEncrypted = key.includes("ENCRYPTED");
  return attempt(() => createPrivateKey(key), `${place} ${isEncrypted ? ENCRYPTED : NO_KEY}`);
}

interface PemFile {
  readonly bytes: Buffer;
  readonly mode: number;
}

async function readPem(file: string, place: string): Promise<PemFile> {
  try {
    const stats = await stat(file);
    if (!stats.isFile() || stats.size > MAX_FILE_BYTES) {
      throw unusable(`${place} is no PEM file: correct the path in gateway.yaml`);
    }
    return { bytes: await readFile(file), mode: stats.mode };
  } catch (error) {
    if (error instanceof GatewayError) throw error;
    throw unusable(`${place} ${unreadable(codeOf(error))}`, error);
  }
}

function unreadable(code: string): string {
  if (code === "ENOENT" || code === "ENOTDIR")
    return "is not there: write the file, or correct the path in gateway.yaml";
  return `cannot be read (${code}): give the user that the gateway runs as the right to read it`;
}

function attempt<T>(work: () => T, problem: string | ((code: string) => string)): T {
  try {
    return work();
  } catch (error) {
    throw unusable(typeof problem === "string" ? problem : problem(codeOf(error)), error);
  }
}

function unusable(problem: string, cause?: unknown): GatewayError {
  return new GatewayError("INTERNAL", problem, cause === undefined ? {} : { cause });
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown error";
}
