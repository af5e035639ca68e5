import { rm } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { JsonObject } from "../../src/core/json.ts";
import { answerOf, listedTool, offered, outcome, problemLines, server, startServers } from "./server-fixture.ts";
import { ANONYMOUS, OPEN_END, readEvents, registration, toolNames, until } from "./support.ts";

test("each tool that a server offers is a tool of its own, called by its canonical name or its alias [S2-102, S2-106]", async () => {
  const { registry, servers } = await startServers({
    files: { "fs.yaml": server("fs") },
    offers: { fs: [offered("read_file"), offered("write_file", { title: "Write" })] },
  });
  expect(toolNames(registry)).toEqual(["fs/read_file", "fs/write_file"]);
  expect(listedTool(registry, "fs/write_file").definition).toMatchObject({
    title: "Write",
    description: "Does what write_file does",
    alias: "fs_write_file",
    kind: "mcp",
    source: "file:fs.yaml",
  });
  expect(await answerOf(registry, "fs/read_file", { q: "a" })).toBe('{"q":"a"}');
  expect(await answerOf(registry, "fs_write_file", { q: "b" })).toBe('{"q":"b"}');
  expect(servers.opened).toHaveLength(1);
  expect(servers.opened[0]?.calls.map(({ tool }) => tool)).toEqual(["read_file", "write_file"]);
});

test("arguments are checked before the server is reached", async () => {
  const { registry, servers } = await startServers({
    files: { "fs.yaml": server("fs") },
    offers: { fs: [offered("a")] },
  });
  expect(await answerOf(registry, "fs/a", { q: 1 })).toContain("ARGUMENTS_INVALID");
  expect(servers.opened[0]?.calls).toEqual([]);
});

test("servers a and b with a tool search and a declared tool search are three tools with targets of their own [M-D11, S2-45]", async () => {
  const { registry, servers } = await startServers({
    files: {
      "a.yaml": server("a"),
      "b.yaml": server("b"),
      "search.yaml":
        "name: search\ntype: http\nmethod: GET\nendpoint: http://127.0.0.1:1/s\ndescription: Searches the orders of a customer\n",
    },
    offers: { a: [offered("search")], b: [offered("search")] },
  });
  expect(toolNames(registry)).toEqual(["a/search", "b/search", "search"]);
  await answerOf(registry, "b/search");
  expect(servers.opened.map(({ keys, calls }) => [keys["server"], calls.length])).toEqual([
    ["a", 0],
    ["b", 1],
  ]);
  expect(problemLines(registry)).toEqual([]);
});

test("of two files that name one server the first stays, and both are named [M-D11]", async () => {
  const { registry } = await startServers({
    files: { "1.yaml": server("fs"), "2.yaml": server("fs", "title: second\n") },
    offers: { fs: [offered("a")] },
  });
  expect(toolNames(registry)).toEqual(["fs/a"]);
  expect(problemLines(registry)).toEqual([
    expect.stringMatching(/^file:2\.yaml:1 .*declared in file:1\.yaml:1:1.*file:2\.yaml does not serve/),
  ]);
});

test("a declared name that models would call a server's tool by is reported until one is renamed, and both serve [S2-107]", async () => {
  const http = (name: string): string =>
    `name: ${name}\ntype: http\nmethod: GET\nendpoint: http://127.0.0.1:1/s\ndescription: Searches the orders of a customer\n`;
  const { registry, write } = await startServers({
    files: { "fs.yaml": server("fs"), "search.yaml": http("fs_search") },
    offers: { fs: [offered("search")] },
  });
  expect(toolNames(registry)).toEqual(["fs/search", "fs_search"]);
  const { alias } = listedTool(registry, "fs/search").definition;
  expect(alias).toMatch(/^fs_search_[0-9a-f]{10}$/);
  expect(problemLines(registry)).toEqual([
    `server:fs:0 tool "fs/search" would be called fs_search by models, which is the name of a tool that is declared in file:search.yaml: both serve, and models call this one ${alias} until one of the two gets another name`,
  ]);
  expect(await answerOf(registry, alias, { q: "x" })).toBe('{"q":"x"}');

  await write("search.yaml", http("order_search"));
  await until(registry, () => problemLines(registry).length === 0);
  expect(listedTool(registry, "fs/search").definition.alias).toBe("fs_search");
});

