import { randomBytes } from "node:crypto";
import type { Stats } from "node:fs";
import { chmod, lstat, rename, rm } from "node:fs/promises";
import { connect, type Server } from "node:net";
import { basename, dirname, join } from "node:path";
import { GatewayError } from "../core/errors.ts";

/** Only the gateway's own user can connect. */
const MODE = 0o600;

/**
 * Binds a server to a Unix socket. It is bound under another name and then renamed, so that nobody can connect before
 * its mode is set, and the socket that a dead gateway left gives way in one step. A socket on which somebody listens,
 * and whatever is no socket, stays.
 *
 * @returns removes the socket, unless somebody else's has taken its place.
 * @throws GatewayError naming the mend.
 */
export async function listenOnSocket(server: Server, path: string): Promise<() => Promise<void>> {
  if (process.platform === "win32") throw refused(path, "Windows has none: listen on 127.0.0.1:7433");
  await makeRoom(path);
  const name = randomBytes(4)
    .toString("hex")
    .slice(0, Buffer.byteLength(basename(path)));
  const temporary = join(dirname(path), name);
  try {
    await bind(server, temporary);
    await chmod(temporary, MODE);
    await rename(temporary, path);
    const own = await lstat(path);
    return () => remove(path, own);
  } catch (error) {
    server.close();
    throw refused(path, bindProblem(codeOf(error), path), error);
  }
}

/** Makes sure that nothing is lost when the path is taken. */
async function makeRoom(path: string): Promise<void> {
  const there = await lookAt(path);
  if (there === undefined) {
    const folder = dirname(path);
    // The system's own answer would be EACCES.
    if ((await lookAt(folder)) !== undefined) return;
    throw refused(path, `the folder ${folder} is not there: make it, or take another path`);
  }
  if (!there.isSocket())
    throw refused(path, "something that is no socket is there: move it away, or take another path");
  const code = await knock(path);
  if (code === "ECONNREFUSED" || code === "ENOENT") return;
  if (code === undefined) throw refused(path, "another gateway listens there: stop it, or take another path");
  throw refused(
    path,
    `nobody can tell whether another gateway listens there (${code}): remove the socket if none does`,
  );
}

async function lookAt(path: string): Promise<Stats | undefined> {
  try {
    return await lstat(path);
  } catch (error) {
    const code = codeOf(error);
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw refused(path, bindProblem(code, path), error);
  }
}

/** Connects and hangs up. Resolves with the code of the error; undefined: somebody listens. */
function knock(path: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ path });
    socket.once("error", (error) => resolve(codeOf(error)));
    socket.once("connect", () => {
      socket.destroy();
      resolve(undefined);
    });
  });
}

function bind(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ path }, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

async function remove(path: string, own: Stats): Promise<void> {
  const there = await lookAt(path);
  if (there?.ino === own.ino && there.dev === own.dev) await rm(path, { force: true });
}

function bindProblem(code: string, path: string): string {
  const folder = dirname(path);
  if (code === "EACCES" || code === "EPERM" || code === "EROFS") {
    return `no right to write in ${folder} (${code}): give it to the user that the gateway runs as, or take another path`;
  }
  return `${code}: take another path`;
}

function refused(path: string, problem: string, cause?: unknown): GatewayError {
  const text = `cannot listen on unix:${path}: ${problem}`;
  return new GatewayError("INTERNAL", text, cause === undefined ? {} : { cause });
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown error";
}
