import { expect, test } from "vitest";
import { httpAdapter } from "../../../src/adapters/http/index.ts";
import type { JsonObject } from "../../../src/core/json.ts";
import { configure, problemsOf, type ToolOptions } from "./fixture.ts";

const TEXT: JsonObject = { type: "string" };

test("the order_status declaration loads as it is written [S2-34]", () => {
  const options: ToolOptions = {
    keys: {
      endpoint: "https://api.example.com/orders/{order_id}/status",
      method: "GET",
      auth: { header_name: "Authorization", secret_ref: "ORDER_API_TOKEN" },
    },
    params: { order_id: TEXT, include_history: { type: "boolean", default: false } },
    required: ["order_id"],
  };
  expect(configure(options)).toMatchObject({ ok: true, warnings: [] });
});

test("a placeholder without a parameter is named, with the parameter that was meant [S2-35]", () => {
  const keys = { endpoint: "http://127.0.0.1/orders/{order_id}" };
  expect(problemsOf({ keys, params: { orderid: TEXT } })).toEqual([
    "/endpoint `{order_id}` names no parameter; did you mean `orderid`?",
  ]);
  expect(problemsOf({ keys })).toEqual(["/endpoint `{order_id}` names no parameter; no parameter is declared"]);
});

test("a placeholder without a parameter is found in query, headers and body too [T-D05]", () => {
  const problems = problemsOf({
    keys: {
      endpoint: "http://127.0.0.1/o?a={nowhere}",
      method: "POST",
      query: { b: "{nobody}" },
      headers: { "X-C": "{nothing}" },
      body: { d: ["$never"] },
    },
  });
  expect(problems.map((problem) => problem.split(";")[0])).toEqual([
    "/endpoint `{nowhere}` names no parameter",
    "/query/b `{nobody}` names no parameter",
    "/headers/X-C `{nothing}` names no parameter",
    "/body/d/0 `$never` names no parameter",
  ]);
});

test("an environment variable in a header is refused, and the way to a secret named", () => {
  const [problem] = problemsOf({
    keys: { endpoint: "http://127.0.0.1/", headers: { Authorization: "Bearer ${TOKEN}" } },
  });
  expect(problem).toContain("`${TOKEN}` names no parameter");
  expect(problem).toContain("`auth.secret_ref`");
});

test.for(["toString", "constructor", "__proto__"])("`%s` is no parameter unless declared [X-D03]", (name) => {
  expect(problemsOf({ keys: { endpoint: `http://127.0.0.1/{${name}}` } })).toHaveLength(1);
  expect(problemsOf({ keys: { endpoint: "http://127.0.0.1/", method: "POST", body: { a: `$${name}` } } })).toHaveLength(
    1,
  );
});

test.for([
  "http://{tenant}.example.test/x",
  "http://{tenant}/x",
  "http://example.test:{tenant}/x",
  "{tenant}://example.test/x",
  "{tenant}/x",
  "http://user:{tenant}@example.test/x",
])("a parameter cannot choose where a request goes: %s [T-D08, X-D01]", (endpoint) => {
  expect(problemsOf({ keys: { endpoint }, params: { tenant: TEXT } })).toEqual([
    "/endpoint scheme, host and port must be fixed text: an argument must not choose where a request goes",
  ]);
});

test.for([
  ["/orders", "must be an absolute URL that begins with http:// or https://"],
  ["ftp://127.0.0.1/x", "must be an absolute URL that begins with http:// or https://"],
  ["file:///etc/passwd", "must be an absolute URL that begins with http:// or https://"],
  ["http://user:secret@127.0.0.1/x", "must not hold credentials; put the secret's name into `auth.secret_ref`"],
  ["http://127.0.0.1/x#top", "must not have a fragment (`#…`): it is never sent"],
  ["http://127.0.0.1:99999/x", "`127.0.0.1:99999` is no host with an optional port"],
  ["http://", "`` is no host with an optional port"],
  ["http://127.0.0.1/{id", "`{` stands alone; write `{{` for the character itself"],
  ["http://127.0.0.1/id}", "`}` stands alone; write `}}` for the character itself"],
  ["http://127.0.0.1/?{id}", "query pair `{id}` must begin with a fixed name and `=`"],
] as const)("endpoint %s is refused", ([endpoint, message]) => {
  expect(problemsOf({ keys: { endpoint }, params: { id: TEXT } })).toEqual([`/endpoint ${message}`]);
});

