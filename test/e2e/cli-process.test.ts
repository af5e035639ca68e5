import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { deferred, type StreamResponse, startFakeGateway } from "../clients/fake-gateway.ts";
import { startToolgate, toolgate } from "./cli-process.ts";

const MAIN = fileURLToPath(new URL("../../src/main.ts", import.meta.url));

/** Makes Node.js say that it is another version. */
function pretendVersion(version: string): string[] {
  const code = `Object.defineProperty(process,"versions",{value:{...process.versions,node:"${version}"}})`;
  return ["--import", `data:text/javascript,${encodeURIComponent(code)}`];
}

/** A gateway with a stream of ticks, and what it sees of its end. */
async function ticking(tickMs: number): Promise<{ address: string; cancelled: Promise<void> } & AsyncDisposable> {
  const { promise: cancelled, resolve } = deferred<void>();
  const gateway = await startFakeGateway({
    gateway: {
      async *callStream(_request, context): AsyncGenerator<StreamResponse> {
        let sequence = 0n;
        context.signal.addEventListener("abort", () => resolve());
        yield { sequence: sequence++, event: { case: "started", value: { callId: "c1" } } };
        while (!context.signal.aborted) {
          const value = { delta: { case: "text" as const, value: `tick ${sequence}\n` } };
          yield { sequence: sequence++, event: { case: "output", value } };
          await new Promise((go) => setTimeout(go, tickMs));
        }
      },
      call: () => ({ callId: "c1", result: { structuredJson: '{"ok":true}' } }),
    },
  });
  return {
    address: `127.0.0.1:${gateway.port}`,
    cancelled,
    [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose](),
  };
}

test("the process ends by itself right after its result", async () => {
  await using gateway = await ticking(10);
  const ended = await toolgate(["tool", "call", "t", "--address", gateway.address]);
  expect(ended).toMatchObject({ code: 0, stdout: '{\n  "ok": true\n}\n', stderr: "" });
  // A connection that is kept would hold it for minutes.
  expect(ended.lingeredMs).toBeLessThan(10_000);
});

test("SIGINT cancels the call at the gateway and ends the process with 130", async () => {
  await using gateway = await ticking(10);
  await using running = startToolgate(["tool", "call", "t", "--stream", "--address", gateway.address]);
  await running.output("stdout", /tick 3/);
  running.child.kill("SIGINT");
  expect(await running.ended).toMatchObject({ code: 130, stderr: "interrupted\n" });
  await gateway.cancelled;
});

test("a pipe that is closed ends the stream quietly and cancels the call", async () => {
  await using gateway = await ticking(1);
  const shell = spawn("sh", ["-c", '"$0" "$@" | head -2', process.execPath, MAIN, "tool", "call", "t", "--stream"], {
    env: { PATH: process.env.PATH, TOOLGATE_ADDRESS: gateway.address, NODE_DISABLE_COMPILE_CACHE: "1" },
  });
  let out = "";
  let err = "";
  shell.stdout.on("data", (piece: Buffer) => (out += piece.toString()));
  shell.stderr.on("data", (piece: Buffer) => (err += piece.toString()));
  await once(shell, "close");
  expect(out).toBe("tick 1\ntick 2\n");
  expect(err).toBe("");
  await gateway.cancelled;
});

/** Runs a command line whose output nobody reads. Resolves with its status, and what it says on stderr where that is read. */
async function unread(argv: readonly string[], closed: "stdout" | "stdout and stderr"): Promise<string> {
  const command = closed === "stdout" ? '"$0" "$@"' : '"$0" "$@" 2>&1';
  const line = `{ ${command}; echo "status $?" >&3; } 3>&2 | true`;
  const shell = spawn("sh", ["-c", line, process.execPath, MAIN, ...argv], {
    env: { PATH: process.env.PATH, HOME: "/nonexistent", TOOLGATE_ADDRESS: "127.0.0.1:1" },
  });
  let said = "";
  shell.stderr.setEncoding("utf8").on("data", (piece: string) => (said += piece));
  await once(shell, "close");
  return said;
}

