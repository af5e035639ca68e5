import { expect, test } from "vitest";
import type { JsonObject } from "../../../src/core/json.ts";
import { configure, type PathOptions, problemsOf, sent } from "./fixture.ts";

const TEXT: JsonObject = { type: "string" };
const ENDPOINT = "http://127.0.0.1/o";

test("a form is sent URL-encoded, its fields filled like a query", async () => {
  const form = { grant_type: "order query", q: "{q}", 订单: "{id}", tag: "{tags}", page: "p{page}", none: "{none}" };
  const options: PathOptions = {
    keys: { endpoint: "/o", method: "POST", form },
    params: { q: TEXT, id: { type: "integer" }, tags: { type: "array" }, page: { type: "integer" }, none: TEXT },
    required: [],
  };
  const args = { q: "a+b c&d=ü%20", id: 871234567890123457n, tags: ["x", "y z"], page: 0, none: null };
  const { request } = await sent(options, args);
  expect(request).toMatchObject({
    method: "POST",
    target: "/o",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: "grant_type=order+query&q=a%2Bb+c%26d%3D%C3%BC%2520&%E8%AE%A2%E5%8D%95=871234567890123457&tag=x&tag=y+z&page=p0",
  });
  const comma = await sent({ ...options, keys: { ...options.keys, query_style: "comma" } }, args);
  expect(comma.request?.body).toContain("&tag=x,y+z&");
  expect([...new URLSearchParams(request?.body)]).toContainEqual(["q", "a+b c&d=ü%20"]);
});

test("a form without a field that has a value is an empty body", async () => {
  const keys = { endpoint: "/o", method: "POST", form: { q: "{q}" } };
  const { request } = await sent({ keys, params: { q: TEXT }, required: [] }, {});
  expect(request).toMatchObject({ body: "", headers: { "content-length": "0" } });
});

test("a form takes every parameter, and no objects", () => {
  const keys = { endpoint: ENDPOINT, method: "POST", form: { q: "{q}", w: "{nobody}" } };
  expect(problemsOf({ keys, params: { q: { type: "object" }, left: TEXT } })).toEqual([
    "/form/q parameter `q` is an object, and the form takes no objects",
    "/form/w `{nobody}` names no parameter; declared are: q, left",
    "/form parameter `left` stands nowhere; write `{left}` in the form or the URL",
  ]);
});

test("a request has one body with one content type", () => {
  const form = { a: "1" };
  const post = { endpoint: ENDPOINT, method: "POST" };
  expect(problemsOf({ keys: { ...post, form, body: { a: 1 } } })).toEqual([
    "/form a request has one body; set either `body` or `form`",
  ]);
  expect(problemsOf({ keys: { ...post, form, content_type: "text/plain" } })).toEqual([
    "/content_type a form sets its content type itself; remove `content_type`",
  ]);
  expect(problemsOf({ keys: { ...post, form, headers: { "Content-Type": "application/json" } } })).toEqual([
    "/headers/Content-Type a form sets its content type itself",
  ]);
  const headers = { "content-type": "application/json" };
  expect(problemsOf({ keys: { ...post, content_type: "text/plain", body: "x", headers } })).toEqual([
    "/headers/content-type the content type is set by `content_type` too",
  ]);
  expect(problemsOf({ keys: { ...post, method: "HEAD", form } })).toEqual(["/form a HEAD request has no body"]);
});

test.for([
  ["xml", "`xml` is no content type, such as application/xml"],
  ["text/plain\r\nX: 1", "`text/plain\r\nX: 1` is no content type, such as application/xml"],
  ["application/x-www-form-urlencoded", "a form is declared by `form`, and sets its content type itself"],
  ["multipart/form-data; boundary=x", "a multipart form is declared by `multipart`, and sets its content type itself"],
  ["text/xml; charset=gbk", "bodies are sent in UTF-8 only"],
] as const)("content type %j is refused", ([type, message]) => {
  const keys = { endpoint: ENDPOINT, method: "POST", body: "x", content_type: type };
  expect(problemsOf({ keys })).toEqual([`/content_type ${message}`]);
});

test("a content type needs a body of its kind", () => {
  const type = { endpoint: ENDPOINT, content_type: "application/xml" };
  expect(problemsOf({ keys: type })).toEqual([
    "/content_type the request has no body that it could be the type of; add `body`",
  ]);
  expect(problemsOf({ keys: { ...type, method: "POST" }, params: { a: TEXT } })).toEqual([
    "/content_type a body of this type must be declared as a text; add `body`",
  ]);
  expect(problemsOf({ keys: { ...type, method: "POST", request_body: { a: 1 } } })).toEqual([
    "/request_body with content type application/xml the body must be a text",
  ]);
});

