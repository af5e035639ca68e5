import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { toolgate } from "./cli-process.ts";
import { createGatewayClient, type GatewayClient, reasonOf, retryUntil, valueOf } from "./gateway-client.ts";
import { startAgain, startGateway } from "./gateway-process.ts";
import { startHttpServers } from "./http-servers.ts";
import { REPOSITORY, START_TIMEOUT_MS } from "./spawned.ts";

/** Answers as an MCP server does, at the cost of a shell. */
const TINY_PROGRAM = join(REPOSITORY, "bench/servers/tiny-mcp.sh");

const declaration = (name: string, url: string, more = ""): string =>
  `name: ${name}\ntype: mcp\nmcp: { url: '${url}', protocol: legacy }\n${more}`;

async function namesOf(client: GatewayClient): Promise<string[]> {
  const names: string[] = [];
  let pageToken = "";
  do {
    const page = await client.service.list({ pageSize: 1000, pageToken });
    names.push(...page.tools.map(({ name }) => name));
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return names;
}

test(
  "a server that tells of a changed list has it in List within 3 s, its settings still hold, and what is gone cannot be called [M-D04]",
  async () => {
    await using servers = await startHttpServers();
    servers.tools.set("shop", [{ name: "find" }, { name: "gone" }, { name: "price" }, { name: "admin_x" }]);
    const more = "tools: { exclude: ['admin_*'], overrides: { find: { description: Finds goods of the shop } } }\n";
    await using gateway = await startGateway({
      tools: { "shop.yaml": declaration("shop", servers.url("shop"), more) },
    });
    using client = createGatewayClient(gateway.port);
    await retryUntil(
      () => namesOf(client),
      (names) => names.length === 3,
      30_000,
    );
    await expect.poll(() => servers.listeners("shop"), { timeout: 30_000 }).toBeGreaterThan(0);

    const schema = { type: "object", properties: { currency: { type: "string" } }, required: ["currency"] };
    servers.tools.set("shop", [
      { name: "find" },
      { name: "added" },
      { name: "price", inputSchema: schema },
      { name: "admin_y" },
    ]);
    servers.notify("shop");
    const tookMs = await retryUntil(
      () => namesOf(client),
      (names) => names.includes("shop/added"),
      30_000,
    );
    expect(await namesOf(client)).toEqual(["shop/added", "shop/find", "shop/price"]);
    expect(tookMs).toBeLessThan(20_000);
    const { tools } = await client.service.list({});
    expect(tools.map(({ description }) => description)).toContain("Finds goods of the shop");
    expect(reasonOf(await client.call("shop/gone").catch((error: unknown) => error))).toBe("TOOL_NOT_FOUND");
    expect(reasonOf(await client.call("shop/price").catch((error: unknown) => error))).toBe("ARGUMENTS_INVALID");
    expect(valueOf(await client.call("shop_find", {}))).toEqual({ server: "shop", tool: "find", arguments: {} });
  },
  START_TIMEOUT_MS * 3,
);

test(
  "nothing of where a server is stands in List; the command line shows its tools, explain where each value is from, and doctor its server [S2-52, S2-76]",
  async () => {
    await using servers = await startHttpServers();
    servers.tools.set("shop", [{ name: "find" }]);
    await using gateway = await startGateway({ tools: { "shop.yaml": declaration("shop", servers.url("shop")) } });
    using client = createGatewayClient(gateway.port);
    await retryUntil(
      () => namesOf(client),
      (names) => names.length === 1,
      30_000,
    );
    const { tools } = await client.service.list({});
    const { port } = new URL(servers.url("shop"));
    expect(
      JSON.stringify(tools, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value)),
    ).not.toContain(port);
    const address = ["--address", `127.0.0.1:${gateway.port}`];
    const list = await toolgate(["tool", "list", ...address]);
    expect(list.stdout).toMatch(/shop\/find +active +mcp +file:shop\.yaml/);
    const explain = await toolgate(["explain", "shop", ...address]);
    expect(explain.stdout).toMatch(/offered\.tools +server shop +\["shop\/find"\]/);
    const doctor = await toolgate(["doctor", ...address]);
    expect(doctor.stdout).toMatch(/ok +server shop: /);
  },
  START_TIMEOUT_MS * 3,
);