test("names with dots, slashes, other scripts and more than 64 characters get an alias that providers take [M-D12]", async () => {
  const name = "warehouse-inventory-and-returns";
  const names = ["recalculate-reorder-levels-for-every-regional-depot", "stock.moves/list", "查询", "a b"];
  const start = async () => {
    const { registry } = await startServers({
      files: { "w.yaml": server(name) },
      offers: { [name]: names.map((each) => offered(each)) },
    });
    return registry;
  };
  const registry = await start();
  const aliases = registry.list(ANONYMOUS).tools.map(({ definition }) => definition.alias);
  expect(toolNames(registry)).toEqual(names.map((each) => `${name}/${each}`).toSorted());
  expect(new Set(aliases).size).toBe(4);
  for (const alias of aliases) {
    expect(alias).toMatch(/^[A-Za-z_][A-Za-z0-9_]{0,63}$/);
    expect(await answerOf(registry, alias, { q: alias })).toBe(`{"q":"${alias}"}`);
  }
  const again = await start();
  expect(again.list(ANONYMOUS).tools.map(({ definition }) => definition.alias)).toEqual(aliases);
});

test("a new list is applied as the difference: what is the same keeps its version, calls to what is gone are told so [M-D04]", async () => {
  const { registry, servers, lines } = await startServers({
    files: { "fs.yaml": server("fs", "tools:\n  exclude: [hidden_*]\n") },
    offers: { fs: [offered("same"), offered("gone"), offered("other"), offered("hidden_x")] },
  });
  const etags = (): Record<string, string> =>
    Object.fromEntries(registry.list(ANONYMOUS).tools.map(({ definition }) => [definition.name, definition.etag]));
  const before = etags();
  const { revision } = registry.list(ANONYMOUS);
  const schema = { type: "object", properties: { q: { type: "integer" } } };
  servers.opened[0]?.offers([
    offered("same"),
    offered("added"),
    offered("other", { inputSchema: schema }),
    offered("hidden_y"),
  ]);
  await until(registry, () => toolNames(registry).includes("fs/added"));
  expect(toolNames(registry)).toEqual(["fs/added", "fs/other", "fs/same"]);
  expect(etags()["fs/same"]).toBe(before["fs/same"]);
  expect(etags()["fs/other"]).not.toBe(before["fs/other"]);
  expect(await answerOf(registry, "fs/gone")).toMatch(/^TOOL_NOT_FOUND: no tool "fs\/gone"/);
  expect(await answerOf(registry, "fs/other", { q: 7 })).toBe('{"q":7}');

  const watch = registry.watch(revision, ANONYMOUS, OPEN_END);
  const events = await readEvents(watch, ({ type }) => type === "synced");
  expect(
    events.flatMap((event) => {
      if (event.type === "upserted") return [`+${event.view.definition.name}`];
      return event.type === "removed" ? [`-${event.name}`] : [];
    }),
  ).toEqual(expect.arrayContaining(["+fs/added", "+fs/other", "-fs/gone"]));
  expect(events.filter(({ type }) => type !== "problems")).toHaveLength(4);
  const logged = lines.filter(({ message }) => message === "server tools changed").at(-1);
  expect(logged?.fields).toMatchObject({ server: "fs", added: ["fs/added"], removed: ["fs/gone"], leftOut: 1 });
  expect(logged?.fields["changed"]).toEqual([
    expect.stringMatching(/^fs\/other: input_schema [0-9a-f]{12} → [0-9a-f]{12}$/),
  ]);
});

