import { Code, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { expect, test } from "vitest";
import { ToolGatewayService } from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import { SchemaForm, ToolState } from "../../gen/toolgate/v1/tool_pb.ts";
import { providerSchema } from "../../src/models/provider-schema.ts";
import { failureOf } from "./clients.ts";
import { grpcClients, type Served, serve } from "./serve.ts";

/** A door whose tools are `echo` and `tool_000` … */
async function serveMany(count: number): Promise<Served> {
  const served = await serve();
  for (let i = 0; i < count; i++) {
    served.registry.add({
      name: `tool_${String(i).padStart(3, "0")}`,
      description: "订单",
      inputSchema: { type: "object" },
    });
  }
  return served;
}

/** Names of all tools, page by page. */
async function allNames(served: Served, pageSize: number, between: () => void = () => undefined): Promise<string[]> {
  const { tools } = grpcClients(served.url);
  const names: string[] = [];
  let pageToken = "";
  do {
    const page = await tools.list({ pageSize, pageToken });
    expect(page.tools.length).toBeLessThanOrEqual(pageSize);
    names.push(...page.tools.map(({ name }) => name));
    pageToken = page.nextPageToken;
    between();
  } while (pageToken !== "");
  return names;
}

test("pages hold all tools once, in order of name [S2-08]", async () => {
  await using served = await serveMany(25);
  const names = await allNames(served, 7);
  expect(names).toHaveLength(26);
  expect(names).toEqual(names.toSorted());
});

test("a page goes on after a name, so tools that come and go between pages hide no other", async () => {
  await using served = await serveMany(25);
  let round = 0;
  const names = await allNames(served, 10, () => {
    if (round++ !== 0) return;
    served.registry.remove("tool_003");
    served.registry.remove("tool_008");
    served.registry.add({ name: "a_new" });
  });
  for (let i = 9; i < 25; i++) expect(names).toContain(`tool_${String(i).padStart(3, "0")}`);
  expect(new Set(names).size).toBe(names.length);
});

test("sizes: 100 where nothing is said, at most 1,000, and none below 0", async () => {
  await using served = await serveMany(1100);
  const { tools } = grpcClients(served.url);
  expect((await tools.list({})).tools).toHaveLength(100);
  expect((await tools.list({ pageSize: 5000 })).tools).toHaveLength(1000);
  const failure = await failureOf(tools.list({ pageSize: -1 }));
  expect(failure).toMatchObject({ code: Code.InvalidArgument, reason: "REQUEST_INVALID", fields: ["page_size"] });
});

test("the last page has no token, also where it is full", async () => {
  await using served = await serveMany(3);
  const { tools } = grpcClients(served.url);
  expect((await tools.list({ pageSize: 4 })).nextPageToken).toBe("");
  expect((await tools.list({ pageSize: 3 })).nextPageToken).not.toBe("");
});

test("a page token is good for its filter and form only, and not when it was changed", async () => {
  await using served = await serveMany(5);
  const { tools } = grpcClients(served.url);
  const { nextPageToken: pageToken } = await tools.list({ pageSize: 2 });
  for (const request of [
    { pageToken, omitSchemas: true },
    { pageToken, schemaForm: SchemaForm.PROVIDER },
    { pageToken, filter: { names: ["tool_*"] } },
    { pageToken: `${pageToken.slice(0, -2)}AA` },
    { pageToken: "junk" },
    { pageToken: "x".repeat(100_000) },
  ]) {
    const failure = await failureOf(tools.list(request));
    expect(failure).toMatchObject({ code: Code.InvalidArgument, reason: "PAGE_TOKEN_INVALID", fields: ["page_token"] });
  }
  expect((await tools.list({ pageToken, pageSize: 3 })).tools).toHaveLength(3);
});

test("a page token is not good for another caller", async () => {
  await using served = await serve({
    authenticate: (headers) => ({ id: headers.get("x-user") ?? "nobody", roles: ["operator"] }),
  });
  served.registry.add({ name: "other" });
  const { tools } = grpcClients(served.url);
  const { nextPageToken: pageToken } = await tools.list({ pageSize: 1 }, { headers: { "x-user": "ann" } });
  expect((await failureOf(tools.list({ pageToken }, { headers: { "x-user": "bob" } }))).reason).toBe(
    "PAGE_TOKEN_INVALID",
  );
  expect((await tools.list({ pageToken }, { headers: { "x-user": "ann" } })).tools).toHaveLength(1);
});

test("a tool is listed alike in binary form and as JSON, with and without schemas [S2-08]", async () => {
  await using served = await serveMany(2);
  const json = createClient(ToolGatewayService, createConnectTransport({ baseUrl: served.url, httpVersion: "1.1" }));
  const { tools } = grpcClients(served.url);
  for (const omitSchemas of [false, true]) {
    const inBinary = await tools.list({ omitSchemas });
    expect(await json.list({ omitSchemas })).toEqual(inBinary);
    expect(inBinary.tools[1]).toMatchObject({
      description: "订单",
      inputSchemaJson: omitSchemas ? "" : '{"type":"object"}',
    });
  }
});

test("List, Get and Watch give schemas in the form that was asked for, and refuse one that does not exist [M-D14]", async () => {
  await using served = await serve();
  const either = { anyOf: [{ required: ["a"] }, { required: ["b"] }] };
  const inputSchema = { type: "object", properties: { a: { type: "string" }, b: { type: "string" } }, ...either };
  served.registry.add({ name: "either", inputSchema });
  const { tools } = grpcClients(served.url);
  const first = async (schemaForm: SchemaForm): Promise<string | undefined> => {
    for await (const { event } of tools.watch({ schemaForm, filter: { names: ["either"] } }))
      if (event.case === "upserted") return event.value.inputSchemaJson;
    return undefined;
  };
  for (const schemaForm of [SchemaForm.UNSPECIFIED, SchemaForm.DECLARED, SchemaForm.PROVIDER]) {
    const schema = schemaForm === SchemaForm.PROVIDER ? providerSchema(inputSchema) : inputSchema;
    const { tools: listed } = await tools.list({ schemaForm, filter: { names: ["either"] } });
    const { tool } = await tools.get({ name: "either", schemaForm });
    expect([listed[0]?.inputSchemaJson, tool?.inputSchemaJson, await first(schemaForm)]).toEqual(
      Array.from({ length: 3 }, () => JSON.stringify(schema)),
    );
  }
  const unknown = { schemaForm: 7 as SchemaForm };
  for (const asked of [tools.list(unknown), tools.get({ name: "either", ...unknown })]) {
    expect(await failureOf(asked)).toMatchObject({ reason: "REQUEST_INVALID", fields: ["schema_form"] });
  }
});

test("List is a plain GET over Connect", async () => {
  await using served = await serveMany(1);
  const query = `connect=v1&encoding=json&message=${encodeURIComponent('{"pageSize":1}')}`;
  const response = await fetch(`${served.url}/toolgate.v1.ToolGatewayService/List?${query}`);
  expect(await response.json()).toMatchObject({ tools: [{ name: "echo" }] });
  const binary = await fetch(`${served.url}/toolgate.v1.ToolGatewayService/List?connect=v1&encoding=proto&message=`);
  expect(binary.status).toBe(200);
});

test("disabled tools are listed where their state is asked for", async () => {
  await using served = await serve();
  served.registry.add({ name: "off" }, undefined, { state: "disabled", reason: "switched off" });
  const { tools } = grpcClients(served.url);
  expect((await tools.list({})).tools.map(({ name }) => name)).toEqual(["echo"]);
  const { tools: found } = await tools.list({ filter: { states: [ToolState.DISABLED] } });
  expect(found).toMatchObject([{ name: "off", state: ToolState.DISABLED, stateReason: "switched off" }]);
});

test("problems stand on the first page, for operators, with the revision", async () => {
  await using served = await serve({
    authenticate: (headers) => ({ id: "x", roles: headers.get("x-role") === null ? ["operator"] : [] }),
  });
  served.registry.add({ name: "other" });
  served.registry.setProblems([
    { source: "file:a.yaml", line: 1, column: 2, message: "bad", lastGoodServing: true, note: false },
  ]);
  const { tools } = grpcClients(served.url);
  const first = await tools.list({ pageSize: 1 });
  expect(first.problems).toMatchObject([
    { source: "file:a.yaml", line: 1, column: 2, message: "bad", lastGoodServing: true },
  ]);
  expect(first.revision).toBe(102n);
  expect((await tools.list({ pageSize: 1, pageToken: first.nextPageToken })).problems).toEqual([]);
  expect((await tools.list({}, { headers: { "x-role": "none" } })).problems).toEqual([]);
});

test("a page ends early before it grows beyond what gRPC clients take", async () => {
  await using served = await serve();
  const big = "x".repeat(900_000);
  for (let i = 0; i < 9; i++) served.registry.add({ name: `big_${i}`, description: big });
  const { tools } = grpcClients(served.url);
  const first = await tools.list({ pageSize: 100 });
  expect(first.tools).toHaveLength(3);
  const names = await allNames(served, 100);
  expect(names).toHaveLength(10);
});

test("Get gives one tool, and names the nearest for one that is not there", async () => {
  await using served = await serve();
  const { tools } = grpcClients(served.url);
  expect((await tools.get({ name: "echo" })).tool).toMatchObject({ name: "echo", etag: "etag-echo" });
  expect(await failureOf(tools.get({ name: "ecko" }))).toMatchObject({
    code: Code.NotFound,
    metadata: { nearest: "echo" },
  });
  expect(await failureOf(tools.get({}))).toMatchObject({ reason: "REQUEST_INVALID", fields: ["name"] });
});
