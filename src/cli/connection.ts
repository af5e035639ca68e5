import { createToolgateClient, type ToolgateClient } from "../../clients/typescript/src/index.ts";
import { createNodeTransport } from "../../clients/typescript/src/node.ts";
import { CliError } from "./cli-error.ts";
import { DEFAULT_ADDRESS } from "./default-address.ts";
import { EXIT } from "./exit-codes.ts";

/** A client of the gateway; disposing ends its connection, so that the process can end. */
export interface Connection extends Disposable {
  readonly client: ToolgateClient;
}

/**
 * A client for `HOST:PORT`, or for a whole URL. It connects with its first request.
 *
 * @throws CliError for a malformed address.
 */
export function connect(address: string): Connection {
  const transport = createNodeTransport({ baseUrl: baseUrl(address), connectTimeoutMs: 5000 });
  return { client: createToolgateClient(transport), [Symbol.dispose]: () => transport.close() };
}

function baseUrl(address: string): string {
  const url = URL.parse(address.includes("://") ? address : `http://${address}`);
  const isOrigin = url !== null && url.pathname === "/" && url.search === "" && url.username === "";
  if (!isOrigin || !["http:", "https:"].includes(url.protocol)) {
    throw new CliError(EXIT.usage, `--address takes HOST:PORT, got "${address}"`, {
      mend: `For instance ${DEFAULT_ADDRESS}.`,
    });
  }
  return url.origin;
}