test("calls in flight keep the version they began with, and the server's upstream with it", async () => {
  const { registry, servers, folder } = await startServers({
    files: { "fs.yaml": server("fs") },
    offers: { fs: [offered("a")] },
  });
  const lease = registry.acquire("fs/a", ANONYMOUS);
  const [upstream] = servers.opened;
  upstream?.offers([offered("a", { description: "changed" })]);
  await until(registry, () => listedTool(registry, "fs/a").definition.description === "changed");
  expect(lease.definition.description).toBe("Does what a does");
  await rm(join(folder, "fs.yaml"));
  await until(registry, () => toolNames(registry).length === 0);
  expect(upstream?.disposals).toBe(0);
  lease[Symbol.dispose]();
  await expect.poll(() => upstream?.disposals).toBe(1);
});

test("removing the file takes its tools and the upstream away", async () => {
  const { registry, servers, folder } = await startServers({
    files: { "fs.yaml": server("fs") },
    offers: { fs: [offered("a"), offered("b")] },
  });
  await rm(join(folder, "fs.yaml"));
  await until(registry, () => toolNames(registry).length === 0);
  await expect.poll(() => servers.opened[0]?.disposals).toBe(1);
  expect(await answerOf(registry, "fs/a")).toContain("TOOL_NOT_FOUND");
  expect(problemLines(registry)).toEqual([]);
});

test("the tools of a server that is down stay listed with the reason, and come back [M-D02]", async () => {
  const { registry, servers } = await startServers({
    files: { "fs.yaml": server("fs") },
    offers: { fs: [offered("a")] },
  });
  const { revision } = registry.list(ANONYMOUS);
  const { etag } = listedTool(registry, "fs/a").definition;
  servers.opened[0]?.becomes({ state: "unavailable", reason: "exited with code 1" });
  await until(registry, () => listedTool(registry, "fs/a").availability.state === "unavailable");
  expect(listedTool(registry, "fs/a").availability.reason).toBe("exited with code 1");
  const [event] = await readEvents(registry.watch(revision, ANONYMOUS, OPEN_END), () => true);
  expect(event).toMatchObject({ type: "upserted", view: { availability: { state: "unavailable" } } });
  servers.opened[0]?.becomes({ state: "ready", reason: "" });
  expect(listedTool(registry, "fs/a").availability.state).toBe("ready");
  expect(listedTool(registry, "fs/a").definition.etag).toBe(etag);
});

test("a server that has never told of tools is shown as starting, then as failed, until it tells of some [M-D07, M-D24]", async () => {
  const { registry, servers } = await startServers({ files: { "fs.yaml": server("fs") } });
  expect(toolNames(registry)).toEqual([]);
  expect(problemLines(registry)).toEqual(['server:fs:0 server "fs" is starting and has told of no tools yet']);
  servers.opened[0]?.becomes({ state: "unavailable", reason: "no initialize within 5 s" });
  await until(registry, () => problemLines(registry)[0]?.includes("no initialize") === true);
  expect(registry.list(ANONYMOUS).problems).toEqual([
    expect.objectContaining({ note: false, message: 'server "fs" has offered no tools: no initialize within 5 s' }),
  ]);
  const checks = await registry.diagnose(OPEN_END);
  expect(checks).toContainEqual(
    expect.objectContaining({
      subject: "server fs",
      status: "failed",
      message: "unavailable: no initialize within 5 s",
    }),
  );
  servers.opened[0]?.becomes({ state: "ready", reason: "" });
  servers.opened[0]?.offers([offered("a")]);
  await until(registry, () => toolNames(registry).length === 1);
  expect(problemLines(registry)).toEqual([]);
});

test("a name that is a server's is no tool, and the error says which are", async () => {
  const { registry } = await startServers({ files: { "fs.yaml": server("fs") }, offers: { fs: [offered("a")] } });
  expect(await answerOf(registry, "fs")).toBe(
    'TOOL_NOT_FOUND: "fs" is a server and no tool: call one of its tools, such as "fs/a"',
  );
});