test.each<[string[], "stdout" | "stdout and stderr", status: number]>([
  [["--help"], "stdout", 0],
  [["--version"], "stdout and stderr", 0],
  [["tool", "call", "--help"], "stdout", 0],
  [["no-such-command"], "stdout and stderr", 2],
  [["tool", "list"], "stdout and stderr", 4],
])("%j ends quietly and as ever where nobody reads its %s", async (argv, closed, status) => {
  expect(await unread(argv, closed)).toBe(`status ${status}\n`);
});

test("a gateway goes on without a reader of its log, and stops well", async () => {
  const folder = await mkdtemp(join(tmpdir(), "toolgate-unread-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const argv = ["serve", "--tools", folder, "--state", join(folder, "state"), "--listen", "127.0.0.1:0"];
  await using running = startToolgate(argv);
  const [, address = ""] = await running.output("stderr", /"url":"http:\/\/([^"]+)"/);
  const { child } = running;
  child.stderr?.destroy();
  // Each is a line of the log.
  for (let i = 0; i < 3; i++) {
    child.kill("SIGHUP");
    expect((await fetch(`http://${address}/readyz`)).status).toBe(200);
  }
  child.kill("SIGTERM");
  expect(await running.ended).toMatchObject({ code: 0 });
});

test("--json - reads stdin", async () => {
  await using gateway = await ticking(10);
  const ended = await toolgate(["tool", "call", "t", "--json", "-", "--address", gateway.address], {
    input: '{"a":1}',
  });
  expect(ended.code).toBe(0);
});

test("an old Node.js hands over to the one that npm put beside it, or says what is needed [S2-76]", {
  timeout: 180_000,
}, async () => {
  const launch = "src/cli/launch.js";
  const handedOver = await toolgate(["--version"], { script: launch, nodeArguments: pretendVersion("20.20.2") });
  expect(handedOver).toMatchObject({ code: 0, stdout: `${manifest.version}\n`, stderr: "" });
  const usage = await toolgate(["tool", "get"], { script: launch, nodeArguments: pretendVersion("20.20.2") });
  expect(usage.code).toBe(2);
  for (const version of ["18.20.0", "22.23.2", "23.11.0", "24.18.0"]) {
    const refused = await toolgate(["--version"], {
      script: launch,
      nodeArguments: pretendVersion(version),
      env: { TOOLGATE_LAUNCHED: "1" },
    });
    expect(refused).toMatchObject({
      code: 1,
      stdout: "",
      stderr: `toolgate needs Node.js ${manifest.engines.node}, and this is ${version}: install a newer one\n`,
    });
  }
  for (const version of ["24.18.1", "25.0.0"]) {
    const runs = await toolgate(["--version"], { script: launch, nodeArguments: pretendVersion(version) });
    expect(runs.stdout).toBe(`${manifest.version}\n`);
  }
});

test("a rejection that nothing handled is logged, stops the gateway and ends the process with 1", async () => {
  const program = `
    import { processHost } from ${JSON.stringify(new URL("../../src/cli/process-host.ts", import.meta.url).href)};
    import { runCli } from ${JSON.stringify(new URL("../../src/cli/run.ts", import.meta.url).href)};
    const log = (message, fields) => console.error(message, fields?.error?.message ?? "");
    const logger = { debug: log, info: log, warn: log, error: log, child: () => logger };
    const server = {
      createLogger: () => logger,
      async createGateway() {
        setTimeout(() => void Promise.reject(new Error("stray")), 10);
        const held = setInterval(() => undefined, 1000);
        const stop = async () => { clearInterval(held); console.error("stopped"); };
        return { address: { host: "127.0.0.1", port: 1 }, stop };
      },
    };
    const host = processHost({ version: "9.9.9", loadServer: async () => server });
    process.exitCode = await runCli(["serve", "--tools", "/"], host);
  `;
  const running = spawn(process.execPath, ["--input-type=module", "--eval", program], {
    env: { PATH: process.env.PATH, HOME: "/nonexistent" },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let err = "";
  running.stderr.on("data", (piece: Buffer) => (err += piece.toString()));
  const [code] = (await once(running, "close")) as [number];
  expect(err).toContain("uncaught-error stray\nstopped\n");
  expect(code).toBe(1);
});
