import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { expect, test } from "vitest";
import { OperatorService } from "../../gen/toolgate/v1/operator_service_pb.ts";
import { GROUP_SETTINGS, type GroupKey, POLICY_SETTINGS, type PolicyKey } from "../../src/config/policy-settings.ts";
import { type Clock, systemClock } from "../../src/core/clock.ts";
import { type OpenGateway, openGateway, temporaryFolder } from "./effects-gateway.ts";

/** Two values of a key, and what each makes of a gateway with the tools `one` and `two`. */
interface Difference {
  readonly values: readonly [before: unknown, after: unknown];
  /** What the declarations of both say besides, by dotted key. */
  readonly beside?: Keys;
  /** The status of all answers; default 200. */
  readonly status?: number;
  readonly see: (gateway: OpenGateway, upstream: Upstream, waits: readonly number[]) => Promise<unknown>;
  readonly seen: readonly [before: unknown, after: unknown];
}

/** Retries by which a key of `retry` shows. */
const RETRIES = {
  "retry.max_retries": 1,
  "retry.backoff": "fixed",
  "retry.initial_backoff": "1ms",
  "circuit_breaker.enabled": false,
};

/** Each policy with what shows that it has an effect, on whatever level it is set. */
const POLICIES: Readonly<Record<PolicyKey, Difference>> = {
  "retry.max_retries": { values: [1, 2], beside: RETRIES, status: 503, see: requestsOf(["one"]), seen: [2, 3] },
  "retry.backoff": {
    values: ["fixed", "exponential"],
    beside: { ...RETRIES, "retry.initial_backoff": "61ms" },
    status: 503,
    see: waitsAmong([61]),
    seen: [[61], []],
  },
  "retry.initial_backoff": {
    values: ["61ms", "67ms"],
    beside: RETRIES,
    status: 503,
    see: waitsAmong([61, 67]),
    seen: [[61], [67]],
  },
  "retry.max_backoff": {
    values: ["61ms", "67ms"],
    beside: { ...RETRIES, "retry.initial_backoff": "1s" },
    status: 503,
    see: waitsAmong([61, 67]),
    seen: [[61], [67]],
  },
  "retry.budget": {
    values: [0, 1],
    beside: RETRIES,
    status: 503,
    see: requestsOf(Array.from({ length: 12 }, () => "one")),
    seen: [12 + 10, 12 + 12],
  },
  "hedge.after": { values: ["10s", "20ms"], see: requestsOf(["one"]), seen: [1, 2] },
  "hedge.max": { values: [1, 2], beside: { "hedge.after": "20ms" }, see: requestsOf(["one"]), seen: [2, 3] },
  "circuit_breaker.enabled": {
    values: [true, false],
    beside: { "circuit_breaker.failure_threshold": 2 },
    status: 503,
    see: requestsInTurn(["one", "one", "one", "one"]),
    seen: [2, 4],
  },
  "circuit_breaker.failure_threshold": {
    values: [2, 3],
    status: 503,
    see: requestsInTurn(["one", "one", "one", "one"]),
    seen: [2, 3],
  },
  "circuit_breaker.reset_timeout": {
    values: ["61ms", "67ms"],
    beside: { "circuit_breaker.failure_threshold": 1 },
    status: 503,
    see: waitsAmong([61, 67]),
    seen: [[61], [67]],
  },
  "circuit_breaker.scope": {
    values: ["tool", "upstream"],
    beside: { "circuit_breaker.failure_threshold": 1 },
    status: 503,
    see: requestsInTurn(["one", "two", "one", "two"]),
    seen: [2, 1],
  },
  concurrency_limit: { values: [2, 3], see: callTogether(["one", "one", "one", "one"]), seen: [2, 3] },
};

/** What the tools of a group share. */
const SHARED: Readonly<Record<GroupKey, Difference>> = {
  max_parallel_calls: { values: [2, 3], see: callTogether(["one", "two", "one", "two"]), seen: [2, 3] },
};

