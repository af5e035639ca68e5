import { createHmac } from "node:crypto";
import { expect, test } from "vitest";
import type { JsonObject } from "../../../src/core/json.ts";
import { createFakeClock } from "../../core/fake-clock.ts";
import { call, configure, openTool, type PathOptions, problemsOf, sent, startRawUpstream } from "./fixture.ts";

const KEY = "k3y$&x$$1-0123456789";
const environment = { SIGN_KEY: KEY };
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const SIGNING: JsonObject = {
  algorithm: "hmac-sha256",
  secret_ref: "SIGN_KEY",
  header_name: "X-Sign",
  content: "{method}\n{path}\n{query}\n{body}\n{timestamp}\n{nonce}",
  timestamp_header: "X-Timestamp",
  nonce_header: "X-Nonce",
};

function hmac(hash: string, text: string, encoding: "hex" | "base64" = "hex"): string {
  return createHmac(hash, KEY).update(text, "utf8").digest(encoding);
}

test("a request is signed over method, path, query and body as they are sent, with time and nonce [S2-04]", async () => {
  const keys = { endpoint: "/o/{id}?q={q}", method: "POST", body: { note: "$note" }, signing: SIGNING };
  const params = { id: {}, q: {}, note: {} };
  const clock = createFakeClock();
  const { request } = await sent({ keys, params, environment, clock }, { id: "a/b", q: "1 2?", note: "订单 $&" });
  const timestamp = String(request?.headers["x-timestamp"]);
  const nonce = String(request?.headers["x-nonce"]);
  expect(timestamp).toBe(String(Math.floor(clock.now() / 1_000)));
  expect(nonce).toMatch(UUID);
  const content = `POST\n/o/a%2Fb\nq=1%202%3F\n{"note":"订单 $&"}\n${timestamp}\n${nonce}`;
  expect(request).toMatchObject({ target: "/o/a%2Fb?q=1%202%3F", body: '{"note":"订单 $&"}' });
  expect(request?.headers["x-sign"]).toBe(hmac("sha256", content));
});

test("algorithm, encoding, prefix, key and time are as declared [S2-04]", async () => {
  const signing = {
    ...SIGNING,
    algorithm: "hmac-sha512",
    encoding: "base64",
    header_name: "Authorization",
    prefix: "HMAC {key_id}:{timestamp}:",
    key_id: "AK/42",
    content: "{key_id}|{timestamp}|{{{path}}}|{query}|{body}",
  };
  const { timestamp_header, nonce_header, ...rest } = { timestamp_header: 0, nonce_header: 0, ...signing };
  expect([timestamp_header, nonce_header]).toEqual(["X-Timestamp", "X-Nonce"]);
  for (const [timestamp_format, pattern] of [
    ["unix_ms", /^\d+$/],
    ["iso8601", /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/],
  ] as const) {
    const keys = { endpoint: "/o", signing: { ...rest, timestamp_format } };
    const { request } = await sent({ keys, environment }, {});
    const [, timestamp = "", signature] = /^HMAC AK\/42:(.*):(\S+)$/.exec(request?.headers.authorization ?? "") ?? [];
    expect(timestamp).toMatch(pattern);
    expect(
      Math.abs(new Date(Number.isNaN(Number(timestamp)) ? timestamp : Number(timestamp)).getTime() - Date.now()),
    ).toBeLessThan(600_000);
    expect(signature).toBe(hmac("sha512", `AK/42|${timestamp}|{/o}||`, "base64"));
    expect(request?.headers).not.toHaveProperty("x-nonce");
  }
  const { request } = await sent(
    { keys: { endpoint: "/o", signing: { ...SIGNING, prefix: "Sign" } }, environment },
    {},
  );
  expect(request?.headers["x-sign"]).toMatch(/^Sign [0-9a-f]{64}$/);
});

test("each request that goes out is signed anew, one that is sent again too", async () => {
  const heads: string[] = [];
  await using upstream = await startRawUpstream((socket, text) => {
    heads.push(text);
    // The second request finds its kept connection closed.
    if (heads.length === 2) socket.destroy();
    else socket.write("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}");
  });
  await using tool = await openTool({ keys: { endpoint: upstream.origin, signing: SIGNING }, environment });
  for (let i = 0; i < 2; i++) expect((await call(tool)).error).toBeUndefined();
  const nonces = heads.map((head) => /x-nonce: (\S+)/i.exec(head)?.[1]);
  expect(nonces).toHaveLength(3);
  expect(new Set(nonces).size).toBe(3);
});