test("a declared URL or header that leaves no room for a request is refused", () => {
  const long = `http://127.0.0.1/${"订".repeat(2_000)}`;
  const tooLong = "/endpoint is too long: path and query take at most 16384 bytes, encoded";
  expect(problemsOf({ keys: { endpoint: long } })).toEqual([tooLong]);
  const query = { a: "x".repeat(16_384) };
  expect(problemsOf({ keys: { endpoint: "http://127.0.0.1/", query } })).toEqual([tooLong]);
  const headers = { "X-Note": "x".repeat(16_385) };
  expect(problemsOf({ keys: { endpoint: "http://127.0.0.1/", headers } })).toEqual([
    "/headers/X-Note is too long: a header takes at most 16384 bytes",
  ]);
});

test("a parameter in the path must be a scalar that is always there", () => {
  const keys = { endpoint: "http://127.0.0.1/{id}" };
  expect(problemsOf({ keys, params: { id: TEXT }, required: [] })).toEqual([
    "/endpoint parameter `id` stands in the path, so it must be required or have a default",
  ]);
  expect(problemsOf({ keys, params: { id: { type: "string", default: "1" } }, required: [] })).toEqual([]);
  expect(problemsOf({ keys, params: { id: { type: "array" } } })).toEqual([
    "/endpoint parameter `id` is an array, and the path takes only text, numbers and booleans",
  ]);
});

test("an object has no form in a query, and a list none in a header", () => {
  const endpoint = "http://127.0.0.1/";
  expect(problemsOf({ keys: { endpoint }, params: { filter: { type: "object" } } })).toEqual([
    "/endpoint parameter `filter` is an object, and the query takes no objects",
  ]);
  expect(
    problemsOf({ keys: { endpoint, headers: { "X-Tags": "{tags}" } }, params: { tags: { type: "array" } } }),
  ).toEqual(["/headers/X-Tags parameter `tags` is an array, and a header takes only text, numbers and booleans"]);
});

test("an argument cannot meddle with a query parameter the declaration sets", async () => {
  const message =
    "/endpoint the declaration sets query parameter `role`, and parameter `role` would set it too; write `role={role}`";
  for (const keys of [
    { endpoint: "http://127.0.0.1/?ro%6Ce=user" },
    { endpoint: "http://127.0.0.1/", query: { role: "user" } },
  ]) {
    expect(problemsOf({ keys, params: { role: TEXT } })).toEqual([message]);
  }
  expect(problemsOf({ keys: { endpoint: "http://127.0.0.1/?role={role}" }, params: { role: TEXT } })).toEqual([]);
});

test("only the declared method set is allowed [S2-54]", () => {
  const endpoint = "http://127.0.0.1/";
  expect(problemsOf({ keys: { endpoint, method: "TRACE" } })).toEqual([
    "/method `TRACE` is no method; allowed: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS",
  ]);
  for (const method of ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]) {
    expect(problemsOf({ keys: { endpoint, method } })).toEqual([]);
  }
});

test("body and request_body are one key [S2-37]", () => {
  const keys = { endpoint: "http://127.0.0.1/", method: "POST", body: { a: 1 }, request_body: { a: 1 } };
  expect(problemsOf({ keys })).toEqual([
    "/request_body `body` and `request_body` are the same key; set only one of them",
  ]);
});

test("with a body template, a parameter that stands nowhere is named", () => {
  const keys = { endpoint: "http://127.0.0.1/", method: "POST", request_body: { a: "$a" } };
  expect(problemsOf({ keys, params: { a: TEXT, b: TEXT } })).toEqual([
    "/request_body parameter `b` stands nowhere; write `$b` in the body or `{b}` in the URL",
  ]);
});

test("a body is a map, a list or one reference", () => {
  const keys = (body: string): JsonObject => ({ endpoint: "http://127.0.0.1/", method: "POST", body });
  expect(problemsOf({ keys: keys("$doc"), params: { doc: { type: "object" } } })).toEqual([]);
  expect(problemsOf({ keys: keys('{"id": "$doc"}'), params: { doc: TEXT } })).toEqual([
    "/body a JSON body is no text with parameters in it; write a map or a list or one `$param` alone, or add a `content_type` such as text/plain",
  ]);
  expect(problemsOf({ keys: { ...keys("$doc"), method: "HEAD" }, params: { doc: TEXT } })).toEqual([
    "/body a HEAD request has no body",
  ]);
});

test("the body of a GET is allowed, with a warning", () => {
  const configured = configure({ keys: { endpoint: "http://127.0.0.1/", body: { a: 1 } } });
  expect(configured).toMatchObject({ ok: true, warnings: [{ pointer: "/body" }] });
});

