import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import { createToolgateClient, type InvokeOptions, type ToolgateClient } from "../../clients/typescript/src/index.ts";
import { createNodeTransport } from "../../clients/typescript/src/node.ts";
import { type Clock, systemClock } from "../../src/core/clock.ts";
import { openGateway, temporaryFolder } from "./effects-gateway.ts";

/** A clock by which results that wait for others of their turn wait for all of them, on however slow a machine. */
const patientClock: Clock = {
  ...systemClock,
  after: (delayMs, task) => systemClock.after(delayMs === 200 ? 3_600_000 : delayMs, task),
};

/** Gives as many characters as the path says; `together` calls are answered when so many wait. */
async function startUpstream(together: number) {
  const waiting: (() => void)[] = [];
  const server = createServer((request, response: ServerResponse) => {
    const [, way, size] = (request.url ?? "").split("/");
    const answer = (): void => void response.setHeader("content-type", "text/plain").end("x".repeat(Number(size)));
    if (way !== "together") return answer();
    waiting.push(answer);
    if (waiting.length === together) for (const each of waiting.splice(0)) each();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  return `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
}

async function open(together: number): Promise<(user: string) => ToolgateClient> {
  const origin = await startUpstream(together);
  const tool = (name: string, keys: object = {}): string =>
    JSON.stringify({
      name,
      description: "用于检查预算 gives so many characters",
      type: "http",
      endpoint: `${origin}/${name}/{size}`,
      params: [{ name: "size", type: "integer", required: true }],
      ...keys,
    });
  const folder = await temporaryFolder();
  const gateway = await openGateway({
    folder: folder.path,
    clock: patientClock,
    files: {
      "tools/one.json": tool("one"),
      "tools/together.json": tool("together"),
      "tools/stream.json": tool("stream", { delivery: "incremental", result: { format: "text" } }),
    },
    settings: { results: { keep: true, model_window: 1_000 }, identity: { trusted_header: { subject: "x-user" } } },
  });
  onTestFinished(async () => {
    await gateway[Symbol.asyncDispose]();
    await folder[Symbol.asyncDispose]();
  });
  return (user) => createToolgateClient(createNodeTransport({ baseUrl: gateway.url }), { headers: { "x-user": user } });
}

async function seen(client: ToolgateClient, name: string, size: number, options: InvokeOptions = {}) {
  const { result } = await client.call(name, { size }, options);
  const text = (result?.content ?? []).map(({ part }) => (part.case === "text" ? part.value : "")).join("");
  return {
    length: text.length,
    reasons: (result?.notices ?? []).map(({ reason }) => reason),
    handle: result?.truncation?.handle ?? "",
  };
}

test("one result has its part of the window, the call's own or the gateway's, and the rest is read on [S2-112]", {
  timeout: 180_000,
}, async () => {
  const alice = (await open(1))("alice");
  const cut = await seen(alice, "one", 20_000);
  expect(cut).toMatchObject({ length: 8_000, reasons: ["RESULT_BUDGET"] });
  const { text } = await alice.readResult(cut.handle, { maxLength: 30_000 });
  expect(text).toBe("x".repeat(20_000));
  expect(await seen(alice, "one", 20_000, { modelWindow: 100_000 })).toMatchObject({ length: 20_000, reasons: [] });
});

test("parallel calls of a turn share its budget: the largest are shortened first, all of each is kept [S2-112]", {
  timeout: 180_000,
}, async () => {
  const alice = (await open(3))("alice");
  const turn = { context: { sessionId: "s", turnId: "1" } };
  const [small, large, largest] = await Promise.all(
    [3_000, 7_500, 60_000].map((size) => seen(alice, "together", size, turn)),
  );
  expect(small).toMatchObject({ length: 3_000, reasons: [], handle: "" });
  for (const each of [large, largest]) expect(each).toMatchObject({ length: 6_500, reasons: ["TURN_BUDGET"] });
  const page = await alice.readResult(large?.handle ?? "", { maxLength: 30_000 });
  expect(page.text).toBe("x".repeat(7_500));
});

test("later calls of a turn have what is left, another turn and another caller all of theirs", {
  timeout: 180_000,
}, async () => {
  const clientOf = await open(1);
  const [alice, bob] = [clientOf("alice"), clientOf("bob")];
  const turn = { context: { turnId: "1" } };
  const lengths: number[] = [];
  for (let i = 0; i < 3; i++) lengths.push((await seen(alice, "one", 7_500, turn)).length);
  expect(lengths).toEqual([7_500, 7_500, 999]);
  const last = await seen(alice, "one", 7_500, turn);
  expect(last).toMatchObject({ length: 400, reasons: ["TURN_BUDGET"] });
  expect(last.handle).toMatch(/^result:/);
  expect((await seen(alice, "one", 7_500, { context: { turnId: "2" } })).length).toBe(7_500);
  expect((await seen(bob, "one", 7_500, turn)).length).toBe(7_500);
});

test("a stream ends at the budget of one result, and what it gave counts in its turn", {
  timeout: 180_000,
}, async () => {
  const alice = (await open(1))("alice");
  const turn = { context: { turnId: "1" } };
  expect(await seen(alice, "stream", 2_000_000, turn)).toMatchObject({ length: 8_000, reasons: ["RESULT_BUDGET"] });
  expect((await seen(alice, "one", 7_500, turn)).length).toBe(7_500);
  expect(await seen(alice, "stream", 2_000_000, turn)).toMatchObject({ length: 500, reasons: ["TURN_BUDGET"] });
});