test("`enabled: false` on the server keeps its tools listed as disabled and closes the upstream", async () => {
  const { registry, servers, write } = await startServers({
    files: { "fs.yaml": server("fs") },
    offers: { fs: [offered("a")] },
  });
  await write("fs.yaml", server("fs", "enabled: false\n"));
  await until(registry, () => listedTool(registry, "fs/a").availability.state === "disabled");
  expect(await answerOf(registry, "fs/a")).toContain("TOOL_DISABLED");
  await expect.poll(() => servers.opened[0]?.disposals).toBe(1);
  await write("fs.yaml", server("fs"));
  await until(registry, () => listedTool(registry, "fs/a").availability.state === "ready");
  expect(await answerOf(registry, "fs/a", { q: "x" })).toBe('{"q":"x"}');
  expect(servers.opened).toHaveLength(2);
});

test("what the file says of the tools is another without another upstream; what it says of the server opens one", async () => {
  const { registry, servers, write } = await startServers({
    files: { "fs.yaml": server("fs") },
    offers: { fs: [offered("a"), offered("b")] },
  });
  const b = listedTool(registry, "fs/b").definition.etag;
  await write("fs.yaml", server("fs", "tools:\n  overrides:\n    a: {description: Another}\n"));
  await until(registry, () => listedTool(registry, "fs/a").definition.description === "Another");
  expect(listedTool(registry, "fs/b").definition.etag).toBe(b);
  expect(servers.opened).toHaveLength(1);

  await write("fs.yaml", server("fs").replace("server: fs", "server: fs, version: '2'"));
  await until(registry, () => listedTool(registry, "fs/b").definition.etag !== b);
  expect(servers.opened).toHaveLength(2);
  await expect.poll(() => servers.opened[0]?.disposals).toBe(1);
  expect(await answerOf(registry, "fs/a")).toBe("{}");
});

test("the tools of the version before serve until the new one has told of its own", async () => {
  const { registry, servers, write } = await startServers({
    files: { "fs.yaml": server("fs") },
    offers: { fs: [offered("a")] },
  });
  servers.tools.delete("fs");
  await write("fs.yaml", server("fs").replace("server: fs", "server: fs, version: '2'"));
  await expect.poll(() => servers.opened.length).toBe(2);
  await answerOf(registry, "fs/a");
  expect(servers.opened.map(({ calls, disposals }) => [calls.length, disposals])).toEqual([
    [1, 0],
    [0, 0],
  ]);
  servers.opened[1]?.offers([offered("b")]);
  await until(registry, () => toolNames(registry).includes("fs/b"));
  expect(toolNames(registry)).toEqual(["fs/b"]);
  await expect.poll(() => servers.opened[0]?.disposals).toBe(1);
});

test("a server can be registered and unregistered over the wire; its tools cannot be taken one by one", async () => {
  const { registry, servers } = await startServers({ offers: { fs: [offered("a")] } });
  const made = await registry.register(registration(server("fs")), ANONYMOUS, OPEN_END);
  expect(made.tools.map(({ definition }) => definition.name)).toEqual(["fs/a"]);
  const remove = (name: string) =>
    registry.unregister({ name, etag: undefined, allowMissing: false }, ANONYMOUS, OPEN_END);
  await expect(remove("fs/a")).rejects.toMatchObject({ reason: "TOOL_NOT_REMOVABLE" });
  // What is said of the tools alone does not open another upstream.
  await registry.register(registration(server("fs", "tools: {exclude: [a]}\n")), ANONYMOUS, OPEN_END);
  expect(toolNames(registry)).toEqual([]);
  expect(servers.opened).toHaveLength(1);
  await remove("fs");
  await expect.poll(() => servers.opened[0]?.disposals).toBe(1);
});

