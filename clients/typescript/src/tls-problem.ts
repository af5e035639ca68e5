/** Why no connection came about although somebody answered: the two sides do not agree about TLS. */
export interface TlsProblem {
  /**
   * - CERTIFICATE_UNTRUSTED: signed by nobody this side trusts.
   * - CERTIFICATE_NAME: for another name.
   * - CERTIFICATE_DATES: expired, or not valid yet.
   * - TLS_EXPECTED: plaintext was spoken to a port of TLS.
   * - PLAINTEXT_EXPECTED: TLS was spoken to a port of plaintext.
   * - TLS_HANDSHAKE: no version of TLS, or no protocol within it, that both speak.
   */
  readonly kind: string;
  readonly text: string;
}

/** By the code of Node's error. Sources: Node.js documentation, "X509 certificate error codes"; OpenSSL, sslerr.h. */
const BY_CODE: Readonly<Record<string, readonly [kind: string, text: string]>> = {
  DEPTH_ZERO_SELF_SIGNED_CERT: ["CERTIFICATE_UNTRUSTED", "its certificate vouches for itself alone"],
  SELF_SIGNED_CERT_IN_CHAIN: ["CERTIFICATE_UNTRUSTED", "its certificate is signed by an authority that is not trusted"],
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: ["CERTIFICATE_UNTRUSTED", "its certificate is signed by an unknown authority"],
  UNABLE_TO_GET_ISSUER_CERT: ["CERTIFICATE_UNTRUSTED", "its certificate is signed by an unknown authority"],
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: ["CERTIFICATE_UNTRUSTED", "its certificate is signed by an unknown authority"],
  CERT_SIGNATURE_FAILURE: ["CERTIFICATE_UNTRUSTED", "its certificate is not signed by the authority it names"],
  CERT_UNTRUSTED: ["CERTIFICATE_UNTRUSTED", "its certificate is signed by an authority that is not trusted"],
  CERT_REJECTED: ["CERTIFICATE_UNTRUSTED", "its certificate is signed by an authority that is not trusted"],
  INVALID_CA: ["CERTIFICATE_UNTRUSTED", "its certificate is signed by one that may sign none"],
  CERT_HAS_EXPIRED: ["CERTIFICATE_DATES", "its certificate has expired"],
  CERT_NOT_YET_VALID: ["CERTIFICATE_DATES", "its certificate is not valid yet"],
  ERR_TLS_CERT_ALTNAME_INVALID: ["CERTIFICATE_NAME", "its certificate is for another name"],
  ERR_SSL_WRONG_VERSION_NUMBER: ["PLAINTEXT_EXPECTED", "it does not speak TLS there"],
  ERR_SSL_PACKET_LENGTH_TOO_LONG: ["PLAINTEXT_EXPECTED", "it does not speak TLS there"],
  ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION: ["TLS_HANDSHAKE", "it speaks no version of TLS that this side speaks"],
  ERR_SSL_UNSUPPORTED_PROTOCOL: ["TLS_HANDSHAKE", "it speaks no version of TLS that this side speaks"],
  ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE: ["TLS_HANDSHAKE", "it refused the TLS handshake"],
  ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL: ["TLS_HANDSHAKE", "it does not speak this protocol over TLS"],
};

/** The gateway's GOAWAY with INADEQUATE_SECURITY, as Node words it. Source: RFC 9113, section 7. */
const WANTS_TLS = /^Session closed with error code 12$/;

/** What an error says about TLS; undefined: nothing. Each is such that no request can have been sent. */
export function tlsProblem(error: Error): TlsProblem | undefined {
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  if (code === "ERR_HTTP2_SESSION_ERROR" && WANTS_TLS.test(error.message)) {
    return { kind: "TLS_EXPECTED", text: "it speaks TLS there, and this was plaintext: use https" };
  }
  const found = Object.hasOwn(BY_CODE, code) ? BY_CODE[code] : undefined;
  if (found === undefined) return undefined;
  const [kind, text] = found;
  const names = code === "ERR_TLS_CERT_ALTNAME_INVALID" ? namesText(error) : "";
  return { kind, text: `${text}${names} (${code})` };
}

/** Such as `: Host: gateway.test. is not in the cert's altnames: DNS:localhost`. */
function namesText(error: Error): string {
  return "reason" in error && typeof error.reason === "string" ? `: ${error.reason}` : "";
}