test("a dollar reference where it has no meaning is warned of", () => {
  const configured = configure({
    keys: { endpoint: "http://127.0.0.1/", query: { p: "$page" } },
    params: { page: TEXT },
  });
  expect(configured).toMatchObject({
    ok: true,
    warnings: [{ pointer: "/query/p", message: expect.stringContaining("write `{page}`") }],
  });
});

test.for([
  "Host",
  "content-length",
  "Connection",
  "Transfer-Encoding",
  "TE",
  "Keep-Alive",
  "Upgrade",
  "traceparent",
  "Expect",
])("header %s cannot be declared", (name) => {
  const endpoint = "http://127.0.0.1/";
  const message = `header \`${name}\` is set by the gateway and cannot be declared`;
  expect(problemsOf({ keys: { endpoint, headers: { [name]: "x" } } })).toEqual([`/headers/${name} ${message}`]);
  const auth = { header_name: name, secret_ref: "S" };
  expect(problemsOf({ keys: { endpoint, auth } })).toEqual([`/auth/header_name ${message}`]);
});

test("a header is set once, has a valid name and a value of one line", () => {
  const endpoint = "http://127.0.0.1/";
  const headers = { "X-A": "1", "x-a": "2" };
  expect(problemsOf({ keys: { endpoint, headers } })).toEqual([
    "/headers/x-a header `x-a` is set twice; names do not differ by case",
  ]);
  const auth = { header_name: "X-Key", secret_ref: "S" };
  expect(problemsOf({ keys: { endpoint, headers: { "x-key": "1" }, auth } })).toHaveLength(1);
  expect(problemsOf({ keys: { endpoint, headers: { "X A": "1" } } })[0]).toContain("is no header name");
  expect(problemsOf({ keys: { endpoint, headers: { "X-A": "1\r\nX-B: 2" } } })[0]).toContain("holds a line break");
  expect(problemsOf({ keys: { endpoint, headers: { "Accept-Encoding": "gzip, lzma" } } })[0]).toContain("`lzma`");
});

test("the content type of a body stays a JSON one", () => {
  const keys = (type: string): JsonObject => ({
    endpoint: "http://127.0.0.1/",
    method: "PATCH",
    headers: { "Content-Type": type },
    body: [{ op: "add" }],
  });
  expect(problemsOf({ keys: keys("application/json-patch+json") })).toEqual([]);
  expect(problemsOf({ keys: keys("application/x-www-form-urlencoded") })).toEqual([
    "/headers/Content-Type bodies are sent as JSON, so the content type must be a JSON one; for a text body use `content_type`",
  ]);
});

test("all problems of a declaration are reported at once", () => {
  const problems = problemsOf({
    keys: { endpoint: "http://127.0.0.1/{a}", method: "FETCH", query: { b: "{b}" }, headers: { Host: "h" } },
  });
  expect(problems.map((problem) => problem.split(" ")[0])).toEqual([
    "/method",
    "/endpoint",
    "/query/b",
    "/headers/Host",
  ]);
});

test("the schema marks what is known and not supported yet", () => {
  const properties = httpAdapter.configSchema["properties"] as Record<string, JsonObject>;
  const later = Object.keys(properties).filter((key) => properties[key]?.["x-not-supported"] === true);
  expect(later).toEqual(expect.arrayContaining(["proxy", "tls"]));
});

test("the explanation shows where things go, and no header value [K-D05]", async () => {
  const configured = configure({
    keys: {
      endpoint: "http://127.0.0.1:7434/orders/{order_id}",
      headers: { "X-Api-Key": "hard-coded" },
      auth: { header_name: "Authorization", secret_ref: "ORDER_API_TOKEN", prefix: "Bearer" },
    },
    params: { order_id: TEXT },
  });
  if (!configured.ok) throw new Error("refused");
  const settings = httpAdapter.explain(configured.config as never);
  expect(Object.fromEntries(settings.map(({ key, value }) => [key, value]))).toEqual({
    method: "GET",
    endpoint: "http://127.0.0.1:7434/orders/{order_id}",
    "headers.X-Api-Key": "***",
    "auth.header_name": "Authorization",
    "auth.secret_ref": "ORDER_API_TOKEN",
    "auth.prefix": "Bearer",
    unnamed_arguments: "query",
    "pool.max_connections": "1024",
    "pool.max_waiting": "1024",
    "pool.max_idle": "256",
  });
});