test("the breaker of one tool leaves the others of its server alone, and a new list keeps it", async () => {
  const more = "circuit_breaker: {failure_threshold: 1}\n";
  const { registry, servers } = await startServers({
    files: { "fs.yaml": server("fs", more) },
    offers: { fs: [offered("a"), offered("b")] },
  });
  const [upstream] = servers.opened;
  if (upstream !== undefined) {
    upstream.answer = ({ tool }) => ({
      content: [],
      effect: "none",
      ...(tool === "a"
        ? {
            failure: {
              reason: "UPSTREAM_STATUS",
              message: "no",
              upstreamCode: 500,
              retryable: false,
              upstreamFault: true,
            },
          }
        : { value: 1 }),
    });
  }
  await outcome(registry, "fs/a");
  expect(await answerOf(registry, "fs/a")).toContain("CIRCUIT_OPEN");
  expect(listedTool(registry, "fs/a").availability.state).toBe("unavailable");
  expect(await answerOf(registry, "fs/b")).toBe("1");
  upstream?.offers([offered("a"), offered("c")]);
  await until(registry, () => toolNames(registry).includes("fs/c"));
  expect(await answerOf(registry, "fs/a")).toContain("CIRCUIT_OPEN");
});

/** Tools that cannot be served as they are, with a part of the reason. */
const ODD: readonly (readonly [name: string, more: Parameters<typeof offered>[1], why: string])[] = [
  ["large", { inputSchema: { type: "object", examples: ["x".repeat(1_100_000)] } }, "has more than 1 MiB"],
  ["", {}, "its name is empty"],
  ["x".repeat(257), {}, "its name has more than 256 characters"],
  ["line\nend", {}, "its name has control characters, or characters that are not seen"],
  ["turned\u202e", {}, "its name has control characters, or characters that are not seen"],
  ["list", { inputSchema: { type: "array" } }, "its input schema is not of type object"],
  ["network", { inputSchema: withQ({ $ref: "http://127.0.0.1:9/schema.json" }) }, "is not in the schema"],
  ["hostile", { inputSchema: withQ({ type: "string", pattern: "^(?=a)" }) }, "cannot be run in linear time"],
  ["draft3", { inputSchema: { $schema: "http://json-schema.org/draft-03/schema#" } }, "2019-09 or 2020-12"],
  ["wrong", { inputSchema: withQ({ type: "strange" }) }, "not a JSON Schema"],
  ["deep", { inputSchema: nested(100) }, "too complex"],
];

function withQ(q: JsonObject): JsonObject {
  return { type: "object", properties: { q } };
}

function nested(levels: number): JsonObject {
  let schema: JsonObject = { type: "string" };
  for (let level = 0; level < levels; level++) schema = withQ(schema);
  return schema;
}

test("one odd tool is held back with the reason, and no other [X-D04, X-D05]", async () => {
  const tools = ODD.map(([name, more]) => offered(name, more));
  const { registry } = await startServers({
    files: { "fs.yaml": server("fs") },
    offers: { fs: [...tools, offered("good"), offered("good", { description: "again" })] },
  });
  expect(toolNames(registry)).toEqual(["fs/good"]);
  expect(listedTool(registry, "fs/good").definition.description).toBe("Does what good does");
  const problems = problemLines(registry);
  for (const [, , why] of ODD) expect(problems.some((line) => line.includes(why))).toBe(true);
  expect(problems.filter((line) => line.includes("another tool of the same name"))).toHaveLength(1);
  expect(problems).toHaveLength(ODD.length + 1);
});

test("an examination says once why a server is not there, and warns of a tool that its server offers so that it cannot be used", async () => {
  const { registry, servers } = await startServers({
    files: {
      "dead.yaml": server("dead").replace("server: dead", "server: dead, tools: none"),
      "fs.yaml": server("fs"),
    },
    offers: { fs: [offered("good"), offered("odd", { inputSchema: { type: "nothing" } })] },
  });
  const dead = servers.opened.find(({ keys }) => JSON.stringify(keys).includes("dead"));
  dead?.becomes({ state: "unavailable", reason: "failed: the server exited with code 1: no" });
  await until(registry, () => problemLines(registry).some((line) => line.includes("has offered no tools")));
  const message = "the server exited with code 1: no";
  Object.assign(dead ?? {}, { probe: () => Promise.resolve({ ok: false, message, mend: "Look at it." }) });
  const checks = await registry.diagnose(OPEN_END);
  expect(checks.filter((check) => check.message.includes("exited"))).toEqual([
    { subject: "server dead", status: "failed", message: `unavailable: failed: ${message}`, mend: "Look at it." },
  ]);
  const odd = expect.stringContaining('tool "odd" is held back');
  expect(checks).toContainEqual(expect.objectContaining({ subject: "server:fs", status: "warning", message: odd }));
  expect(checks.filter(({ status }) => status === "failed")).toHaveLength(1);
});

