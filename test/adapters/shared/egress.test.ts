import { expect, test } from "vitest";
import { addressClass, effectiveAddress, isLoopback } from "../../../src/adapters/shared/network/addresses.ts";
import { type EgressChoice, EgressGuard } from "../../../src/adapters/shared/network/egress.ts";
import { type EgressRules, readEgress } from "../../../src/core/egress.ts";

function rules(block: { allow?: readonly string[]; deny?: readonly string[] } | undefined): EgressRules | undefined {
  return block === undefined ? undefined : readEgress(block, (...problem) => expect(problem).toBe(undefined));
}

interface Lists {
  readonly gateway?: Parameters<typeof rules>[0];
  readonly own?: Parameters<typeof rules>[0];
}

function guard({ gateway, own }: Lists, choice: Partial<EgressChoice> = {}): EgressGuard {
  return new EgressGuard({
    allowPrivate: false,
    ownOpens: true,
    gateway: rules(gateway),
    own: rules(own),
    ...choice,
  });
}

test.for([
  ["203.0.113.7", "public"],
  ["2606:4700::1111", "public"],
  ["::ffff:203.0.113.7", "public"],
  ["64:ff9b::cb00:7107", "public"],
  ["64:ff9b::203.0.113.7", "public"],
  ["10.0.0.1", "private"],
  ["100.64.0.1", "private"],
  ["127.0.0.1", "private"],
  ["::1", "private"],
  ["::7f00:1", "private"],
  ["::ffff:10.0.0.1", "private"],
  ["::ffff:a00:1", "private"],
  ["64:ff9b::a00:1", "private"],
  ["64:ff9b::10.0.0.1", "private"],
  ["2001:0:a00:1::", "private"],
  ["2002:a00:1::", "private"],
  ["fd12::1", "private"],
  ["169.254.169.254", "special"],
  ["::ffff:169.254.169.254", "special"],
  ["64:ff9b::a9fe:a9fe", "special"],
  ["64:ff9b:1::1", "special"],
  ["100.100.100.200", "special"],
  ["168.63.129.16", "special"],
  ["192.0.0.192", "special"],
  ["fd00:ec2::254", "special"],
  ["fe80::1", "special"],
  ["fe80::1%eth0", "special"],
  ["0.0.0.0", "special"],
  ["::", "special"],
  ["224.0.0.1", "special"],
  ["255.255.255.255", "special"],
  ["ff02::1", "special"],
] as const)("%s is %s [X-D01]", ([address, kind]) => {
  expect(addressClass(effectiveAddress(address))).toBe(kind);
});

test.for(["localhost", "localhost.", "a.localhost", "127.9.9.9", "::1", "::ffff:7f00:1", "64:ff9b::7f00:1"])(
  "%s is loopback",
  (host) => expect(isLoopback(host)).toBe(true),
);