/** An upstream that holds its answers for a moment and knows how many it held at a time. */
class Upstream implements AsyncDisposable {
  most = 0;
  requests = 0;
  readonly #server: Server;
  #held = 0;

  private constructor(server: Server) {
    this.#server = server;
  }

  static async start(status: number): Promise<Upstream> {
    const upstream: Upstream = new Upstream(
      createServer((_request, response) => {
        upstream.requests += 1;
        upstream.#held += 1;
        upstream.most = Math.max(upstream.most, upstream.#held);
        setTimeout(() => {
          upstream.#held -= 1;
          response.writeHead(status, { "content-type": "application/json" }).end("{}");
        }, 150);
      }),
    );
    upstream.#server.listen(0, "127.0.0.1");
    await once(upstream.#server, "listening");
    return upstream;
  }

  get url(): string {
    const address = this.#server.address();
    return `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}/`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** How many of these calls the upstream has at a time. */
function callTogether(names: readonly string[]): Difference["see"] {
  return async ({ client }, upstream) => {
    await Promise.all(names.map((name) => client.call(name)));
    return upstream.most;
  };
}

/** How many requests the upstream got for these calls. */
function requestsOf(names: readonly string[]): Difference["see"] {
  return async ({ client }, upstream) => {
    await Promise.all(names.map((name) => client.call(name)));
    return upstream.requests;
  };
}

/** How many requests the upstream got for these calls, one after the other, whatever comes of them. */
function requestsInTurn(names: readonly string[]): Difference["see"] {
  return async ({ client }, upstream) => {
    for (const name of names) await client.call(name).catch(() => undefined);
    return upstream.requests;
  };
}

/** Which of these waits a call makes. */
function waitsAmong(wanted: readonly number[]): Difference["see"] {
  return async ({ client }, _upstream, waits) => {
    await client.call("one");
    return wanted.filter((ms) => waits.includes(ms));
  };
}

/** The system's clock, which notes what is waited for. */
function notingClock(waits: number[]): Clock {
  return {
    ...systemClock,
    after(delayMs, task) {
      waits.push(delayMs);
      return systemClock.after(delayMs, task);
    },
  };
}

/** `{ retry: { backoff: value } }` of `retry.backoff`. */
function nested(key: string, value: unknown): Keys {
  return tree({ [key]: value });
}

/** The mapping in which dotted keys stand. */
function tree(keys: Keys): Keys {
  const roots = new Set(Object.keys(keys).map((key) => key.split(".")[0] ?? ""));
  const below = (root: string): unknown => {
    if (root in keys) return keys[root];
    const inner = Object.entries(keys).filter(([key]) => key.startsWith(`${root}.`));
    return tree(Object.fromEntries(inner.map(([key, value]) => [key.slice(root.length + 1), value])));
  };
  return Object.fromEntries([...roots].map((root) => [root, below(root)]));
}

type Keys = Readonly<Record<string, unknown>>;

interface Level {
  /** Dotted keys of the declarations. */
  readonly tool: (key: string, value: unknown) => Keys;
  readonly settings: (key: string, value: unknown) => Keys;
  readonly origin: RegExp;
}

const LEVELS: Readonly<Record<"a declaration" | "a group" | "the defaults", Level>> = {
  "a declaration": { tool: (key, value) => ({ [key]: value }), settings: () => ({}), origin: /^file:one\.yaml:1$/ },
  "a group": {
    tool: () => ({ group: "shared" }),
    settings: (key, value) => ({ groups: { shared: nested(key, value) } }),
    origin: /^gateway\.yaml:\d+$/,
  },
  "the defaults": {
    tool: () => ({}),
    settings: (key, value) => ({ defaults: nested(key, value) }),
    origin: /^gateway\.yaml:\d+$/,
  },
};

async function seeing(level: Level, key: string, difference: Difference, value: unknown): Promise<unknown> {
  const { see, beside = {}, status = 200 } = difference;
  await using upstream = await Upstream.start(status);
  await using folder = await temporaryFolder();
  const others = Object.fromEntries(Object.entries(beside).filter(([name]) => name !== key));
  const tool = (name: string): string =>
    JSON.stringify({
      name,
      description: "用于检查策略 shows which policies have an effect",
      type: "http",
      endpoint: upstream.url,
      ...tree({ ...others, ...level.tool(key, value) }),
    });
  const waits: number[] = [];
  await using gateway = await openGateway({
    folder: folder.path,
    files: { "tools/one.yaml": tool("one"), "tools/two.yaml": tool("two") },
    settings: level.settings(key, value),
    clock: notingClock(waits),
  });
  const seen = await see(gateway, upstream, waits);
  if (!(key in GROUP_SETTINGS)) {
    const transport = createConnectTransport({ baseUrl: gateway.url, httpVersion: "1.1" });
    const { values } = await createClient(OperatorService, transport).explain({ name: "one" });
    expect(values.find((each) => each.key === key)?.origin).toMatch(level.origin);
  }
  return seen;
}

for (const [name, level] of Object.entries(LEVELS)) {
  test.for(Object.entries(POLICIES))(
    `\`%s\` of ${name} has an effect, and explain tells its origin`,
    async ([key, policy]) => {
      const seen = await Promise.all(policy.values.map((value) => seeing(level, key, policy, value)));
      expect(seen).toEqual(policy.seen);
    },
  );
}

test.for(Object.entries(SHARED))("`%s` of a group has an effect", async ([key, shared]) => {
  const seen = await Promise.all(shared.values.map((value) => seeing(LEVELS["a group"], key, shared, value)));
  expect(seen).toEqual(shared.seen);
});

test.for(Object.entries(POLICIES))(
  "`%s` changed in gateway.yaml while the gateway runs is in force for the calls that come",
  async ([key, policy]) => {
    const { beside = {}, status = 200 } = policy;
    const others = Object.fromEntries(Object.entries(beside).filter(([name]) => name !== key));
    const waits: number[] = [];
    await using upstream = await Upstream.start(status);
    await using folder = await temporaryFolder();
    const tool = (name: string): string =>
      JSON.stringify({
        name,
        description: "用于检查策略 shows changed policies",
        type: "http",
        endpoint: upstream.url,
        ...tree(others),
      });
    const [before, after] = policy.values;
    await using gateway = await openGateway({
      folder: folder.path,
      files: { "tools/one.yaml": tool("one"), "tools/two.yaml": tool("two") },
      settings: { defaults: nested(key, before) },
      clock: notingClock(waits),
    });
    const etags = async (): Promise<readonly string[]> =>
      (await gateway.client.service.list({})).tools.map(({ etag }) => etag);
    const earlier = await etags();
    expect(await policy.see(gateway, upstream, waits)).toEqual(policy.seen[0]);
    await gateway.reconfigure({ defaults: nested(key, after) });
    const isOther = async (): Promise<boolean> => (await etags()).every((etag) => !earlier.includes(etag));
    await expect.poll(isOther, { timeout: 20_000 }).toBe(true);
    upstream.most = 0;
    upstream.requests = 0;
    waits.length = 0;
    expect(await policy.see(gateway, upstream, waits)).toEqual(policy.seen[1]);
  },
);

test("every policy, and everything a group shares, has a test of its effect", () => {
  expect(Object.keys(POLICIES)).toEqual(Object.keys(POLICY_SETTINGS));
  expect(Object.keys(SHARED)).toEqual(Object.keys(GROUP_SETTINGS));
});

test("a group that is not there is told with the nearest one that is", async () => {
  await using folder = await temporaryFolder();
  const tool = {
    name: "one",
    description: "用于检查 checks a group",
    type: "http",
    endpoint: "http://127.0.0.1:1/",
    group: "awz",
  };
  await using gateway = await openGateway({
    folder: folder.path,
    files: { "tools/one.yaml": JSON.stringify(tool) },
    settings: { groups: { aws: { max_parallel_calls: 3 } } },
  });
  const { problems } = await gateway.client.service.list({});
  expect(problems.map(({ message }) => message)).toEqual([
    '`group`: gateway.yaml has no group "awz"; did you mean "aws"?',
  ]);
});
