import { X509Certificate } from "node:crypto";
import type { Http2Session } from "node:http2";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { CallerCertificate, CertificateName, CertificateNameType, Peer } from "../core/identity.ts";

/** What each connection showed: it shows the same to all its calls. */
export type ShownCertificates = WeakMap<object, CallerCertificate | undefined>;

/** What an RPC came over. */
export interface Connection {
  readonly socket: Socket | TLSSocket;
  /** Of HTTP/2; absent once it is closed, too. */
  readonly session?: Http2Session | undefined;
}

/** Who is on the other end of a connection. */
export function peerOf({ socket, session }: Connection, shown: ShownCertificates): Peer {
  const encrypted = session === undefined ? "encrypted" in socket : session.encrypted === true;
  const peer = { address: socket.remoteAddress ?? "", port: socket.remotePort ?? 0, encrypted };
  if (!encrypted) return peer;
  const connection = session ?? socket;
  return {
    ...peer,
    certificate: () => {
      if (!shown.has(connection)) shown.set(connection, certificateOf(socket));
      return shown.get(connection);
    },
  };
}

/** HTTP/2 gives its socket behind a proxy, which has the same methods and is of no class. */
function certificateOf(socket: Socket): CallerCertificate | undefined {
  const read: unknown = Reflect.get(socket, "getPeerX509Certificate");
  if (typeof read !== "function") return undefined;
  const certificate: unknown = Reflect.apply(read, socket, []);
  if (!(certificate instanceof X509Certificate)) return undefined;
  const authorized: unknown = Reflect.get(socket, "authorized");
  const why: unknown = Reflect.get(socket, "authorizationError");
  return { problem: authorized === true ? undefined : String(why), names: namesOf(certificate) };
}

const TYPES: Readonly<Record<string, CertificateNameType>> = { URI: "uri", DNS: "dns", email: "email" };

function namesOf({ subject, subjectAltName }: X509Certificate): readonly CertificateName[] {
  const names = alternativeNames(subjectAltName ?? "");
  // One line for each part of the subject.
  const commonNames = (subject ?? "").split("\n").flatMap((line) => /^CN=(.+)$/.exec(line)?.[1] ?? []);
  return [...names, ...commonNames.map((value) => ({ type: "common_name" as const, value }))];
}

/**
 * `DNS:a.example, URI:spiffe://b`, where a value with a comma or quote stands as a JSON text: else a name could pretend
 * to be two. Source: Node.js, `x509.subjectAltName`, and CVE-2021-44532.
 */
function alternativeNames(text: string): readonly CertificateName[] {
  const names: CertificateName[] = [];
  for (const [, word = "", quoted, plain = ""] of text.matchAll(
    /(?:^|, )([A-Za-z ]+):(?:("(?:[^"\\]|\\.)*")|([^,]*))/gy,
  )) {
    const type = Object.hasOwn(TYPES, word) ? TYPES[word] : undefined;
    const value: unknown = quoted === undefined ? plain : JSON.parse(quoted);
    if (type !== undefined && typeof value === "string") names.push({ type, value });
  }
  return names;
}
