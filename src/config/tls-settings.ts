import { resolve } from "node:path";
import type { ConfigIssue } from "../core/adapter.ts";
import type { JsonValue } from "../core/json.ts";
import { isJsonArray } from "../core/json.ts";
import { path, type Setting } from "./setting.ts";

/** Versions of TLS that can be the oldest one spoken. */
const TLS_VERSIONS = ["TLSv1.2", "TLSv1.3"] as const;

/** The certificates of the port, by dotted key. */
export const TLS_SETTINGS = {
  "tls.cert": path(
    "PEM file of the port's certificate, followed by the intermediate ones, relative to this file. The port then speaks TLS alone. Read again when it changes, together with `tls.key`; open connections go on.",
  ),
  "tls.key": path("PEM file of the certificate's private key, without a passphrase, relative to this file."),
  "tls.min_version": {
    schema: { enum: TLS_VERSIONS, description: "The oldest version of TLS that is spoken." },
    standard: "TLSv1.2",
  },
  "tls.client_ca": path(
    "PEM file of the authorities whose certificates callers show, relative to this file; who shows one becomes whom `identity.mtls` says. Read again when it changes.",
  ),
  "tls.client_auth": {
    schema: {
      enum: ["optional", "required"],
      description:
        "Whether callers without a certificate of `tls.client_ca` can connect, to show something else, or the handshake fails.",
    },
    standard: "optional",
  },
} as const satisfies Readonly<Record<string, Setting>>;

/** The certificates of the port. */
export interface TlsSettings {
  readonly certFile: string;
  readonly keyFile: string;
  readonly minVersion: TlsVersion;
  /** Authorities of callers' certificates; absent: none is asked for. */
  readonly client?: { readonly caFile: string; readonly required: boolean };
}

/** A version of TLS. */
type TlsVersion = (typeof TLS_VERSIONS)[number];

type Values = ReadonlyMap<string, JsonValue>;

/** Why `tls` is refused where the gateway listens on a Unix socket. */
export const TLS_ON_A_SOCKET =
  "a Unix socket needs no TLS, since nothing of it leaves the machine: remove it, or listen on an address and a port";

/** What of TLS cannot work, or has no effect: an authority without anybody whom its certificates mean, and the like. */
export function tlsIssues(values: Values, listen: object): readonly ConfigIssue[] {
  if ("path" in listen && values.has("tls.cert")) {
    return [{ pointer: "/tls", message: `\`tls\`: ${TLS_ON_A_SOCKET}` }];
  }
  const rules = values.get("identity.mtls");
  const hasRules = isJsonArray(rules) && rules.length > 0;
  const hasAuthority = values.has("tls.client_ca");
  if (hasRules && !hasAuthority) {
    const message = "`identity.mtls` needs `tls.client_ca`, which says whose certificates count";
    return [{ pointer: "/identity/mtls", message }];
  }
  if (hasAuthority && !hasRules) {
    const message = "`tls.client_ca` has no effect without `identity.mtls`, which says whom a certificate means";
    return [{ pointer: "/tls/client_ca", message }];
  }
  if (hasAuthority || values.get("tls.client_auth") !== "required") return [];
  const message = "`tls.client_auth` has no effect without `client_ca` beside it: set that, or leave this out";
  return [{ pointer: "/tls/client_auth", message }];
}

/** The files of TLS by their absolute paths. The schema has seen to it that neither file comes alone. */
export function readTls(values: Values, folder: string): { readonly tls?: TlsSettings } {
  if (!values.has("tls.cert")) return {};
  const file = (key: keyof typeof TLS_SETTINGS): string => resolve(folder, textOf(values.get(key)));
  const minVersion = TLS_VERSIONS.find((version) => version === values.get("tls.min_version")) ?? "TLSv1.2";
  const files = { certFile: file("tls.cert"), keyFile: file("tls.key"), minVersion };
  if (!values.has("tls.client_ca")) return { tls: files };
  const required = values.get("tls.client_auth") === "required";
  return { tls: { ...files, client: { caFile: file("tls.client_ca"), required } } };
}

function textOf(value: JsonValue | undefined): string {
  return typeof value === "string" ? value : "";
}
