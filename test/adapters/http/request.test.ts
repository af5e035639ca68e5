import { expect, test } from "vitest";
import type { JsonObject } from "../../../src/core/json.ts";
import { type PathOptions, sent } from "./fixture.ts";

const ANY: JsonObject = {};
const TEXT: JsonObject = { type: "string" };

test.for([
  ["SO20241001", "SO20241001"],
  ["a/b", "a%2Fb"],
  ["a?x=1", "a%3Fx%3D1"],
  ["a#f", "a%23f"],
  ["50%", "50%25"],
  ["a b", "a%20b"],
  ["a+b", "a+b"],
  ["订单", "%E8%AE%A2%E5%8D%95"],
  ["a\\b", "a%5Cb"],
  ["%2e%2e", "%252e%252e"],
  ["a@evil.test", "a%40evil.test"],
  ["a\r\nX: 1", "a%0D%0AX%3A%201"],
] as const)("a path value is one segment: %j [T-D01, S2-36]", async ([id, segment]) => {
  const options = { keys: { endpoint: "/v2/orders/{id}/status" }, params: { id: TEXT } };
  const { request } = await sent(options, { id });
  expect(request?.target).toBe(`/v2/orders/${segment}/status`);
});

test.for(["../../keys/list", "..", ".", "", "a/../b", "..\\x"])(
  "a path value that leads elsewhere is refused: %j [T-D01, S2-36]",
  async (id) => {
    const options = { keys: { endpoint: "/v2/orders/{id}/status" }, params: { id: TEXT } };
    const { error, requests } = await sent(options, { id });
    expect(error).toMatchObject({ reason: "TEMPLATE_VALUE_REFUSED", effect: "none", violations: [{ field: "/id" }] });
    expect(error?.message).toMatch(/^order_status: argument `id` .*the upstream was not reached$/);
    expect(requests).toHaveLength(0);
  },
);

test("two values cannot make a step together that neither is alone [T-D01]", async () => {
  const params = { a: TEXT, b: TEXT };
  expect((await sent({ keys: { endpoint: "/x/{a}{b}" }, params }, { a: ".", b: "." })).error?.reason).toBe(
    "TEMPLATE_VALUE_REFUSED",
  );
  expect(
    (await sent({ keys: { endpoint: "/x/.{a}", query: { b: "{b}" } }, params }, { a: ".", b: "" })).error?.reason,
  ).toBe("TEMPLATE_VALUE_REFUSED");
  expect((await sent({ keys: { endpoint: "/x/{a}...{b}" }, params }, { a: "main", b: "dev" })).request?.target).toBe(
    "/x/main...dev",
  );
});

test("half of a surrogate pair has no place in a URL", async () => {
  const { error } = await sent({ keys: { endpoint: "/{id}" }, params: { id: TEXT } }, { id: "a\ud800" });
  expect(error?.reason).toBe("TEMPLATE_VALUE_REFUSED");
});

test("literal parts of the endpoint stay as they were declared", async () => {
  const endpoint = "/a/./b/../c%2Fd/{{x}}/订单//e?q=a+b&r=%20&s&t=1=2&u=Ü";
  const { request } = await sent({ keys: { endpoint } }, {});
  expect(request?.target).toBe("/a/./b/../c%2Fd/%7Bx%7D/%E8%AE%A2%E5%8D%95//e?q=a+b&r=%20&s&t=1=2&u=%C3%9C");
});

test("optional arguments that are absent or null leave no trace [T-D03]", async () => {
  const params = { page: { type: "integer" }, sort: TEXT };
  const inUrl: PathOptions = { keys: { endpoint: "/o?page={page}&sort={sort}" }, params, required: [] };
  for (const args of [{}, { page: null }]) expect((await sent(inUrl, args)).request?.target).toBe("/o");
  const mixed: PathOptions = { keys: { endpoint: "/o?a=1&sort={sort}&range=p{page}" }, params, required: [] };
  expect((await sent(mixed, {})).request?.target).toBe("/o?a=1");
  const body = { page: "$page", sort: "$sort", text: "by $sort", list: ["$sort", 1], keep: 1 };
  const inBody: PathOptions = { keys: { endpoint: "/o", method: "POST", body }, params, required: [] };
  for (const args of [{}, { page: null }]) {
    expect((await sent(inBody, args)).request?.body).toBe('{"list":[1],"keep":1}');
  }
  const unnamed: PathOptions = { keys: { endpoint: "/o" }, params, required: [] };
  expect((await sent(unnamed, { page: null })).request?.target).toBe("/o");
  const header: PathOptions = {
    keys: { endpoint: "/o?p={page}", headers: { "X-Sort": "{sort}" } },
    params,
    required: [],
  };
  expect((await sent(header, {})).request?.headers).not.toHaveProperty("x-sort");
});

