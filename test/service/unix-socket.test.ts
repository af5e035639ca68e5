import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { Agent, request } from "node:http";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
  Http2SessionManager,
} from "@connectrpc/connect-node";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ToolGatewayService } from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import { grpcJsClient } from "./clients.ts";
import { waiting } from "./fake-registry.ts";
import { heldClock, passUntil } from "./held-clock.ts";
import { PATIENT, type Served, serve } from "./serve.ts";

let folder: string;
let path: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "toolgate-unix-"));
  path = join(folder, "gate.sock");
});

afterEach(() => rm(folder, { recursive: true, force: true }));

function serveSocket(): Promise<Served> {
  return serve({ listen: { path } });
}

/** Leaves a socket behind as a gateway does that was killed. */
async function leaveSocket(): Promise<void> {
  const script = "require('node:net').createServer().listen(process.argv[1], () => console.log('ready'))";
  const child = spawn(process.execPath, ["-e", script, path], { stdio: ["ignore", "pipe", "inherit"] });
  await once(child.stdout, "data");
  child.kill("SIGKILL");
  await once(child, "exit");
}

/** What keeps a gateway from listening at the path. */
async function problem(): Promise<string> {
  try {
    await using _served = await serveSocket();
    return "none";
  } catch (error) {
    return (error as Error).message.replaceAll(folder, "FOLDER");
  }
}

describe.skipIf(process.platform === "win32")("a Unix socket", () => {
  test("takes grpc-js by its unix: name, and ends calls of those who leave", async () => {
    await using served = await serveSocket();
    expect(served.url).toBe(`unix:${path}`);
    const aborted = Promise.withResolvers<unknown>();
    served.registry.add({ name: "wait" }, waiting(aborted.resolve));
    using client = grpcJsClient(served.url);
    expect((await client.call({ name: "echo" })).result?.structuredJson).toBe("{}");
    for await (const { event } of client.stream({ invocation: { name: "wait" } })) {
      expect(event.case).toBe("started");
      break;
    }
    expect(await aborted.promise).toMatchObject({ reason: "CALL_CANCELLED" });
  });

  test("takes connect-node with all protocols over both HTTP versions", async () => {
    await using _served = await serveSocket();
    const baseUrl = "http://localhost";
    const agent = new Agent({ keepAlive: true });
    const nodeOptions = { agent, socketPath: path };
    const http2 = (): Http2SessionManager =>
      new Http2SessionManager(baseUrl, {}, { createConnection: () => connect({ path }) });
    for (const transport of [
      createGrpcTransport({ baseUrl, sessionManager: http2() }),
      createConnectTransport({ baseUrl, httpVersion: "2", sessionManager: http2() }),
      createGrpcWebTransport({ baseUrl, httpVersion: "2", sessionManager: http2() }),
      createConnectTransport({ baseUrl, httpVersion: "1.1", nodeOptions }),
      createGrpcWebTransport({ baseUrl, httpVersion: "1.1", nodeOptions }),
    ]) {
      const client = createClient(ToolGatewayService, transport);
      expect((await client.call({ invocation: { name: "echo" } })).result?.structuredJson).toBe("{}");
    }
    agent.destroy();
  });

  test("answers probes and cuts those who are silent", async () => {
    const clock = heldClock(12_345);
    await using _served = await serve({ clock, listen: { path }, connection: { sniffMs: 12_345 } });
    const status = await new Promise((resolve, reject) => {
      const probe = request({ socketPath: path, path: "/readyz" }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      probe.on("error", reject).end();
    });
    expect(status).toBe(200);
    const silent = connect({ path });
    await passUntil(clock, new Promise((resolve) => silent.once("close", () => resolve())));
  });

  test("is the user's alone, stands without leftovers and is removed at the stop", async () => {
    const served = await serveSocket();
    const { mode } = await stat(path);
    expect(mode & 0o777).toBe(0o600);
    expect(await readdir(folder)).toEqual(["gate.sock"]);
    await served.door.stop();
    expect(await readdir(folder)).toEqual([]);
  });

  test("of a dead gateway gives way to a new one", async () => {
    await leaveSocket();
    expect((await stat(path)).isSocket()).toBe(true);
    await using served = await serveSocket();
    using client = grpcJsClient(served.url);
    expect((await client.call({ name: "echo" })).result?.structuredJson).toBe("{}");
  });

  test("of a live gateway stays its own", async () => {
    await using served = await serveSocket();
    expect(await problem()).toBe(
      "cannot listen on unix:FOLDER/gate.sock: another gateway listens there: stop it, or take another path",
    );
    using client = grpcJsClient(served.url);
    expect((await client.call({ name: "echo" })).result?.structuredJson).toBe("{}");
    expect(await readdir(folder)).toEqual(["gate.sock"]);
  });

  test("is left alone at the stop where another has taken its place", async () => {
    const first = await serveSocket();
    await rm(path);
    await using second = await serveSocket();
    await first.door.stop();
    using client = grpcJsClient(second.url);
    expect((await client.call({ name: "echo" })).result?.structuredJson).toBe("{}");
  });

  test("does not take the place of anything that is no socket", async () => {
    const text =
      "cannot listen on unix:FOLDER/gate.sock: something that is no socket is there: move it away, or take another path";
    await writeFile(path, "precious");
    expect(await problem()).toBe(text);
    expect(await readFile(path, "utf8")).toBe("precious");
    await rm(path);
    await mkdir(path);
    expect(await problem()).toBe(text);
    await rm(path, { recursive: true });
    await writeFile(join(folder, "other"), "precious");
    await symlink("other", path);
    expect(await problem()).toBe(text);
    expect((await readdir(folder)).toSorted()).toEqual(["gate.sock", "other"]);
  });

  test("needs its folder", async () => {
    path = join(folder, "run", "gate.sock");
    expect(await problem()).toBe(
      "cannot listen on unix:FOLDER/run/gate.sock: the folder FOLDER/run is not there: make it, or take another path",
    );
  });

  test("may have a name of one letter, and a path of 107 bytes", async () => {
    for (const name of ["s", "x".repeat(107 - folder.length - 1)]) {
      path = join(folder, name);
      await using served = await serveSocket();
      using client = grpcJsClient(served.url);
      expect((await client.call({ name: "echo" })).result?.structuredJson).toBe("{}");
    }
  });

  test("closes idle connections when the gateway stops", async () => {
    const served = await serveSocket();
    const session = new Http2SessionManager("http://localhost", {}, { createConnection: () => connect({ path }) });
    expect(await session.connect()).toBe("idle");
    await served.door.stop();
    await expect.poll(() => session.state(), PATIENT).toBe("closed");
    const gone = connect({ path });
    expect(await once(gone, "error")).toMatchObject([{ code: "ENOENT" }]);
  });

  test("that is not a gateway's but listens is not taken either", async () => {
    const other = createServer().listen(path);
    await once(other, "listening");
    expect(await problem()).toContain("another gateway listens there");
    other.close();
    await once(other, "close");
  });
});
