import { createToolgateClient, type ToolgateClient } from "../../clients/typescript/src/index.ts";
import { createNodeTransport } from "../../clients/typescript/src/node.ts";
import { fileText } from "./arguments.ts";
import { CliError } from "./cli-error.ts";
import { DEFAULT_ADDRESS } from "./default-address.ts";
import { EXIT } from "./exit-codes.ts";

/** Where a gateway is and how it proves that it is the one. */
export interface GatewayPlace {
  /** `HOST:PORT`, `http://…`, `https://…` or `unix:PATH`. */
  readonly address: string;
  /** File with the certificates to trust over `https://`. Default: those that Node.js trusts. */
  readonly ca?: string | undefined;
  /** Name that the certificate has to be for. Default: the address's. */
  readonly tlsServerName?: string | undefined;
  /** File with the API key or token to show. Default: what TOOLGATE_API_KEY holds, if anything. */
  readonly apiKeyFile?: string | undefined;
}

/** A client of the gateway; disposing ends its connection, so that the process can end. */
export interface Connection extends Disposable {
  readonly client: ToolgateClient;
}

/**
 * A client of the gateway at a place. It connects with its first request.
 *
 * @throws CliError for a malformed address, and for a file that cannot be read.
 */
export async function connect(
  { address, ca, tlsServerName, apiKeyFile }: GatewayPlace,
  env: NodeJS.ProcessEnv,
): Promise<Connection> {
  const baseUrl = baseUrlOf(address);
  const bearer = await credential(apiKeyFile, env);
  const transport = createNodeTransport({
    baseUrl,
    ...(bearer === undefined ? {} : { bearer }),
    connectTimeoutMs: 5000,
    ...(ca === undefined || !baseUrl.startsWith("https:") ? {} : { ca: await certificates(ca) }),
    ...(tlsServerName === undefined ? {} : { serverName: tlsServerName }),
  });
  return { client: createToolgateClient(transport), [Symbol.dispose]: () => transport.close() };
}

/** Never from the command line itself, which every user of the machine can read. */
async function credential(file: string | undefined, env: NodeJS.ProcessEnv): Promise<string | undefined> {
  if (file === undefined) return (env.TOOLGATE_API_KEY ?? "").trim() || undefined;
  if (file.startsWith("tg_")) {
    throw new CliError(EXIT.usage, "--api-key takes a file, not the key itself", {
      mend: "Every user of this machine can read a command line: write the key into a file, or set TOOLGATE_API_KEY. Revoke the one that stood there.",
    });
  }
  const text = (await fileText(file, "--api-key")).trim();
  if (text !== "" && !/\s/.test(text)) return text;
  throw new CliError(EXIT.usage, `--api-key: ${file} holds no key`, {
    mend: "It has to hold the key and nothing else; `toolgate key create` prints one.",
  });
}

function baseUrlOf(address: string): string {
  // `unix://name` would be a host in gRPC's syntax of names.
  if (/^unix:(?!\/\/(?!\/))./.test(address)) return address;
  const url = URL.parse(address.includes("://") || address.startsWith("unix:") ? address : `http://${address}`);
  const isOrigin = url !== null && url.pathname === "/" && url.search === "" && url.username === "";
  if (!isOrigin || !["http:", "https:"].includes(url.protocol)) {
    throw new CliError(EXIT.usage, `--address takes HOST:PORT, https://HOST:PORT or unix:PATH, got "${address}"`, {
      mend: `For instance ${DEFAULT_ADDRESS}.`,
    });
  }
  return url.origin;
}

/** Node.js takes a file without a certificate for one that trusts nobody. */
async function certificates(path: string): Promise<string> {
  const text = await fileText(path, "--ca");
  if (text.includes("-----BEGIN CERTIFICATE-----")) return text;
  throw new CliError(EXIT.usage, `--ca: ${path} holds no certificate in PEM form`, {
    mend: "Name the certificate of the authority that signed the gateway's, or the gateway's own.",
  });
}