test("zero, false and empty text are values [T-D04]", async () => {
  const params = { page: { type: "integer" }, active: { type: "boolean" }, note: TEXT };
  const args = { page: 0, active: false, note: "" };
  const query: PathOptions = { keys: { endpoint: "/o?page={page}&active={active}&note={note}" }, params };
  expect((await sent(query, args)).request?.target).toBe("/o?page=0&active=false&note=");
  const body: PathOptions = { keys: { endpoint: "/o", method: "POST" }, params };
  expect((await sent(body, args)).request?.body).toBe('{"page":0,"active":false,"note":""}');
});

test("null is sent in a body where the schema has it as a value", async () => {
  const params = { until: { type: ["string", "null"] }, since: TEXT };
  const options: PathOptions = { keys: { endpoint: "/o", method: "PUT" }, params, required: [] };
  expect((await sent(options, { until: null, since: null })).request?.body).toBe('{"until":null}');
});

test("text with replacement patterns arrives byte for byte [T-D06]", async () => {
  const note = "cost $& $$5 $`x$' $note {note}";
  const options: PathOptions = {
    keys: {
      endpoint: "/o?n={note}",
      method: "POST",
      headers: { "X-Note": "{note}" },
      body: { whole: "$note", inside: "<$note>" },
      auth: { header_name: "X-Key", secret_ref: "KEY" },
    },
    params: { note: TEXT },
    environment: { KEY: "k3y$&x$$1" },
  };
  const { request } = await sent(options, { note });
  expect(new URL(`http://x${request?.target}`).searchParams.get("n")).toBe(note);
  expect(JSON.parse(request?.body ?? "")).toEqual({ whole: note, inside: `<${note}>` });
  expect(request?.headers).toMatchObject({ "x-key": "k3y$&x$$1", "x-note": note });
});

test("a body keeps the type of what it refers to, and joins text inside text [T-D09, S2-39]", async () => {
  const body = { n: "$n", list: "$list", s: "order-$n", t: "${n}a$$n $5", obj: "$obj", fixed: [true, null, 1.5] };
  const options: PathOptions = {
    keys: { endpoint: "/o", method: "POST", body },
    params: { n: { type: "integer" }, list: { type: "array" }, obj: { type: "object" } },
  };
  const { request } = await sent(options, { n: 5, list: ["a"], obj: { k: null } });
  expect(request?.body).toBe(
    '{"n":5,"list":["a"],"s":"order-5","t":"5a$n $5","obj":{"k":null},"fixed":[true,null,1.5]}',
  );
  expect(request?.headers["content-type"]).toBe("application/json");
});

test("a boolean arrives as a boolean, given or by its default [S2-24, S2-25, S2-37]", async () => {
  const options: PathOptions = {
    keys: {
      endpoint: "/o",
      method: "POST",
      request_body: { order_id: "$order_id", include_history: "$include_history" },
    },
    params: { order_id: TEXT, include_history: { type: "boolean", default: false } },
  };
  const { request } = await sent(options, { order_id: "SO20241001", include_history: false });
  expect(request?.body).toBe('{"order_id":"SO20241001","include_history":false}');
});

test("a reference never reads an environment variable [S2-38]", async () => {
  process.env["ORDER_REGION"] = "from-the-environment";
  const keys = { endpoint: "/o", method: "POST", body: { region: "$ORDER_REGION", path: "$PATH" } };
  const options: PathOptions = { keys, params: { ORDER_REGION: TEXT, PATH: TEXT }, required: ["ORDER_REGION"] };
  expect((await sent(options, { ORDER_REGION: "from-the-caller" })).request?.body).toBe('{"region":"from-the-caller"}');
  delete process.env["ORDER_REGION"];
});