test.for(["program", "remote"] as const)(
  "of 200 servers (%s) a third hangs, and the tools of the others are there as soon as without them [M-D07, R-D09]",
  { timeout: START_TIMEOUT_MS * 4 },
  async (kind) => {
    await using servers = await startHttpServers();
    const names = Array.from({ length: 200 }, (_, i) => `s${i}`);
    const hangs = (name: string): boolean => Number(name.slice(1)) % 3 === 0;
    const sound = names.filter((name) => !hangs(name));
    for (const name of sound) servers.tools.set(name, [{ name: "work" }]);
    const program = (name: string): string => {
      const args = hangs(name) ? ["-c", "exec cat >/dev/null"] : [TINY_PROGRAM];
      return JSON.stringify({ name, type: "mcp", mcp: { command: "sh", args } });
    };
    const fileOf = (name: string): string =>
      kind === "program" ? program(name) : declaration(name, servers.url(name));
    const untilThere = async (some: readonly string[]): Promise<number> => {
      await using gateway = await startGateway({
        tools: Object.fromEntries(some.map((name) => [`${name}.yaml`, fileOf(name)])),
      });
      using client = createGatewayClient(gateway.port);
      const tookMs = await retryUntil(
        () => namesOf(client),
        (listed) => listed.length === sound.length,
        60_000,
      );
      expect((await client.call("s1/work", {})).result?.failure).toBeUndefined();
      return tookMs;
    };
    const alone = await untilThere(sound);
    const together = await untilThere(names);
    // Hardly anything is lost on a machine that has nothing else to do; one that hangs is given up after 30 seconds.
    expect(together - alone).toBeLessThan(15_000 + alone);
  },
);

test(
  "a declared tool, and servers whose tools have the same name, stay apart from file to call [M-D11, S2-45, S2-106]",
  async () => {
    await using servers = await startHttpServers();
    for (const name of ["a", "b"]) servers.tools.set(name, [{ name: "search" }]);
    const script =
      "name: search\ntype: script\ncommand: echo\nargs: [mine]\ndescription: Searches what is mine alone\n";
    await using gateway = await startGateway({
      tools: {
        "a.yaml": declaration("a", servers.url("a")),
        "b.yaml": declaration("b", servers.url("b")),
        "search.yaml": script,
      },
    });
    using client = createGatewayClient(gateway.port);
    await retryUntil(
      () => namesOf(client),
      (names) => names.length === 3,
      30_000,
    );
    expect(valueOf(await client.call("a/search"))).toMatchObject({ server: "a" });
    expect(valueOf(await client.call("b/search"))).toMatchObject({ server: "b" });
    const { result } = await client.call("search");
    expect(result?.content[0]?.part.value).toContain("mine");
    await writeFile(join(gateway.folder, "tools", "b2.yaml"), declaration("b", servers.url("a")));
    await retryUntil(
      () => client.service.list({}),
      ({ problems }) =>
        problems.some(({ message }) => message.includes("file:b.yaml") && message.includes("file:b2.yaml")),
    );
    expect(valueOf(await client.call("b/search"))).toMatchObject({ server: "b" });
  },
  START_TIMEOUT_MS * 3,
);

test(
  "a gateway that is killed leaves no process of its servers behind, wrapped in a shell or not, and the next one starts one of each [M-D21]",
  async () => {
    const folder = await mkdtemp(join(tmpdir(), "toolgate-killed-"));
    const log = join(folder, "pids");
    const wrapped = `echo $$ >>'${log}'; sh -c "echo \\$\\$ >>'${log}'; sh '${TINY_PROGRAM}'; true"; true`;
    const stubborn = `trap '' TERM; echo $$ >>'${log}'; sh '${TINY_PROGRAM}'; while :; do sleep 1; done`;
    const file = (name: string, script: string): string =>
      JSON.stringify({ name, type: "mcp", mcp: { command: "sh", args: ["-c", script], protocol: "legacy" } });
    const pids = async (): Promise<number[]> => (await readFile(log, "utf8")).trim().split("\n").map(Number);
    try {
      await using gateway = await startGateway({
        tools: { "wrapped.yaml": file("wrapped", wrapped), "stubborn.yaml": file("stubborn", stubborn) },
      });
      const both = async (port: number): Promise<void> => {
        using client = createGatewayClient(port);
        await retryUntil(
          () => namesOf(client),
          (names) => names.length === 2,
          60_000,
        );
      };
      await both(gateway.port);
      const before = await pids();
      expect(before).toHaveLength(3);
      await gateway.stop("SIGKILL");
      await expect.poll(() => before.filter(isAlive), { timeout: 20_000 }).toEqual([]);
      await using next = await startAgain(gateway.folder);
      await both(next.port);
      const after = (await pids()).slice(before.length);
      expect(after.filter(isAlive)).toHaveLength(3);
      expect(after).toHaveLength(3);
      await next.stop("SIGTERM");
      expect(after.filter(isAlive)).toEqual([]);
    } finally {
      await rm(folder, { recursive: true });
    }
  },
  START_TIMEOUT_MS * 3,
);

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
