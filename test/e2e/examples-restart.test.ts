import { expect, test } from "vitest";
import { copyExamples, startExamples } from "./examples-process.ts";
import { createGatewayClient, reasonOf, valueOf } from "./gateway-client.ts";
import { START_TIMEOUT_MS } from "./spawned.ts";

test("registrations made over the wire are back after a kill -9", {
  timeout: 3 * START_TIMEOUT_MS,
}, async () => {
  await using copy = await copyExamples();
  const declarationYaml =
    "name: registered\ndescription: 通过接口登记的工具 registered over the wire\ntype: http\nmethod: GET\n" +
    `endpoint: http://127.0.0.1:${copy.upstreamPort}/stock?rows=1\nresult: { data_field: rows }\n`;
  {
    await using examples = await startExamples(copy);
    using gateway = createGatewayClient(examples.port);
    await gateway.service.register({ declaration: { case: "declarationYaml", value: declarationYaml } });
    expect(valueOf(await gateway.call("registered"))).toBe(1);
    await examples.stop("SIGKILL");
  }
  await using examples = await startExamples(copy);
  using gateway = createGatewayClient(examples.port);
  expect(valueOf(await gateway.call("registered"))).toBe(1);
  await gateway.service.unregister({ name: "registered" });
  await expect(gateway.call("registered")).rejects.toSatisfy((error) => reasonOf(error) === "TOOL_NOT_FOUND");
});

test("the weather tool works once its key is set, and the key shows nowhere [S2-47, S2-48, S2-49]", {
  timeout: 3 * START_TIMEOUT_MS,
}, async () => {
  await using copy = await copyExamples();
  const key = "k-3f9a-do-not-show";
  await using examples = await startExamples(copy, { WEATHER_API_KEY: key });
  using gateway = createGatewayClient(examples.port);
  expect(valueOf(await gateway.call("weather", { location: "London" }))).toMatchObject({ temp: 12 });
  const listed = await gateway.service.list({});
  expect(
    JSON.stringify(listed, (_, value: unknown) => (typeof value === "bigint" ? String(value) : value)),
  ).not.toContain(key);
  expect(examples.output()).not.toContain(key);
});

test("a credential the upstream refuses is told apart from a missing one [S2-88]", {
  timeout: 3 * START_TIMEOUT_MS,
}, async () => {
  await using copy = await copyExamples();
  await using examples = await startExamples(copy, { ORDER_API_TOKEN: "wrong" });
  using gateway = createGatewayClient(examples.port);
  const { result } = await gateway.call("order_status", { order_id: "SO20241001" });
  expect(result?.failure).toMatchObject({ reason: "UPSTREAM_UNAUTHORIZED", upstreamCode: 401 });
});

test("Ctrl-C stops the gateway and the demo upstream and frees both ports", {
  timeout: 3 * START_TIMEOUT_MS,
}, async () => {
  await using copy = await copyExamples();
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    await using examples = await startExamples(copy);
    expect(await examples.stop(signal)).toBe(0);
  }
});

test("a demo upstream whose port is taken says so in one line and starts nothing", {
  timeout: 3 * START_TIMEOUT_MS,
}, async () => {
  await using copy = await copyExamples();
  await using first = await startExamples(copy);
  await expect(startExamples(copy)).rejects.toThrow(`port ${copy.upstreamPort} is in use`);
  expect(first.port).toBeGreaterThan(0);
});