test("the longest name counts, and braces end a name", async () => {
  const keys = { endpoint: "/o", method: "POST", body: { a: "$id", b: "$id_type", c: "${id}_type", d: "$订单号" } };
  const options: PathOptions = { keys, params: { id: TEXT, id_type: TEXT, 订单号: TEXT } };
  const { request } = await sent(options, { id: "1", id_type: "sku", 订单号: "x" });
  expect(JSON.parse(request?.body ?? "")).toEqual({ a: "1", b: "sku", c: "1_type", d: "x" });
});

test("a 64-bit integer keeps its digits in path, query, header and body", async () => {
  const options: PathOptions = {
    keys: { endpoint: "/{id}?q={id}", method: "POST", headers: { "X-Id": "{id}" }, body: { id: "$id", text: "#$id" } },
    params: { id: { type: "integer" } },
  };
  const { request } = await sent(options, { id: 871234567890123457n });
  expect(request?.target).toBe("/871234567890123457?q=871234567890123457");
  expect(request?.headers["x-id"]).toBe("871234567890123457");
  expect(request?.body).toBe('{"id":871234567890123457,"text":"#871234567890123457"}');
});

test("arguments no template names go to the query of GET, HEAD and DELETE and into the body of others", async () => {
  const params = { id: TEXT, page: { type: "integer" }, 名: TEXT };
  const args = { id: "7", page: 2, 名: "a&b=c" };
  for (const method of ["GET", "HEAD", "DELETE"]) {
    const { request } = await sent({ keys: { endpoint: "/{id}", method }, params }, args);
    expect(request).toMatchObject({ method, target: "/7?page=2&%E5%90%8D=a%26b%3Dc", body: "" });
  }
  for (const method of ["POST", "PUT", "PATCH"]) {
    const { request } = await sent({ keys: { endpoint: "/{id}", method }, params }, args);
    expect(request).toMatchObject({ method, target: "/7", body: '{"page":2,"名":"a&b=c"}' });
  }
});

test("a POST without any parameter has no body", async () => {
  const { request } = await sent({ keys: { endpoint: "/o", method: "POST" } }, {});
  expect(request?.body).toBe("");
  expect(request?.headers).toMatchObject({ "content-length": "0" });
  expect(request?.headers).not.toHaveProperty("content-type");
});

test("a list in the query repeats its name, and an empty one leaves it out [T-D02]", async () => {
  const params = { tags: { type: "array" } };
  const options: PathOptions = { keys: { endpoint: "/o", query: { tag: "{tags}" } }, params };
  expect((await sent(options, { tags: ["red", "blue green", "a,b"] })).request?.target).toBe(
    "/o?tag=red&tag=blue%20green&tag=a%2Cb",
  );
  expect((await sent({ keys: { endpoint: "/o" }, params }, { tags: [] })).request?.target).toBe("/o");
  expect((await sent(options, { tags: [{}] })).error?.reason).toBe("TEMPLATE_VALUE_REFUSED");
});

test.for([
  ["repeat", "/o?t=red&t=blue%20green&t=a%2Cb&tags=red&tags=blue%20green&tags=a%2Cb"],
  ["comma", "/o?t=red,blue%20green,a%2Cb&tags=red,blue%20green,a%2Cb"],
  [
    "brackets",
    "/o?t%5B%5D=red&t%5B%5D=blue%20green&t%5B%5D=a%2Cb&tags%5B%5D=red&tags%5B%5D=blue%20green&tags%5B%5D=a%2Cb",
  ],
] as const)("a list in the query is written as `query_style: %s` says [T-D02]", async ([style, target]) => {
  const params = { a: { type: "array" }, tags: { type: "array" }, one: TEXT };
  const keys = { endpoint: "/o?t={a}", query_style: style };
  const tags = ["red", "blue green", "a,b"];
  const options: PathOptions = { keys, params, required: [] };
  expect((await sent(options, { a: tags, tags })).request?.target).toBe(target);
  expect((await sent(options, { a: [], tags: [], one: "1" })).request?.target).toBe("/o?one=1");
  expect((await sent(options, { tags: ["a", null] })).error?.reason).toBe("TEMPLATE_VALUE_REFUSED");
});

test("a list in brackets cannot meddle with one the declaration sets", async () => {
  const keys = { endpoint: "/o?role[]=user", query_style: "brackets" };
  const { error, requests } = await sent({ keys, inputSchema: { type: "object" } }, { role: ["admin"] });
  expect(error).toMatchObject({ reason: "TEMPLATE_VALUE_REFUSED", violations: [{ field: "/role" }] });
  expect(requests).toHaveLength(0);
});

