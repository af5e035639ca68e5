import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type OpenGateway, openGateway, temporaryFolder } from "./effects-gateway.ts";
import { reasonOf } from "./gateway-client.ts";

function tool(name: string, keys: Readonly<Record<string, unknown>> = {}): string {
  const standard = { name, description: "用于检查谁可以调用 shows who may call a tool", type: "http" };
  return JSON.stringify({ ...standard, endpoint: "http://127.0.0.1:1/", ...keys });
}

/** What a caller finds of the tool `one`, by each way to it. */
async function found({ client }: OpenGateway): Promise<readonly unknown[]> {
  const { service } = client;
  const tools = (await service.list({})).tools.map(({ name }) => name);
  const invocation = { name: "one", validateOnly: true };
  const stream = async (): Promise<unknown> => {
    for await (const { event } of service.callStream({ invocation })) if (event.case === "completed") return "OK";
    return "no end";
  };
  return [
    tools.includes("one") ? "OK" : "TOOL_NOT_FOUND",
    ...(await Promise.all([
      service.get({ name: "one" }).then(() => "OK", reasonOf),
      service.call({ invocation }).then(() => "OK", reasonOf),
      stream().catch(reasonOf),
    ])),
  ];
}

const SEEN = Array(4).fill("OK");
const HIDDEN = Array(4).fill("TOOL_NOT_FOUND");

test.for([
  ["allowed_roles", "operator"],
  ["allowed_subjects", "anonymous"],
] as const)("a changed `%s` decides at once by every way to a tool [S2-55, S2-56]", async ([key, own]) => {
  await using folder = await temporaryFolder();
  const files = { "tools/one.yaml": tool("one", { [key]: [own] }) };
  await using gateway = await openGateway({ folder: folder.path, files });
  expect(await found(gateway)).toEqual(SEEN);
  await writeFile(join(folder.path, "tools/one.yaml"), tool("one", { [key]: ["others"] }));
  await expect.poll(() => found(gateway), { timeout: 20_000 }).toEqual(HIDDEN);
});

test("a group's rule stands in for its tools, the defaults' for all others, and the nearest counts alone", async () => {
  await using folder = await temporaryFolder();
  await using gateway = await openGateway({
    folder: folder.path,
    files: {
      "tools/defaults.yaml": tool("defaults"),
      "tools/group.yaml": tool("group", { group: "mine" }),
      "tools/own.yaml": tool("own", { group: "mine", allowed_subjects: ["key:other"] }),
      "tools/open.yaml": tool("open", { group: "mine", allowed_roles: ["*"] }),
    },
    settings: { defaults: { allowed_roles: ["others"] }, groups: { mine: { allowed_roles: ["operator"] } } },
  });
  const names = async (): Promise<readonly string[]> =>
    (await gateway.client.service.list({})).tools.map(({ name }) => name);
  expect(await names()).toEqual(["group", "open"]);
  expect((await gateway.reconfigure({ groups: { mine: { allowed_roles: ["others"] } } })).applied).toEqual(
    expect.arrayContaining(["defaults.allowed_roles", "groups.mine"]),
  );
  await expect.poll(names, { timeout: 20_000 }).toEqual(["defaults", "open"]);
});

test("other toolsets are in force soon after, by every way to a tool, and select in List and Watch [S1-18, S2-55, S2-124]", async () => {
  await using folder = await temporaryFolder();
  const settings = (roles: readonly string[], tools: readonly string[]) => ({
    toolsets: { mine: { description: "For tests", tools, allowed_roles: roles }, all: { includes: ["mine"] } },
  });
  await using gateway = await openGateway({
    folder: folder.path,
    files: { "tools/one.yaml": tool("one"), "tools/two.yaml": tool("two", { toolset: "all" }) },
    settings: settings(["operator"], ["on?"]),
  });
  const { service } = gateway.client;
  const names = async (...toolsets: string[]): Promise<readonly string[]> =>
    (await service.list({ filter: { toolsets } })).tools.map(({ name }) => name);
  expect(await found(gateway)).toEqual(SEEN);
  expect(await Promise.all([names("mine"), names("all"), names("none"), names()])).toEqual([
    ["one"],
    ["one", "two"],
    [],
    ["one", "two"],
  ]);
  const watched: unknown[] = [];
  for await (const { event } of service.watch({ filter: { toolsets: ["mine"] } })) {
    watched.push(event.case === "upserted" ? event.value.name : event.case);
    if (event.case === "synced") break;
  }
  expect(watched).toEqual(["one", "synced"]);
  const changed = await gateway.reconfigure(settings(["others"], ["on?"]));
  expect(changed).toMatchObject({ applied: ["toolsets.mine"], needRestart: [] });
  await expect.poll(() => found(gateway), { timeout: 20_000 }).toEqual(HIDDEN);
  await gateway.reconfigure(settings(["others"], ["tw*"]));
  await expect.poll(() => found(gateway), { timeout: 20_000 }).toEqual(SEEN);
  await expect.poll(() => names(), { timeout: 20_000 }).toEqual(["one"]);
});