test("a JSON body has the JSON content type that is declared", async () => {
  const content_type = "application/merge-patch+json";
  const keys = { endpoint: "/o", method: "PATCH", content_type };
  const unnamed = await sent({ keys, params: { a: TEXT } }, { a: "1" });
  expect(unnamed.request).toMatchObject({ body: '{"a":"1"}', headers: { "content-type": content_type } });
  const templated = await sent({ keys: { ...keys, body: { b: "$a" } }, params: { a: TEXT } }, { a: "1" });
  expect(templated.request).toMatchObject({ body: '{"b":"1"}', headers: { "content-type": content_type } });
});

test("a text body is sent as it is declared, its arguments as they are", async () => {
  const keys = { endpoint: "/o", method: "POST", content_type: "text/plain", body: "查询 $id: ${note}!\n$$5" };
  const { request } = await sent(
    { keys, params: { id: { type: "integer" }, note: TEXT } },
    { id: 7, note: "<a> $& 😀" },
  );
  expect(request).toMatchObject({
    body: "查询 7: <a> $& 😀!\n$5",
    headers: { "content-type": "text/plain; charset=utf-8" },
  });
});

test.for([
  ["application/xml", "application/xml; charset=utf-8"],
  ["text/xml; charset=UTF-8", "text/xml; charset=UTF-8"],
  ["application/soap+xml", "application/soap+xml; charset=utf-8"],
  ["text/html", "text/html; charset=utf-8"],
] as const)("in %s an argument stays one text, in an element and in an attribute [S2-06]", async ([type, header]) => {
  const keys = { endpoint: "/o", method: "POST", content_type: type, request_body: '<o id="$id"><n>$note</n></o>' };
  const args = { id: `1" admin='yes`, note: "</n><admin>&amp; ]]>\r\n订单" };
  const { request } = await sent({ keys, params: { id: TEXT, note: TEXT } }, args);
  expect(request?.headers["content-type"]).toBe(header);
  expect(request?.body).toBe(
    '<o id="1&#34; admin=&#39;yes"><n>&#60;/n&#62;&#60;admin&#62;&#38;amp; ]]&#62;&#13;&#10;订单</n></o>',
  );
});

test.for(["a\0b", "a\u0008", "\ud800", "\uffff"])("XML cannot carry %j", async (note) => {
  const keys = { endpoint: "/o", method: "POST", content_type: "text/xml", body: "<n>$note</n>" };
  const { error, requests } = await sent({ keys, params: { note: TEXT } }, { note });
  expect(error).toMatchObject({ reason: "TEMPLATE_VALUE_REFUSED", violations: [{ field: "/note" }] });
  expect(requests).toHaveLength(0);
});

test("a text body needs each of its parameters, as a scalar, where it can be escaped", async () => {
  const keys = { endpoint: ENDPOINT, method: "POST", content_type: "text/xml" };
  const params = { a: TEXT, list: { type: "array" }, b: TEXT };
  expect(problemsOf({ keys: { ...keys, body: "<x>$a$list$b$c${</x>" }, params })).toEqual([
    "/body `${` has no name and `}` after it",
    ...["a", "list", "b"].map(
      (name) =>
        `/body parameter \`${name}\` stands nowhere; write \`$${name}\` in the body or \`{${name}}\` in the URL`,
    ),
  ]);
  expect(problemsOf({ keys: { ...keys, body: "<x>$a$list$c</x>" }, params, required: ["list"] })).toEqual([
    expect.stringContaining("/body `$c` names no parameter"),
    "/body parameter `list` is an array, and a text body takes only text, numbers and booleans",
    "/body parameter `a` stands in a text body, so it must be required or have a default",
    "/body parameter `b` stands nowhere; write `$b` in the body or `{b}` in the URL",
  ]);
  for (const body of ["<![CDATA[ok]]><![CDATA[$a]]>", "<!-- $a -->"]) {
    expect(problemsOf({ keys: { ...keys, body }, params: { a: TEXT } })).toEqual([
      "/body `$a` stands in a CDATA section or comment, where it cannot be escaped",
    ]);
  }
  expect(configure({ keys: { ...keys, body: "<![CDATA[ok]]><!-- ok -->$a" }, params: { a: TEXT } }).ok).toBe(true);
  const nullable = { a: { type: ["string", "null"] } };
  const { error } = await sent({ keys: { ...keys, endpoint: "/o", body: "<x>$a</x>" }, params: nullable }, { a: null });
  expect(error?.message).toContain("argument `a` is missing, and the body needs it");
});