test("a plus sign, space and other characters keep their meaning in the query", async () => {
  const options: PathOptions = { keys: { endpoint: "/o", query: { "f[x]": "1+1 = {q}" } }, params: { q: TEXT } };
  const { request } = await sent(options, { q: "a+b c&d=ü😀" });
  expect(request?.target).toBe("/o?f%5Bx%5D=1%2B1%20%3D%20a%2Bb%20c%26d%3D%C3%BC%F0%9F%98%80");
});

test("an argument that fits nowhere is refused, never dropped", async () => {
  const keys = { endpoint: "/o", method: "POST", body: { a: "$a" } };
  const inputSchema = { type: "object", properties: { a: ANY } };
  const { error, requests } = await sent({ keys, inputSchema }, { a: 1, extra: 2 });
  expect(error).toMatchObject({ reason: "TEMPLATE_VALUE_REFUSED", violations: [{ field: "/extra" }] });
  expect(requests).toHaveLength(0);
});

test("an argument cannot meddle with a query parameter the declaration sets", async () => {
  const inputSchema = { type: "object" };
  const { error, requests } = await sent({ keys: { endpoint: "/o?role=user" }, inputSchema }, { role: "admin" });
  expect(error).toMatchObject({ reason: "TEMPLATE_VALUE_REFUSED", violations: [{ field: "/role" }] });
  expect(requests).toHaveLength(0);
});

test("a missing path argument never leaves a placeholder [T-D05]", async () => {
  const { error, requests } = await sent({ keys: { endpoint: "/o/{id}" }, params: { id: TEXT } }, {});
  expect(error?.message).toContain("argument `id` is missing");
  expect(requests).toHaveLength(0);
});

test("an object where text belongs is refused", async () => {
  const { error } = await sent({ keys: { endpoint: "/o/{id}" }, params: { id: ANY } }, { id: { a: 1 } });
  expect(error?.message).toContain("argument `id` the path takes text, a number or a boolean, got object");
});

test.for(["a\r\nX-Admin: 1", "a\nb", "a\0b", "a\u007fb"])(
  "a header value of more than one line is refused: %j",
  async (tenant) => {
    const options: PathOptions = {
      keys: { endpoint: "/o", headers: { "X-Tenant": "{tenant}" } },
      params: { tenant: TEXT },
    };
    const { error, requests } = await sent(options, { tenant });
    expect(error).toMatchObject({ reason: "TEMPLATE_VALUE_REFUSED", violations: [{ field: "/tenant" }] });
    expect(requests).toHaveLength(0);
  },
);

test("a header carries other characters as UTF-8", async () => {
  const options: PathOptions = { keys: { endpoint: "/o", headers: { "X-Name": "é {name}" } }, params: { name: TEXT } };
  const { request } = await sent(options, { name: "订单" });
  expect(Buffer.from(String(request?.headers["x-name"]), "latin1").toString("utf8")).toBe("é 订单");
});

test("names with a meaning to JavaScript are plain data", async () => {
  const args = JSON.parse('{"__proto__":{"admin":true},"constructor":"c"}') as JsonObject;
  const inputSchema = { type: "object", properties: {} };
  const { request } = await sent({ keys: { endpoint: "/o", method: "POST" }, inputSchema }, args);
  expect(request?.body).toBe('{"__proto__":{"admin":true},"constructor":"c"}');
  const body = JSON.parse('{"__proto__":{"a":"$a"}}') as JsonObject;
  const templated = await sent({ keys: { endpoint: "/o", method: "POST", body }, params: { a: ANY } }, { a: 1 });
  expect(templated.request?.body).toBe('{"__proto__":{"a":1}}');
  expect(({} as Record<string, unknown>)["admin"]).toBeUndefined();
});

test("the secret fills its header verbatim, and a prefix stands before it [S2-03, S2-50]", async () => {
  const environment = { ORDER_API_TOKEN: "sk-live-0123456789abcdef" };
  const auth = { header_name: "Authorization", secret_ref: "ORDER_API_TOKEN" };
  const plain = await sent({ keys: { endpoint: "/o", auth }, environment }, {});
  expect(plain.request?.headers.authorization).toBe("sk-live-0123456789abcdef");
  for (const [prefix, header] of [
    ["Bearer", "Bearer sk-live-0123456789abcdef"],
    ["Bearer ", "Bearer sk-live-0123456789abcdef"],
    ["Token token=", "Token token=sk-live-0123456789abcdef"],
  ] as const) {
    const keys = { endpoint: "/o", auth: { ...auth, prefix } };
    expect((await sent({ keys, environment }, {})).request?.headers.authorization).toBe(header);
  }
});

