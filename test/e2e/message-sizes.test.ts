import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { toBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CallResponseSchema, CallStreamResponseSchema } from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import { type OpenGateway, openGateway, temporaryFolder } from "./effects-gateway.ts";
import { WIRE_CLIENT_NAMES, WIRE_CLIENTS } from "./wire-clients.ts";

const MIB = 2 ** 20;
/** What clients take by default. */
const CLIENT_LIMIT = 4 * MIB;
const FIVE_MIB = "0123456789abcde\n".repeat((5 * MIB) / 16);
const TEN_MIB = "0123456789abcde\n".repeat((10 * MIB) / 16);

const running = new AsyncDisposableStack();
let gateway: OpenGateway;
/** Length of the last body that the upstream got. */
let received = 0;

beforeAll(async () => {
  const upstream = createServer((request, response) => {
    let length = 0;
    request.on("data", (piece: Buffer) => {
      length += piece.length;
    });
    request.on("end", () => {
      received = length;
      response.setHeader("content-type", "text/plain; charset=utf-8");
      response.end(request.url === "/five" ? FIVE_MIB : request.url === "/ten" ? TEN_MIB : "taken");
    });
  });
  upstream.listen(0, "127.0.0.1");
  await once(upstream, "listening");
  running.defer(async () => {
    upstream.close();
    upstream.closeAllConnections();
  });
  const { port } = upstream.address() as AddressInfo;
  const declare = (name: string, path: string, more: string): [string, string] => [
    `tools/${name}.yaml`,
    `name: ${name}\ndescription: 大消息测试工具 for the test of large messages\ntype: http\nendpoint: http://127.0.0.1:${port}/${path}\n${more}`,
  ];
  const { path: folder } = running.use(await temporaryFolder());
  gateway = running.use(
    await openGateway({
      folder,
      settings: { limits: { request_bytes: "20MiB" } },
      files: Object.fromEntries([
        declare("five", "five", "method: GET\n"),
        declare("five_stream", "five", "method: GET\ndelivery: incremental\n"),
        declare("ten_stream", "ten", "method: GET\ndelivery: incremental\n"),
        declare("take", "take", "method: POST\nparams: [{name: text, type: string, required: true}]\n"),
      ]),
    }),
  );
});

afterAll(async () => {
  await running.disposeAsync();
});

test.each(WIRE_CLIENT_NAMES)(
  "a text of 5 MiB comes to %s cut, marked and within its default limit [G-D04]",
  async (name) => {
    using client = WIRE_CLIENTS[name](gateway.port);
    const answer = await client.call({ name: "five" });
    expect(answer.result?.truncation).toMatchObject({ originalLength: BigInt(FIVE_MIB.length) });
    const bytes = toBinary(CallResponseSchema, answer).byteLength;
    expect(bytes).toBeGreaterThan(500_000);
    expect(bytes).toBeLessThan(CLIENT_LIMIT);
  },
);

test.each(WIRE_CLIENT_NAMES)("the same text streams to %s whole, in messages below 1 MiB [G-D04]", async (name) => {
  using client = WIRE_CLIENTS[name](gateway.port);
  let text = "";
  for await (const message of client.callStream({ name: "five_stream" })) {
    expect(toBinary(CallStreamResponseSchema, message).byteLength).toBeLessThan(MIB);
    if (message.event.case === "output") text += String(message.event.value.delta.value);
  }
  expect(text === FIVE_MIB).toBe(true);
});

test.each(WIRE_CLIENT_NAMES)(
  "where the limit is raised, 10 MiB go through %s to the upstream and 10 MiB back [G-D05]",
  async (name) => {
    using client = WIRE_CLIENTS[name](gateway.port);
    const value = JSON.stringify({ text: TEN_MIB });
    const answer = await client.call({ name: "take", arguments: { case: "argumentsJson", value } });
    expect(answer.result?.failure).toBeUndefined();
    expect(received).toBe(Buffer.byteLength(value));
    let length = 0;
    for await (const { event } of client.callStream({ name: "ten_stream" })) {
      if (event.case === "output") length += String(event.value.delta.value).length;
    }
    expect(length).toBe(TEN_MIB.length);
  },
);