test("a description over 65,536 characters is shortened and noted; an output schema that cannot be used is left out and noted", async () => {
  const { registry } = await startServers({
    files: { "fs.yaml": server("fs") },
    offers: {
      fs: [
        offered("whole", { description: "x".repeat(65_536) }),
        offered("long", { description: "😀".repeat(65_537) }),
        offered("output", { outputSchema: { type: "nothing" } }),
      ],
    },
  });
  const of = (name: string) => listedTool(registry, `fs/${name}`).definition;
  expect(of("whole").description).toHaveLength(65_536);
  expect(of("long").description).toBe(`${"😀".repeat(65_535)}…`);
  expect(of("output").outputSchema).toBeUndefined();
  expect(problemLines(registry)).toEqual([
    'server:fs:0 tool "long": its description has more than 65536 characters and was shortened',
    expect.stringContaining('tool "output": its output schema cannot be used and was left out'),
  ]);
});

test("a server with more tools than one may have keeps the first, and says how many are left [X-D05]", async () => {
  const many = Array.from({ length: 5_003 }, (_, i) => offered(`t${i}`, { inputSchema: { type: "object" } }));
  const { registry } = await startServers({ files: { "fs.yaml": server("fs") }, offers: { fs: many } });
  expect(toolNames(registry)).toHaveLength(5_000);
  expect(problemLines(registry)).toEqual(["server:fs:0 offers 3 tools more than the 5000 that one server may have"]);
});

test("references inside a schema stay with what they lead to, and arguments are held against that [M-D13]", async () => {
  const query = { type: "object", properties: { text: { type: "string" } }, required: ["text"] };
  const described = (ref: string) => ({ q: { $ref: ref, description: "What to look for" } });
  const defs = { type: "object", properties: described("#/$defs/Query"), $defs: { Query: query } };
  const definitions = {
    $schema: "http://json-schema.org/draft-07/schema#",
    type: "object",
    properties: described("#/definitions/Query"),
    definitions: { Query: query },
  };
  const own = { type: "object", properties: { a: query, q: { $ref: "#/properties/a" } } };
  const { registry } = await startServers({
    files: { "fs.yaml": server("fs") },
    offers: {
      fs: Object.entries({ defs, definitions, own }).map(([name, inputSchema]) => offered(name, { inputSchema })),
    },
  });
  expect(listedTool(registry, "fs/defs").definition.inputSchema).toEqual(defs);
  expect(listedTool(registry, "fs/definitions").definition.inputSchema).toEqual(definitions);
  for (const name of ["fs/defs", "fs/definitions", "fs/own"]) {
    expect(await answerOf(registry, name, { q: { text: "a" } })).toBe('{"q":{"text":"a"}}');
    expect(await answerOf(registry, name, { q: { text: 1 } })).toContain("ARGUMENTS_INVALID");
    expect(await answerOf(registry, name, { q: {} })).toContain("ARGUMENTS_INVALID");
  }
});

test("alternatives at the top of a schema are kept, and a call that fits none is refused [M-D14]", async () => {
  const properties = { a: { type: "string" }, b: { type: "string" } };
  const inputSchema = { type: "object", properties, anyOf: [{ required: ["a"] }, { required: ["b"] }] };
  const { registry } = await startServers({
    files: { "fs.yaml": server("fs") },
    offers: { fs: [offered("either", { inputSchema })] },
  });
  expect(await answerOf(registry, "fs/either", { b: "x" })).toBe('{"b":"x"}');
  expect(await answerOf(registry, "fs/either")).toContain("ARGUMENTS_INVALID");
});
