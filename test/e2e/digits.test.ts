import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type OpenGateway, openGateway, temporaryFolder } from "./effects-gateway.ts";
import { reasonOf } from "./gateway-client.ts";
import { WIRE_CLIENT_NAMES, WIRE_CLIENTS } from "./wire-clients.ts";

// Integers that no double holds, as they are written: any JSON.parse on the way would change their last digits.

const running = new AsyncDisposableStack();
let gateway: OpenGateway;

/** Answers with what it was sent, each place as raw JSON. */
async function startEcho(): Promise<Server> {
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://echo");
    let body = "";
    request.on("data", (piece: Buffer) => (body += piece.toString()));
    request.on("end", () => {
      const path = url.pathname.split("/").at(-1);
      const places = `"path":${path},"query":${url.searchParams.get("q")},"header":${String(request.headers["x-id"])},"body":${body}`;
      response.setHeader("content-type", "application/json");
      response.end(`{"code":9007199254740993,"data":{"found":{${places}}}}`);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}

beforeAll(async () => {
  const server = running.adopt(await startEcho(), (echo) => {
    echo.closeAllConnections();
    echo.close();
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no TCP address");
  const tool = `name: digits
description: Sends one number to every place of a request
type: http
method: POST
endpoint: "http://127.0.0.1:${address.port}/items/{id}?q={id}"
params: [{ name: id, type: integer, required: true, minimum: -9223372036854775808, maximum: 18446744073709551615 }]
headers: { X-Id: "{id}" }
body: { id: $id, list: [$id], text: "number $id" }
result: { success_field: code, success_value: 9007199254740993, data_field: data.found }
`;
  const folder = running.use(await temporaryFolder());
  gateway = running.use(await openGateway({ folder: folder.path, files: { "tools/digits.yaml": tool } }));
}, 180_000);

afterAll(() => running.disposeAsync());

const NUMBERS = ["9007199254740993", "9223372036854775807", "-9223372036854775808", "18446744073709551615"];

function echoOf(digits: string): string {
  const body = `{"id":${digits},"list":[${digits}],"text":"number ${digits}"}`;
  return `{"path":${digits},"query":${digits},"header":${digits},"body":${body}}`;
}

for (const name of WIRE_CLIENT_NAMES) {
  test(`64-bit integers come back from path, query, header and body with all their digits, by ${name} [Y-D04, A-D03]`, async () => {
    using client = WIRE_CLIENTS[name](gateway.port);
    for (const digits of NUMBERS) {
      const invocation = { name: "digits", arguments: { case: "argumentsJson", value: `{"id":${digits}}` } } as const;
      expect((await client.call(invocation)).result?.structuredJson).toBe(echoOf(digits));
      for await (const { event } of client.callStream(invocation)) {
        if (event.case === "completed") expect(event.value.result?.structuredJson).toBe(echoOf(digits));
      }
    }
  });
}

async function callAsJson(invocation: string): Promise<{ readonly result?: { readonly structuredJson?: string } }> {
  const response = await fetch(`${gateway.url}/toolgate.v1.ToolGatewayService/Call`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: `{"invocation":${invocation}}`,
  });
  return (await response.json()) as { readonly result?: { readonly structuredJson?: string } };
}

test("64-bit integers keep their digits in Connect's JSON too, where arguments and results are text [Y-D04, A-D03]", async () => {
  for (const digits of NUMBERS) {
    const answer = await callAsJson(`{"name":"digits","argumentsJson":"{\\"id\\":${digits}}"}`);
    expect(answer.result?.structuredJson).toBe(echoOf(digits));
  }
});

test("in a Struct a number is a double, as the contract says [A-D03]", async () => {
  const answer = await callAsJson('{"name":"digits","argumentsStruct":{"id":9007199254740993}}');
  expect(answer.result?.structuredJson).toBe(echoOf("9007199254740992"));
});

test("an integer just beyond the declared range is refused by its last digit [A-D03]", async () => {
  const call = gateway.client.service.call({
    invocation: { name: "digits", arguments: { case: "argumentsJson", value: '{"id":18446744073709551616}' } },
  });
  const error = await call.catch((refusal: unknown) => refusal);
  expect(reasonOf(error)).toBe("ARGUMENTS_INVALID");
  expect(String(error)).toContain("expected at most 18446744073709551615, got integer 18446744073709551616");
});