test("an explained call shows neither the key nor the signature [K-D01]", async () => {
  const signing = { ...SIGNING, header_name: "X-Check", prefix: "v1=" };
  const options: PathOptions = { keys: { endpoint: "/o?echo={echo}", signing }, params: { echo: {} }, environment };
  for (const validateOnly of [false, true]) {
    const { exchange } = await sent(options, { echo: KEY }, { explain: true, validateOnly });
    expect(exchange?.requestHeaders).toContainEqual(["x-check", "v1=***"]);
    expect(exchange?.requestHeaders).toContainEqual(["x-nonce", expect.stringMatching(UUID)]);
    expect(exchange?.url).toMatch(/\/o\?echo=\*\*\*$/);
    expect(JSON.stringify(exchange)).not.toMatch(/[0-9a-f]{64}/);
  }
});

test("without its key a tool is unavailable, and its calls reach nobody [T-D07]", async () => {
  const changing: Record<string, string | undefined> = { TOKEN: "t" };
  const auth = { header_name: "X-Key", secret_ref: "TOKEN" };
  const keys = { endpoint: "http://127.0.0.1:1/", auth, signing: SIGNING };
  await using tool = await openTool({ keys, environment: changing });
  expect(tool.availability()).toMatchObject({ state: "unavailable", reason: "secret SIGN_KEY is not set" });
  expect((await call(tool)).error).toMatchObject({
    reason: "SECRET_MISSING",
    message: "order_status: secret SIGN_KEY is not set; the upstream was not reached",
  });
  changing["SIGN_KEY"] = KEY;
  expect(tool.availability().state).toBe("ready");
  delete changing["TOKEN"];
  expect(tool.availability().reason).toBe("secret TOKEN is not set");
});

test.for<[JsonObject, string]>([
  [
    { content: "static" },
    "/signing/content signs nothing of the request; write what is signed, such as {method}{path}{body}",
  ],
  [
    { content: "{body}{pth}" },
    "/signing/content `{pth}` is nothing that content can hold: {method}, {path}, {query}, {body}, {timestamp}, {nonce}, {key_id}; did you mean `{path}`?",
  ],
  [{ prefix: "{body}" }, "/signing/prefix `{body}` is nothing that prefix can hold: {timestamp}, {nonce}, {key_id}"],
  [{ content: "{body" }, "/signing/content `{` stands alone; write `{{` for the character itself"],
  [
    { timestamp_header: "" },
    "/signing/content `{timestamp}` is signed and not sent, so nobody can check it; set `timestamp_header` or write `{timestamp}` in `prefix`",
  ],
  [{ key_id: "AK" }, "/signing/key_id has no effect: write `{key_id}` in `prefix` or `content`"],
  [{ prefix: "{key_id}" }, "/signing `{key_id}` stands for `key_id`, which is not set"],
  [
    { header_name: "X Sign" },
    "/signing/header_name `X Sign` is no header name: letters, digits and !#$%&'*+-.^_`|~ are allowed",
  ],
  [
    { prefix: "{key_id}", key_id: "a\nb" },
    "/signing/header_name the value of header `X-Sign` holds a line break or control character",
  ],
  [{ header_name: "x-nonce" }, "/signing/nonce_header header `X-Nonce` is set twice; names do not differ by case"],
])("signing with %j is refused", ([change, problem]) => {
  const keys = { endpoint: "http://127.0.0.1/", signing: { ...SIGNING, ...change } };
  expect(problemsOf({ keys })).toContain(problem);
});

test("the headers of a signature are set by nobody else", () => {
  const auth = { header_name: "x-sign", secret_ref: "S" };
  const keys = { endpoint: "http://127.0.0.1/", auth, headers: { "x-timestamp": "1" }, signing: SIGNING };
  expect(problemsOf({ keys })).toEqual([
    "/signing/header_name header `X-Sign` is set twice; names do not differ by case",
    "/headers/x-timestamp header `x-timestamp` is set twice; names do not differ by case",
  ]);
});

test("a time that is sent and not signed is warned of", () => {
  const keys = { endpoint: "http://127.0.0.1/", signing: { ...SIGNING, content: "{body}{nonce}" } };
  expect(configure({ keys })).toMatchObject({
    ok: true,
    warnings: [
      { pointer: "/signing/content", message: expect.stringContaining("the timestamp is sent and not signed") },
    ],
  });
});