test("lists name hosts, subdomains, networks and ports; deny counts before allow, and both files count [S2-56, X-D01]", () => {
  const judge = (lists: Lists, host: string, address: string, port = 443): string => {
    const of = guard(lists, { allowPrivate: true });
    return (of.hostProblem({ host, port }) ?? of.addressProblem({ host, port }, address))?.code ?? "reached";
  };
  const own = (allow: readonly string[], deny: readonly string[] = []): Lists => ({ own: { allow, deny } });
  expect(judge({}, "a.example", "203.0.113.7")).toBe("reached");
  expect(judge(own(["a.example"]), "A.Example.", "203.0.113.7")).toBe("reached");
  expect(judge(own(["a.example"]), "b.example", "203.0.113.7")).toBe("EGRESS_DENIED");
  expect(judge(own(["*.example"]), "b.a.example", "203.0.113.7")).toBe("reached");
  expect(judge(own(["*.example"]), "example", "203.0.113.7")).toBe("EGRESS_DENIED");
  expect(judge(own(["*.example"]), "notexample", "203.0.113.7")).toBe("EGRESS_DENIED");
  expect(judge(own(["*.example:443"]), "a.example", "203.0.113.7", 80)).toBe("EGRESS_DENIED");
  expect(judge(own(["*:400-500"]), "a.example", "203.0.113.7")).toBe("reached");
  expect(judge(own(["203.0.113.0/24"]), "a.example", "203.0.113.7")).toBe("reached");
  expect(judge(own(["203.0.113.0/24"]), "a.example", "203.0.114.7")).toBe("EGRESS_DENIED");
  expect(judge(own(["203.0.113.0/24"]), "a.example", "::ffff:203.0.113.7")).toBe("reached");
  expect(judge(own(["*"], ["203.0.113.0/24"]), "a.example", "64:ff9b::cb00:7107")).toBe("EGRESS_DENIED");
  expect(judge(own(["*"], ["a.example"]), "a.example", "203.0.113.7")).toBe("EGRESS_DENIED");
  expect(judge(own([]), "a.example", "203.0.113.7")).toBe("EGRESS_DENIED");
  const both = { gateway: { allow: ["*.example"], deny: ["10.0.0.0/8"] }, own: { allow: ["a.example", "a.test"] } };
  expect(judge(both, "a.example", "203.0.113.7")).toBe("reached");
  expect(judge(both, "b.example", "203.0.113.7")).toBe("EGRESS_DENIED");
  expect(judge(both, "a.test", "203.0.113.7")).toBe("EGRESS_DENIED");
  expect(judge(both, "a.example", "10.1.1.1")).toBe("EGRESS_DENIED");
  expect(judge({ gateway: { deny: ["127.0.0.0/8"] } }, "127.0.0.1", "127.0.0.1")).toBe("EGRESS_DENIED");
});

test("a network of the declaration opens what is in it alone, and over the wire none does [X-D01]", () => {
  const target = { host: "a.example", port: 443 };
  const own = { allow: ["a.example", "10.1.0.0/16", "169.254.1.0/24:443"] };
  const problem = (address: string, choice: Partial<EgressChoice> = {}): string | undefined =>
    guard({ own }, choice).addressProblem(target, address)?.code;
  expect(problem("203.0.113.7")).toBeUndefined();
  expect(problem("10.1.2.3")).toBeUndefined();
  expect(problem("10.2.2.3")).toBe("PRIVATE_ADDRESS");
  expect(problem("169.254.1.1")).toBeUndefined();
  expect(problem("169.254.169.254", { allowPrivate: true })).toBe("PRIVATE_ADDRESS");
  expect(guard({ own }).addressProblem({ ...target, port: 80 }, "169.254.1.1")?.code).toBe("PRIVATE_ADDRESS");
  expect(problem("10.1.2.3", { ownOpens: false })).toBe("PRIVATE_ADDRESS");
  // What the operator lets through for all is not what one declaration means.
  expect(guard({ gateway: { allow: ["10.1.0.0/16"] } }).addressProblem(target, "10.1.2.3")?.code).toBe(
    "PRIVATE_ADDRESS",
  );
});

test("what is denied says by which entry of which file, and what is not allowed says so", () => {
  const target = { host: "a.example", port: 443 };
  const denied = guard({ gateway: { deny: ["203.0.113.0/24"] } }).addressProblem(target, "203.0.113.7");
  expect(denied?.message).toBe("203.0.113.7 is denied by `203.0.113.0/24` in `egress.deny` of gateway.yaml");
  const missing = guard({ own: { allow: ["b.example"] } }).hostProblem(target);
  expect(missing?.message).toBe("a.example, port 443, is not in `egress.allow` of the declaration");
  // Its addresses may be in the network, unless a proxy learns them and nobody here.
  const networks = guard({ own: { allow: ["203.0.113.0/24"] } });
  expect(networks.hostProblem(target)).toBeUndefined();
  expect(networks.hostProblem(target, true)?.code).toBe("EGRESS_DENIED");
});
