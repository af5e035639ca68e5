import { mkdir, mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { LeveledLogger, ServerParts } from "../../src/cli/host.ts";
import type { GatewayConfig } from "../../src/config/gateway-config.ts";
import { GatewayError } from "../../src/core/errors.ts";
import type { LogFields } from "../../src/core/logger.ts";
import { runInProcess, startCli } from "./test-host.ts";

/** A server that only keeps what it was given. */
interface FakeServer extends ServerParts {
  readonly configs: GatewayConfig[];
  readonly lines: { message: string; fields: LogFields | undefined }[];
  readonly levels: string[];
  stops: number;
}

function fakeServer(start?: () => never): FakeServer {
  const server: FakeServer = {
    configs: [],
    lines: [],
    levels: [],
    stops: 0,
    createGateway: async ({ config }) => {
      start?.();
      server.configs.push(config);
      return {
        url: "http://127.0.0.1:45001",
        reconfigure: async (next) => {
          server.configs.push(next);
          return { applied: ["defaults.timeout.read"], needRestart: ["listen", "log.level"] };
        },
        stop: async () => {
          server.stops++;
        },
      };
    },
    createLogger: () => logger,
  };
  const log = (message: string, fields?: LogFields): void => {
    server.lines.push({ message, fields });
  };
  const logger: LeveledLogger = {
    debug: log,
    info: log,
    warn: log,
    error: log,
    child: () => logger,
    setLevel: (level) => {
      server.levels.push(level);
    },
  };
  return server;
}

/** Folders for one test. */
async function folders(): Promise<{ cwd: string; home: string } & AsyncDisposable> {
  const root = await mkdtemp(join(tmpdir(), "toolgate-serve-"));
  const cwd = join(root, "work");
  const home = join(root, "home");
  await mkdir(cwd);
  await mkdir(home);
  return { cwd, home, [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }) };
}

test("serve says where it listens, and a signal stops it with 0", async () => {
  await using places = await folders();
  const server = fakeServer();
  const running = startCli(["serve"], { ...places, server, columns: 120 });
  await running.stderr.has("listening");
  running.signal("SIGTERM");
  expect(await running.ended).toEqual({
    code: 0,
    stdout: "",
    stderr: `toolgate 9.9.9 listening on http://127.0.0.1:45001, tools from ${places.home}/.toolgate/tools\n`,
  });
  expect(server.stops).toBe(1);
  expect(server.lines.map((line) => line.message)).toEqual(["gateway-stopping", "gateway-stopped"]);
});

test("where stderr is no terminal, serve logs where it listens instead of writing it", async () => {
  await using places = await folders();
  const server = fakeServer();
  const running = startCli(["serve"], { ...places, server });
  while (server.lines.length === 0) await new Promise((resolve) => setImmediate(resolve));
  running.signal("SIGTERM");
  expect(await running.ended).toEqual({ code: 0, stdout: "", stderr: "" });
  expect(server.lines[0]).toEqual({
    message: "gateway-listening",
    fields: { url: "http://127.0.0.1:45001", version: "9.9.9", tools: join(places.home, ".toolgate", "tools") },
  });
});

test("without a file serve takes built-in values and makes ~/.toolgate/tools [S2-78]", async () => {
  await using places = await folders();
  const server = fakeServer();
  const running = startCli(["serve"], { ...places, server, columns: 120 });
  await running.stderr.has("listening");
  running.signal("SIGINT");
  await running.ended;
  expect(server.configs[0]).toMatchObject({
    listen: { host: "127.0.0.1", port: 7433 },
    tools: { folder: join(places.home, ".toolgate", "tools") },
    state: { folder: join(places.home, ".toolgate", "state") },
  });
  expect((await stat(join(places.home, ".toolgate", "tools"))).isDirectory()).toBe(true);
});