test("the only method is the declared one [S2-54]", async () => {
  const inputSchema = { type: "object" };
  const { request } = await sent(
    { keys: { endpoint: "/o", method: "GET" }, inputSchema },
    { method: "DELETE", _method: "PUT" },
  );
  expect(request).toMatchObject({ method: "GET", target: "/o?method=DELETE&_method=PUT" });
});

test("every request says who sends it and what it takes, and passes the trace on", async () => {
  const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
  const { request } = await sent({ keys: { endpoint: "/o" } }, {}, { traceparent });
  expect(request?.headers).toMatchObject({
    "user-agent": expect.stringMatching(/^toolgate\/\d+\.\d+\.\d+/),
    accept: "application/json, */*;q=0.5",
    traceparent,
  });
  expect(request?.headers).not.toHaveProperty("accept-encoding");
  expect(request?.headers).not.toHaveProperty("cookie");
  for (const malformed of ["00-1-2-3", `${traceparent}\r\nx: 1`, "é"]) {
    const other = await sent({ keys: { endpoint: "/o" } }, {}, { traceparent: malformed });
    expect(other.request?.headers).not.toHaveProperty("traceparent");
  }
  const headers = { "User-Agent": "mine/1", Accept: "text/csv" };
  const declared = await sent({ keys: { endpoint: "/o", headers } }, {});
  expect(declared.request?.headers).toMatchObject({ "user-agent": "mine/1", accept: "text/csv" });
});

test("validate_only assembles everything and reaches nobody", async () => {
  const options: PathOptions = { keys: { endpoint: "/o/{id}", method: "DELETE" }, params: { id: TEXT } };
  const good = await sent(options, { id: "7" }, { validateOnly: true });
  expect(good.result).toEqual({ content: [], effect: "none" });
  const bad = await sent(options, { id: ".." }, { validateOnly: true });
  expect(bad.error?.reason).toBe("TEMPLATE_VALUE_REFUSED");
  expect([...good.requests, ...bad.requests]).toHaveLength(0);
});

test("an argument that makes the URL too long is named before anything is sent", async () => {
  const inPath: PathOptions = { keys: { endpoint: "/o/{id}?q={q}" }, params: { id: TEXT, q: TEXT } };
  const error = { reason: "TEMPLATE_VALUE_REFUSED", status: "INVALID_ARGUMENT", effect: "none", retryable: false };
  for (const [args, field] of [
    [{ id: "x".repeat(900_000), q: "a" }, "/id"],
    [{ id: "a", q: "订".repeat(2_000) }, "/q"],
    [{ id: "x".repeat(9_000), q: "y".repeat(8_000) }, "/id"],
  ] as const) {
    const refused = await sent(inPath, args);
    expect(refused.error).toMatchObject({ ...error, violations: [{ field }] });
    expect(refused.error?.message).toContain("is too long: the URL takes at most 16384 bytes, encoded");
    expect(refused.requests).toHaveLength(0);
  }
  const unnamed: PathOptions = { keys: { endpoint: "/o" }, params: { tags: ANY } };
  const list = await sent(unnamed, { tags: Array.from({ length: 20_000 }, () => "x") });
  expect(list.error).toMatchObject({ ...error, violations: [{ field: "/tags" }] });
  expect((await sent(inPath, { id: "x".repeat(8_000), q: "a" })).request?.target).toHaveLength(8_007);
});

test("an argument that makes a header too long is named before anything is sent", async () => {
  const options: PathOptions = { keys: { endpoint: "/o", headers: { "X-Note": "n: {note}" } }, params: { note: TEXT } };
  const { error, requests } = await sent(options, { note: "é".repeat(8_191) });
  expect(error).toMatchObject({ reason: "TEMPLATE_VALUE_REFUSED", violations: [{ field: "/note" }] });
  expect(error?.message).toContain("is too long: header `X-Note` takes at most 16384 bytes");
  expect(requests).toHaveLength(0);
});
