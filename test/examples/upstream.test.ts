import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { createDemoUpstream } from "../../examples/upstream/demo-upstream.ts";

interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
}

interface Ask {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

async function open(port: number, path: string, options: Ask = {}): Promise<IncomingMessage> {
  const request = httpRequest({
    host: "127.0.0.1",
    port,
    path,
    method: options.method ?? "GET",
    headers: options.headers,
    agent: false,
  });
  request.end(options.body);
  const [response] = await once(request, "response");
  return response;
}

async function ask(path: string, options: Ask = {}): Promise<Answer> {
  await using upstream = await createDemoUpstream({ port: 0, host: "127.0.0.1" });
  const response = await open(upstream.port, path, options);
  const body = await text(response);
  return { status: response.statusCode ?? 0, type: response.headers["content-type"] ?? "", body };
}

const TOKEN = { headers: { authorization: "demo-order-token" } };

test("the order API answers in the envelope code, message and data [S2-83]", async () => {
  const answer = await ask("/orders/SO20241001/status", TOKEN);
  expect(JSON.parse(answer.body)).toEqual({
    code: 0,
    message: "ok",
    data: { status: "已发货", tracker: "SF1234567890" },
  });
});

test("the order API adds the history only where it is asked for", async () => {
  const answer = await ask("/orders/SO20241001/status?include_history=true", TOKEN);
  expect(JSON.parse(answer.body).data.history).toHaveLength(3);
});

test("an unknown order is a business error within HTTP 200", async () => {
  const answer = await ask("/orders/SO1/status", TOKEN);
  expect(answer.status).toBe(200);
  expect(JSON.parse(answer.body)).toMatchObject({ code: 5001, data: null });
});

test.each([{}, { headers: { authorization: "wrong" } }])("the order API refuses the credential %j", async (options) => {
  expect((await ask("/orders/SO20241001/status", options)).status).toBe(401);
});

test("a refund is accepted up to what was paid and refused above it", async () => {
  const refund = (amount: unknown): Promise<Answer> =>
    ask("/refunds", {
      method: "POST",
      body: JSON.stringify({ order_id: "SO20241001", amount_cents: amount, notify: true }),
    });
  expect(JSON.parse((await refund(100)).body)).toMatchObject({ code: 0, data: { status: "已受理" } });
  expect(JSON.parse((await refund(99_999)).body)).toMatchObject({ code: 5002 });
  expect((await refund("100")).status).toBe(400);
});

test("a refund with a body that is no JSON object, or too large, is refused", async () => {
  expect((await ask("/refunds", { method: "POST", body: "[" })).status).toBe(400);
  expect((await ask("/refunds", { method: "POST", body: `{"x":"${"x".repeat(70_000)}"}` })).status).toBe(400);
});

test("the weather service wants a key", async () => {
  expect((await ask("/weather?location=London")).status).toBe(401);
  const answer = await ask("/weather?location=London&units=imperial", { headers: { "x-api-key": "k" } });
  expect(JSON.parse(answer.body)).toEqual({ location: "London", temp: 53.6, units: "imperial" });
});

test("the log tail sends server-sent events and ends after the lines asked for", async () => {
  const answer = await ask("/logs/orders/tail?lines=2");
  expect(answer.type).toContain("text/event-stream");
  expect(answer.body.match(/^data: orders #\d/gm)).toEqual(["data: orders #1", "data: orders #2"]);
});

test("the progress feed sends one JSON object a line", async () => {
  const answer = await ask("/imports/IM-7/progress?steps=2");
  expect(answer.type).toBe("application/x-ndjson");
  expect(answer.body).toBe('{"import":"IM-7","step":1,"of":2}\n{"import":"IM-7","step":2,"of":2}\n');
});

test("the flaky service answers 503, cuts the connection or breaks off its JSON", async () => {
  expect((await ask("/flaky?mode=overloaded")).status).toBe(503);
  await expect(ask("/flaky?mode=reset")).rejects.toThrow("socket hang up");
  expect((await ask("/flaky?mode=broken")).body).toBe('{"half": ');
});

test("the stock table has as many rows as asked for, within a bound", async () => {
  expect(JSON.parse((await ask("/stock?rows=3")).body).items).toHaveLength(3);
  expect(JSON.parse((await ask("/stock?rows=999999")).body).items).toHaveLength(50_000);
});

test("an unknown path is a 404 and a path that cannot be decoded a 500", async () => {
  expect((await ask("/nothing")).status).toBe(404);
  expect((await ask("/orders/%FF/status", TOKEN)).status).toBe(500);
});

test("closing ends an endless stream and frees the port", async () => {
  const upstream = await createDemoUpstream({ port: 0, host: "127.0.0.1" });
  const response = await open(upstream.port, "/logs/orders/tail");
  await once(response, "data");
  const cut = text(response);
  await upstream.close();
  await expect(cut).rejects.toThrow("aborted");
  await upstream.close();
  await using again = await createDemoUpstream({ port: upstream.port, host: "127.0.0.1" });
  expect(again.port).toBe(upstream.port);
});