test("./gateway.yaml wins over ~/.toolgate/gateway.yaml, --config over both, and flags over the file", async () => {
  await using places = await folders();
  await mkdir(join(places.home, ".toolgate"));
  await writeFile(join(places.home, ".toolgate", "gateway.yaml"), "listen: 127.0.0.1:1001\n");
  const portOf = async (...flags: string[]): Promise<GatewayConfig | undefined> => {
    const server = fakeServer();
    const running = startCli(["serve", ...flags], { ...places, server, columns: 120 });
    await running.stderr.has("listening");
    running.signal("SIGINT");
    await running.ended;
    return server.configs[0];
  };
  expect((await portOf())?.listen).toMatchObject({ port: 1001 });
  await writeFile(join(places.cwd, "gateway.yaml"), "listen: 127.0.0.1:1002\n");
  expect((await portOf())?.listen).toMatchObject({ port: 1002 });
  await writeFile(join(places.cwd, "other.yaml"), "listen: 127.0.0.1:1003\ntools: { folder: from-file }\n");
  const config = await portOf(
    "--config",
    "other.yaml",
    "--tools",
    "here",
    "--state",
    "/var/state",
    "--log-level",
    "warn",
  );
  expect(config).toMatchObject({
    listen: { port: 1003 },
    tools: { folder: join(places.cwd, "here") },
    state: { folder: "/var/state" },
    log: { level: "warn" },
  });
  expect(config?.origins.get("listen")).toBe("other.yaml:1");
  expect(config?.origins.get("tools.folder")).toBe("--tools");
  expect((await portOf("--config", "other.yaml", "--listen", "[::1]:1004"))?.listen).toEqual({
    host: "::1",
    port: 1004,
  });
});

test("every problem of gateway.yaml is told with file, line and column, and serve ends with 2 [S2-80]", async () => {
  await using places = await folders();
  await writeFile(join(places.cwd, "gateway.yaml"), "listn: 127.0.0.1:1\nlimits:\n  deadline: 5\n");
  const ran = await runInProcess(["serve"], { ...places, server: fakeServer() });
  expect(ran.code).toBe(2);
  expect(ran.stderr).toMatch(/^error: .*gateway\.yaml is refused\n/);
  expect(ran.stderr).toMatch(/\n {2}gateway\.yaml:1:1: .*listn.*listen/);
  expect(ran.stderr).toMatch(/\n {2}gateway\.yaml:3:\d+: .*deadline/);
});

test("a file that was named and is not there, and an address open to others, are refused with 2", async () => {
  await using places = await folders();
  const missing = await runInProcess(["serve", "--config", "gone.yaml"], { ...places, server: fakeServer() });
  expect(missing).toMatchObject({ code: 2, stderr: expect.stringContaining("gone.yaml: no such file or folder") });
  const open = await runInProcess(["serve", "--listen", "0.0.0.0:7433"], { ...places, server: fakeServer() });
  expect(open.code).toBe(2);
  expect(open.stderr).toContain("--listen:");
});

test("a port in use is told with the mend, whatever error wraps it", async () => {
  await using places = await folders();
  for (const error of [
    Object.assign(new Error("listen EADDRINUSE"), { code: "EADDRINUSE", syscall: "listen" }),
    new GatewayError("INTERNAL", "cannot listen", {
      cause: Object.assign(new Error("listen EADDRINUSE"), { code: "EADDRINUSE", syscall: "listen" }),
    }),
  ]) {
    const server = fakeServer(() => {
      throw error;
    });
    const ran = await runInProcess(["serve"], { ...places, server });
    expect(ran).toEqual({
      code: 1,
      stdout: "",
      stderr:
        "error: 127.0.0.1:7433 is in use by another program\n" +
        "mend: A gateway may run there already (toolgate doctor). Or listen elsewhere: --listen 127.0.0.1:0.\n",
    });
  }
});

test("a second signal ends the process at once with 1", async () => {
  await using places = await folders();
  const running = startCli(["serve"], { ...places, server: fakeServer(), columns: 120 });
  await running.stderr.has("listening");
  running.signal("SIGINT");
  running.signal("SIGINT");
  expect(running.exits).toEqual([1]);
  await running.ended;
});

