import type { LookupAddress } from "node:dns";
import type { LookupFunction } from "node:net";
import { expect, test } from "vitest";
import { call, configure, openTool, problemsOf, startJsonUpstream } from "./fixture.ts";

/** Answers every name with these addresses, one list after the other, and counts how often it is asked. */
function names(...lists: (readonly string[])[]): { readonly lookup: LookupFunction; readonly asked: string[] } {
  const asked: string[] = [];
  const lookup: LookupFunction = (host, options, callback) => {
    const list = lists[Math.min(asked.length, lists.length - 1)] ?? [];
    asked.push(host);
    const found = list.map((address): LookupAddress => ({ address, family: address.includes(":") ? 6 : 4 }));
    if (options.all === true) callback(null, found);
    else callback(null, found[0]?.address ?? "", found[0]?.family);
  };
  return { lookup, asked };
}

const MEANT = "Set `allow_private: true` if this address is meant, or correct the host of `endpoint`.";
const NAMED = "Name its network under `egress.allow` if this address is meant, or correct the host.";
const ALLOWED = "which is no public address; `allow_private: true` allows it";
const SPECIAL =
  "a link-local, metadata or reserved address; only its network in `egress.allow` of the declaration allows it";

const REFUSED_ADDRESSES = [
  "127.0.0.1",
  "127.8.9.1",
  "10.1.2.3",
  "172.16.0.1",
  "172.31.255.255",
  "192.168.1.1",
  "198.18.0.1",
  "::1",
  "100.64.0.1",
  "fd00::1",
  "::ffff:127.0.0.1",
  "64:ff9b::7f00:1",
  "2002:7f00:1::",
];

const SPECIAL_ADDRESSES = [
  "0.0.0.0",
  "169.254.169.254",
  "100.100.100.200",
  "168.63.129.16",
  "224.0.0.1",
  "255.255.255.255",
  "::",
  "fe80::1",
  "fec0::1",
  "fd00:ec2::254",
  "ff02::1",
  "::ffff:a9fe:a9fe",
];

test.for([
  ...REFUSED_ADDRESSES.map((address) => [address, ALLOWED, MEANT] as const),
  ...SPECIAL_ADDRESSES.map((address) => [address, SPECIAL, NAMED] as const),
])("a name that leads to %s is refused before anything is sent [X-D01]", async ([address, why, mend]) => {
  const { lookup } = names([address]);
  await using tool = await openTool({ keys: { endpoint: "http://orders.example.test/o", method: "POST" }, lookup });
  const { error } = await call(tool);
  expect(error).toMatchObject({
    reason: "UPSTREAM_UNREACHABLE",
    effect: "none",
    retryable: false,
    metadata: { code: "PRIVATE_ADDRESS" },
    message: `order_status: no connection to http://orders.example.test: its name leads to ${address}, ${why}`,
    modelMessage: "order_status: the upstream cannot be reached; nothing was changed",
  });
  expect(await tool.probe(new AbortController().signal)).toEqual({
    ok: false,
    message: `no connection to http://orders.example.test: its name leads to ${address}, ${why}`,
    mend,
  });
});

test("one private address among public ones is enough, over TLS too", async () => {
  for (const endpoint of ["http://orders.example.test/", "https://orders.example.test/"]) {
    await using tool = await openTool({ keys: { endpoint }, lookup: names(["203.0.113.7", "127.0.0.1"]).lookup });
    expect((await call(tool)).error?.message).toContain("its name leads to 127.0.0.1");
  }
});

test("`allow_private` lets a name lead anywhere, and what was found is what is connected to", async () => {
  await using upstream = await startJsonUpstream();
  const { lookup, asked } = names(["127.0.0.1"], ["127.0.0.2"]);
  const endpoint = `http://orders.example.test:${upstream.port}/o`;
  await using tool = await openTool({ keys: { endpoint, allow_private: true }, lookup });
  for (let i = 0; i < 2; i++) expect((await call(tool)).result?.upstreamCode).toBe(200);
  expect(asked).toEqual(["orders.example.test"]);
  expect(upstream.requests[0]?.headers.host).toBe(`orders.example.test:${upstream.port}`);
});

test("a name that turns private is refused at the next connection", async () => {
  await using upstream = await startJsonUpstream();
  const { lookup, asked } = names([], ["127.0.0.1"]);
  await using tool = await openTool({ keys: { endpoint: `http://orders.example.test:${upstream.port}/` }, lookup });
  for (let i = 0; i < 2; i++) expect((await call(tool)).error?.reason).toBe("UPSTREAM_UNREACHABLE");
  expect(asked).toHaveLength(2);
  expect(upstream.sockets).toHaveLength(0);
});

test("an address or `localhost` in the declaration is reached as it is written [X-D01]", async () => {
  await using upstream = await startJsonUpstream();
  const { lookup, asked } = names(["203.0.113.7"]);
  for (const host of ["127.0.0.1", "localhost", "api.localhost", "[::ffff:127.0.0.1]", "2130706433"]) {
    await using tool = await openTool({ keys: { endpoint: `http://${host}:${upstream.port}/` }, lookup });
    expect((await call(tool)).result?.upstreamCode).toBe(200);
  }
  expect(asked).toEqual([]);
});

test("`allow_private` where only names are checked is warned of", () => {
  const keys = (host: string): { endpoint: string; allow_private: boolean } => ({
    endpoint: `http://${host}/`,
    allow_private: true,
  });
  expect(configure({ keys: keys("10.0.0.1") })).toMatchObject({
    ok: true,
    warnings: [
      {
        pointer: "/allow_private",
        message: "has no effect: `10.0.0.1` is reached as it is written, only names are checked",
      },
    ],
  });
  expect(configure({ keys: keys("orders.example.test") })).toMatchObject({ ok: true, warnings: [] });
});

test.for([
  ["http://127.0.0.1:7434/", { none: false, loopback: true }],
  ["http://localhost/", { none: false, loopback: true }],
  ["http://a.localhost/", { none: false, loopback: true }],
  ["http://[::1]/", { none: false, loopback: true }],
  ["http://[::ffff:127.0.0.1]/", { none: false, loopback: true }],
  ["http://2130706433/", { none: false, loopback: true }],
  ["http://169.254.169.254/latest/meta-data", { none: false, loopback: false }],
  ["http://10.0.0.5/", { none: false, loopback: false }],
  ["http://0.0.0.0/", { none: false, loopback: false }],
  ["http://[::ffff:10.0.0.5]/", { none: false, loopback: false }],
  ["http://[fd00::1]/", { none: false, loopback: false }],
  ["https://203.0.113.7/", { none: true, loopback: true }],
  ["https://orders.example.test/", { none: true, loopback: true }],
] as const)("over the wire %s may be named as far as the reach goes", ([endpoint, allowed]) => {
  for (const reach of ["none", "loopback"] as const) {
    const problems = problemsOf({ keys: { endpoint }, reach });
    expect(problems.length === 0, `${reach}: ${problems.join()}`).toBe(allowed[reach]);
  }
  expect(problemsOf({ keys: { endpoint }, reach: "all" })).toEqual([]);
});

test("over the wire a name is not let lead to private addresses, unless the gateway allows it", () => {
  const keys = { endpoint: "https://orders.example.test/", allow_private: true };
  expect(problemsOf({ keys, reach: "loopback" })).toEqual([
    "/allow_private is not for tools registered over the wire; declare it in a file, or set " +
      "`registration.private_addresses` in gateway.yaml",
  ]);
  expect(problemsOf({ keys, reach: "all" })).toEqual([]);
});
