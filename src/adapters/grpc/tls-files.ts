import { readFile } from "node:fs/promises";
import { ConnectProblem, codeOf } from "../shared/network/connect-problem.ts";
import type { TlsChoice } from "../shared/network/socket.ts";

/** The files of `grpc.tls`, by absolute path. */
export interface TlsFiles {
  readonly ca: string | undefined;
  readonly cert: string | undefined;
  readonly key: string | undefined;
  readonly serverName: string | undefined;
}

/**
 * Reads them as they are now, so that a renewed certificate counts for the next connection.
 *
 * @throws ConnectProblem naming the file that cannot be read.
 */
export async function readTlsFiles({ ca, cert, key, serverName }: TlsFiles): Promise<TlsChoice> {
  return {
    ...(ca === undefined ? {} : { ca: await pem(ca, "ca") }),
    ...(cert === undefined ? {} : { cert: await pem(cert, "cert") }),
    ...(key === undefined ? {} : { key: await pem(key, "key") }),
    ...(serverName === undefined ? {} : { serverName }),
  };
}

async function pem(path: string, name: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (cause) {
    const why = (cause instanceof Error ? codeOf(cause) : undefined) ?? "unknown problem";
    throw new ConnectProblem(
      "TLS_FILE",
      `the file of \`grpc.tls.${name}\` cannot be read (${why}): ${path}`,
      `Correct \`grpc.tls.${name}\`, or the file's permissions.`,
    );
  }
}