test("an error nobody caught is logged, stops the gateway and ends with 1", async () => {
  await using places = await folders();
  const server = fakeServer();
  const running = startCli(["serve"], { ...places, server, columns: 120 });
  await running.stderr.has("listening");
  const error = new Error("stray");
  running.uncaught(error);
  expect((await running.ended).code).toBe(1);
  expect(server.stops).toBe(1);
  expect(server.lines).toEqual([
    { message: "uncaught-error", fields: { error } },
    { message: "gateway-stopped", fields: undefined },
  ]);
});

/** Resolves when the server has logged a line. */
async function logged(server: FakeServer, message: string): Promise<LogFields | undefined> {
  const find = (): FakeServer["lines"][number] | undefined => server.lines.find((line) => line.message === message);
  await expect.poll(find, { timeout: 20_000 }).toBeDefined();
  return find()?.fields;
}

test("a changed file of settings is taken over while the gateway runs, with what needs a new start", async () => {
  await using places = await folders();
  const file = join(places.cwd, "gateway.yaml");
  await writeFile(file, "log: {level: info}\n");
  const server = fakeServer();
  const running = startCli(["serve"], { ...places, server });
  await logged(server, "gateway-listening");
  await writeFile(file, "log: {level: debug}\nlisten: 127.0.0.1:1\n");
  expect(await logged(server, "settings reloaded")).toEqual({
    file,
    applied: ["defaults.timeout.read", "log.level"],
    needRestart: ["listen"],
  });
  expect(server.levels).toEqual(["debug"]);
  expect(server.configs.map(({ listen }) => "port" in listen && listen.port)).toEqual([7433, 1]);
  running.signal("SIGTERM");
  expect((await running.ended).code).toBe(0);
});

test("SIGHUP has the settings read again, and ends nothing where there is no file of them", async () => {
  await using places = await folders();
  const bare = fakeServer();
  const without = startCli(["serve"], { ...places, server: bare });
  await logged(bare, "gateway-listening");
  without.reload();
  await logged(bare, "settings-reload-skipped");
  without.signal("SIGTERM");
  expect((await without.ended).code).toBe(0);
  await writeFile(join(places.cwd, "gateway.yaml"), "{}\n");
  const server = fakeServer();
  const running = startCli(["serve"], { ...places, server });
  await logged(server, "gateway-listening");
  running.reload();
  await logged(server, "settings reloaded");
  expect(server.configs).toHaveLength(2);
  running.signal("SIGTERM");
  await running.ended;
});

test("settings that are refused stay out of force, and the log says what is wrong with them", async () => {
  await using places = await folders();
  const file = join(places.cwd, "gateway.yaml");
  await writeFile(file, "{}\n");
  const server = fakeServer();
  const running = startCli(["serve"], { ...places, server });
  await logged(server, "gateway-listening");
  await writeFile(file, "log: {levle: debug}\n");
  expect(await logged(server, "settings rejected")).toEqual({
    file,
    problem: 'gateway.yaml:1:7: unknown key `levle` in `log`; did you mean "level"?',
  });
  expect(server.configs).toHaveLength(1);
  running.signal("SIGTERM");
  await running.ended;
});

test("settings with faults are refused, unless --inject-faults says that they are wanted", async () => {
  await using places = await folders();
  await writeFile(join(places.cwd, "gateway.yaml"), "faults: {rules: [{tools: ['*'], outcome: timeout}]}\n");
  const refused = await runInProcess(["serve"], { ...places, server: fakeServer() });
  expect(refused.code).toBe(2);
  expect(refused.stderr).toContain("--inject-faults");
  const server = fakeServer();
  const running = startCli(["serve", "--inject-faults"], { ...places, server });
  expect(await logged(server, "faults-enabled")).toEqual({ rules: 1 });
  await logged(server, "gateway-listening");
  running.signal("SIGTERM");
  expect((await running.ended).code).toBe(0);
});
