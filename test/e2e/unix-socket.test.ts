import { mkdir, mkdtemp, readdir, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createToolgateClient } from "../../clients/typescript/src/index.ts";
import { createNodeTransport } from "../../clients/typescript/src/node.ts";
import { collect } from "../service/clients.ts";
import { type CliProcess, startToolgate, toolgate } from "./cli-process.ts";
import { START_TIMEOUT_MS } from "./spawned.ts";

/** For tests that start several processes. */
const PATIENT = { timeout: START_TIMEOUT_MS };

let folder: string;
let socket: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "toolgate-e2e-"));
  socket = join(folder, "run", "gate.sock");
  await mkdir(join(folder, "run"));
  await writeFile(join(folder, "gateway.yaml"), "listen: unix:run/gate.sock\n");
  await writeFile(join(folder, "tls.yaml"), "listen: 127.0.0.1:0\ntls: { cert: a, key: b }\n");
});

afterAll(() => rm(folder, { recursive: true, force: true }));

async function start(): Promise<CliProcess> {
  const gateway = startToolgate(["serve", "--config", join(folder, "gateway.yaml")], { env: { HOME: folder } });
  const [line] = await gateway.output("stderr", /"url":"[^"]+"/);
  expect(line).toBe(`"url":"unix:${socket}"`);
  return gateway;
}

describe.skipIf(process.platform === "win32")("a gateway on a Unix socket", () => {
  test(
    "is called by the command line and the TypeScript client, replaced after a crash, gone after a stop",
    PATIENT,
    async () => {
      await using crashed = await start();
      crashed.child.kill("SIGKILL");
      await crashed.ended;
      expect((await stat(socket)).isSocket()).toBe(true);
      await using gateway = await start();
      expect((await stat(socket)).mode & 0o777).toBe(0o600);
      for (const address of [`unix:${socket}`, `unix://${socket}`, "unix:gate.sock"]) {
        const listed = await toolgate(["tool", "list", "--address", address], { cwd: join(folder, "run") });
        expect(listed).toMatchObject({ code: 0, stderr: expect.stringContaining("No tools yet") });
      }
      const doctor = await toolgate(["doctor"], { env: { TOOLGATE_ADDRESS: `unix:${socket}`, HOME: folder } });
      expect(doctor.stdout).toMatch(new RegExp(`gateway unix:${socket}: toolgate `));
      for (const protocol of ["grpc", "connect"] as const) {
        using transport = createNodeTransport({ baseUrl: `unix:${socket}`, protocol });
        const [page] = await collect(createToolgateClient(transport).listPages());
        expect(page?.tools).toEqual([]);
      }
      const again = ["serve", "--config", join(folder, "gateway.yaml"), "--state", join(folder, "other-state")];
      const second = await toolgate(again, { env: { HOME: folder } });
      expect(second).toMatchObject({
        code: 1,
        stderr: `error: cannot listen on unix:${socket}: another gateway listens there: stop it, or take another path\n`,
      });
      gateway.child.kill("SIGTERM");
      expect((await gateway.ended).code).toBe(0);
      expect(await readdir(join(folder, "run"))).toEqual([]);
      const gone = await toolgate(["tool", "list", "--address", `unix:${socket}`]);
      expect(gone).toMatchObject({ code: 4, stderr: expect.stringContaining("GATEWAY_UNREACHABLE") });
    },
  );

  test("is asked for by a flag too, which does not go with a certificate", PATIENT, async () => {
    const flags = ["--config", join(folder, "tls.yaml"), "--listen", "unix:gate.sock"];
    const refused = await toolgate(["serve", ...flags], { env: { HOME: folder } });
    expect(refused).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("`tls` and --listen: a Unix socket needs no TLS"),
    });
    const wrong = await toolgate(["tool", "list", "--address", "unix:"]);
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('unix:PATH, got "unix:"') });
  });
});
