import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";

/** A certificate and its key, in PEM. */
export interface Issued {
  readonly cert: string;
  readonly key: string;
}

/** What a certificate says. */
export interface CertificateOptions {
  /** Names of hosts, addresses and URIs. Default: localhost, 127.0.0.1 and ::1. */
  readonly names?: readonly string[];
  /** From now; negative: it has ended. Default 365. */
  readonly days?: number;
  /** Who signs it. Default: one that nobody knows. */
  readonly issuer?: Authority;
  /** With a key that is too short for use today. */
  readonly weak?: boolean;
}

/** One that signs certificates. */
export interface Authority extends Issued {
  readonly name: string;
  readonly signer: KeyObject;
}

const DAY_MS = 86_400_000;
/** ecdsa-with-SHA256. */
const SIGNATURE_ALGORITHM = der(0x30, oid("2a8648ce3d040302"));

/** A certificate authority with a new key. */
export function createAuthority(name = "Test authority"): Authority {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const cert = certificate({
    subject: name,
    issuer: name,
    publicKey,
    signer: privateKey,
    names: [],
    days: 365,
    ca: true,
  });
  return { name, cert, key: pemOf(privateKey), signer: privateKey };
}

/** A certificate with a new key, made in a millisecond. */
export function issue(options: CertificateOptions = {}): Issued {
  const { names = ["localhost", "127.0.0.1", "::1"], days = 365, issuer, weak = false } = options;
  const authority = issuer ?? createAuthority();
  const { publicKey, privateKey } = weak
    ? generateKeyPairSync("rsa", { modulusLength: 1024 })
    : generateKeyPairSync("ec", { namedCurve: "P-256" });
  const subject = names[0] ?? "nobody";
  const { signer } = authority;
  const cert = certificate({ subject, issuer: authority.name, publicKey, signer, names, days, ca: false });
  return { cert, key: pemOf(privateKey) };
}

interface Contents {
  readonly subject: string;
  readonly issuer: string;
  readonly publicKey: KeyObject;
  readonly signer: KeyObject;
  readonly names: readonly string[];
  readonly days: number;
  readonly ca: boolean;
}

/** Source: RFC 5280, 4.1. */
function certificate({ subject, issuer, publicKey, signer, names, days, ca }: Contents): string {
  const now = Date.now();
  const serial = Buffer.from(crypto.getRandomValues(new Uint8Array(8)));
  serial[0] = 1;
  const body = der(
    0x30,
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, serial),
    SIGNATURE_ALGORITHM,
    distinguishedName(issuer),
    der(0x30, time(now + Math.min(0, days - 1) * DAY_MS - DAY_MS), time(now + days * DAY_MS)),
    distinguishedName(subject),
    publicKey.export({ type: "spki", format: "der" }),
    der(0xa3, der(0x30, ...extensions(names, ca))),
  );
  const signature = sign("sha256", body, signer);
  return pem("CERTIFICATE", der(0x30, body, SIGNATURE_ALGORITHM, der(0x03, Buffer.from([0]), signature)));
}

function extensions(names: readonly string[], ca: boolean): Buffer[] {
  const constraints = extension("551d13", der(0x30, ...(ca ? [der(0x01, Buffer.from([0xff]))] : [])));
  return names.length === 0
    ? [constraints]
    : [constraints, extension("551d11", der(0x30, ...names.map(alternativeName)))];
}

function extension(id: string, value: Buffer): Buffer {
  return der(0x30, oid(id), der(0x04, value));
}

function alternativeName(name: string): Buffer {
  if (name === "::1") return der(0x87, Buffer.from([...Array<number>(15).fill(0), 1]));
  // As SPIFFE ids are.
  if (name.includes("://")) return der(0x86, Buffer.from(name));
  return /^[\d.]+$/.test(name) ? der(0x87, Buffer.from(name.split(".").map(Number))) : der(0x82, Buffer.from(name));
}

function distinguishedName(commonName: string): Buffer {
  return der(0x30, der(0x31, der(0x30, oid("550403"), der(0x0c, Buffer.from(commonName)))));
}

/** GeneralizedTime. */
function time(ms: number): Buffer {
  return der(0x18, Buffer.from(new Date(ms).toISOString().replace(/[-:T]|\.\d+/g, "")));
}

function oid(hex: string): Buffer {
  return der(0x06, Buffer.from(hex, "hex"));
}

/** Tag, length and value. Source: X.690, 8.1. */
function der(tag: number, ...values: readonly Buffer[]): Buffer {
  const value = Buffer.concat(values);
  const { length } = value;
  if (length < 0x80) return Buffer.concat([Buffer.from([tag, length]), value]);
  const bytes = length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...bytes]), value]);
}

function pem(label: string, bytes: Buffer): string {
  const lines = bytes.toString("base64").match(/.{1,64}/g) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ""].join("\n");
}

function pemOf(key: KeyObject): string {
  return key.export({ type: "pkcs8", format: "pem" }).toString();
}
