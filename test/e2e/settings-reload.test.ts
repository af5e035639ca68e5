import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { expect, test } from "vitest";
import { OperatorService } from "../../gen/toolgate/v1/operator_service_pb.ts";
import { type EchoUpstream, startEchoUpstream } from "./echo-upstream.ts";
import { type OpenGateway, openGateway, temporaryFolder } from "./effects-gateway.ts";
import { reasonOf, textOf } from "./gateway-client.ts";

function tool(name: string, upstream: EchoUpstream, keys: Readonly<Record<string, unknown>> = {}): string {
  const standard = { name, description: "用于检查重新加载 shows that settings are read again", type: "http" };
  return JSON.stringify({ ...standard, endpoint: `http://127.0.0.1:${upstream.port}/echo/${name}`, ...keys });
}

async function originOf({ url }: OpenGateway, name: string, key: string): Promise<string | undefined> {
  const transport = createConnectTransport({ baseUrl: url, httpVersion: "1.1" });
  const { values } = await createClient(OperatorService, transport).explain({ name });
  const found = values.find((each) => each.key === key);
  return found === undefined ? undefined : `${found.value} from ${found.origin}`;
}

test("other defaults and groups are in force for calls that begin after, of files and of registrations [S2-124]", async () => {
  await using upstream = await startEchoUpstream();
  await using folder = await temporaryFolder();
  await using gateway = await openGateway({
    folder: folder.path,
    files: { "tools/text.yaml": tool("text", upstream, { result: { data_field: "data.text" } }) },
    settings: { defaults: { result: { max_length: 60 } } },
  });
  const { client } = gateway;
  const registered = tool("wired", upstream, { result: { data_field: "data.text" } });
  await client.service.register({ declaration: { case: "declarationJson", value: registered } });
  const lengths = async (): Promise<readonly number[]> =>
    Promise.all(["text", "wired"].map(async (name) => textOf(await client.call(name)).length));
  expect(await lengths()).toEqual([60, 60]);
  expect(await gateway.reconfigure({ defaults: { result: { max_length: 90 } } })).toEqual({
    applied: ["defaults.result.max_length"],
    needRestart: [],
  });
  await expect.poll(lengths, { timeout: 20_000 }).toEqual([90, 90]);
});

test("a group that comes lets in a tool that named it before, and one that goes leaves the last good version [S2-124]", async () => {
  await using upstream = await startEchoUpstream();
  await using folder = await temporaryFolder();
  await using gateway = await openGateway({
    folder: folder.path,
    files: { "tools/one.yaml": tool("one", upstream, { group: "aws" }) },
  });
  expect(await gateway.client.call("one").catch(reasonOf)).toBe("TOOL_NOT_FOUND");
  await gateway.reconfigure({ groups: { aws: { concurrency_limit: 3 } } });
  await expect
    .poll(() => originOf(gateway, "one", "concurrency_limit").catch(reasonOf), { timeout: 20_000 })
    .toBe("3 from gateway.yaml:1");
  await gateway.reconfigure({});
  await expect
    .poll(async () => (await gateway.client.service.list({})).problems.map(({ lastGoodServing }) => lastGoodServing), {
      timeout: 20_000,
    })
    .toEqual([true]);
  expect(await gateway.client.call("one").then(() => "OK", reasonOf)).toBe("OK");
});

test("another rate of each caller counts for the calls that come [S2-124]", async () => {
  await using upstream = await startEchoUpstream();
  await using folder = await temporaryFolder();
  await using gateway = await openGateway({ folder: folder.path, files: { "tools/one.yaml": tool("one", upstream) } });
  const call = (): Promise<string | undefined> => gateway.client.call("one").then(() => "OK", reasonOf);
  expect(await call()).toBe("OK");
  const changed = { rate_limit: { requests: 1, per: "1h" } };
  expect(await gateway.reconfigure(changed)).toEqual({
    applied: expect.arrayContaining(["rate_limit.requests", "rate_limit.per"]),
    needRestart: [],
  });
  expect([await call(), await call()]).toEqual(["OK", "RATE_LIMITED"]);
  await gateway.reconfigure({});
  expect(await call()).toBe("OK");
});

test("settings that need a new start are named, until they are as they were at the start [S2-124]", async () => {
  await using folder = await temporaryFolder();
  await using gateway = await openGateway({ folder: folder.path });
  const changed = { limits: { deadline: "2m" }, reflection: false };
  expect((await gateway.reconfigure(changed)).needRestart).toEqual(["limits.deadline", "reflection"]);
  expect((await gateway.reconfigure(changed)).needRestart).toEqual(["limits.deadline", "reflection"]);
  expect((await gateway.reconfigure({})).needRestart).toEqual([]);
});

test("reading everything again changes no tool whose policy stays the same, and cuts no call", async () => {
  await using upstream = await startEchoUpstream();
  await using folder = await temporaryFolder();
  await using gateway = await openGateway({ folder: folder.path, files: { "tools/one.yaml": tool("one", upstream) } });
  const etag = async (): Promise<string | undefined> => (await gateway.client.service.get({ name: "one" })).tool?.etag;
  const before = await etag();
  const calls = Promise.all(Array.from({ length: 20 }, () => gateway.client.call("one")));
  await gateway.reconfigure({ defaults: { timeout: { read: "31s" } } });
  await gateway.reconfigure({});
  await calls;
  await expect.poll(etag, { timeout: 20_000 }).toBe(before);
});
