import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer, type ServerResponse } from "node:http";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { expect, test } from "vitest";
import { OperatorService } from "../../gen/toolgate/v1/operator_service_pb.ts";
import { GROUP_SETTINGS, type GroupKey, POLICY_SETTINGS, type PolicyKey } from "../../src/config/policy-settings.ts";
import { type Clock, systemClock } from "../../src/core/clock.ts";
import { type OpenGateway, openGateway, temporaryFolder } from "./effects-gateway.ts";
import { reasonOf, retryUntil } from "./gateway-client.ts";

/** Two values of a key, and what each makes of a gateway with the tools `one` and `two`. */
interface Difference {
  readonly values: readonly [before: unknown, after: unknown];
  /** What else is set, on the same level and in both cases, by dotted key. */
  readonly beside?: Readonly<Record<string, unknown>>;
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
  "concurrency.adaptive": { values: [false, true], see: callTogether(Array(25).fill("one")), seen: [25, 20] },
  "queue.max_length": {
    values: [1, 2],
    beside: { concurrency_limit: 1 },
    see: refusedOf(["one", "one", "one", "one"]),
    seen: [["CONCURRENCY_LIMIT_REACHED", "CONCURRENCY_LIMIT_REACHED"], ["CONCURRENCY_LIMIT_REACHED"]],
  },
  "queue.max_wait": {
    values: ["1ms", "1m"],
    beside: { concurrency_limit: 1 },
    see: refusedOf(["one", "one"]),
    seen: [["CONCURRENCY_LIMIT_REACHED"], []],
  },
  "rate_limit.requests": {
    values: [1, 2],
    beside: { "rate_limit.per": "1h" },
    see: refusedOf(["one", "one", "one", "two"]),
    seen: [["RATE_LIMITED", "RATE_LIMITED"], ["RATE_LIMITED"]],
  },
  "rate_limit.per": {
    values: ["1h", "1ms"],
    beside: { "rate_limit.requests": 1 },
    see: refusedInTurn(["one", "one"]),
    seen: [["RATE_LIMITED"], []],
  },
  "rate_limit.burst": {
    values: [1, 2],
    beside: { "rate_limit.requests": 5, "rate_limit.per": "1h" },
    see: refusedOf(["one", "one", "two"]),
    seen: [["RATE_LIMITED"], []],
  },
};

/** What the tools of a group share. */
const SHARED: Readonly<Record<GroupKey, Difference>> = {
  max_parallel_calls: { values: [2, 3], see: callTogether(["one", "two", "one", "two"]), seen: [2, 3] },
  "shared_rate_limit.requests": {
    values: [1, 2],
    beside: { "shared_rate_limit.per": "1h" },
    see: refusedOf(["one", "two", "one"]),
    seen: [["RATE_LIMITED", "RATE_LIMITED"], ["RATE_LIMITED"]],
  },
  "shared_rate_limit.per": {
    values: ["1h", "1ms"],
    beside: { "shared_rate_limit.requests": 1 },
    see: refusedInTurn(["one", "two"]),
    seen: [["RATE_LIMITED"], []],
  },
  "shared_rate_limit.burst": {
    values: [1, 2],
    beside: { "shared_rate_limit.requests": 5, "shared_rate_limit.per": "1h" },
    see: refusedOf(["one", "two"]),
    seen: [["RATE_LIMITED"], []],
  },
};

/** How long no request may have come before those that are held are answered. */
const LULL_MS = 400;

/** An upstream that answers when no more requests come, and knows how many it held at a time. */
class Upstream implements AsyncDisposable {
  most = 0;
  requests = 0;
  readonly #status: number;
  readonly #held: ServerResponse[] = [];
  readonly #server = createServer((_request, response) => {
    this.requests += 1;
    this.#held.push(response);
    this.most = Math.max(this.most, this.#held.length);
    clearTimeout(this.#lull);
    this.#lull = setTimeout(() => this.#answer(), LULL_MS);
  });
  #lull: NodeJS.Timeout | undefined;

  private constructor(status: number) {
    this.#status = status;
  }

  static async start(status = 200): Promise<Upstream> {
    const upstream = new Upstream(status);
    upstream.#server.listen(0, "127.0.0.1");
    await once(upstream.#server, "listening");
    return upstream;
  }

  #answer(): void {
    for (const response of this.#held.splice(0)) {
      response.writeHead(this.#status, { "content-type": "application/json" }).end("{}");
    }
  }

  get url(): string {
    const address = this.#server.address();
    return `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}/`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearTimeout(this.#lull);
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

/** Why calls that are made at once are refused, where they are. */
function refusedOf(names: readonly string[]): Difference["see"] {
  return async ({ client }) => {
    const outcomes = await Promise.all(names.map((name) => client.call(name).catch(reasonOf)));
    return outcomes.filter((outcome) => typeof outcome === "string");
  };
}

/** The same of calls that are made one after the other. */
function refusedInTurn(names: readonly string[]): Difference["see"] {
  return async ({ client }) => {
    const outcomes: unknown[] = [];
    for (const name of names) outcomes.push(await client.call(name).catch(reasonOf));
    return outcomes.filter((outcome) => typeof outcome === "string");
  };
}

type Keys = Readonly<Record<string, unknown>>;

/** `{ retry: { backoff: value } }` of `retry.backoff`. */
function nested(keys: Keys): Keys {
  const all: Record<string, Record<string, unknown>> = {};
  for (const [key, value] of Object.entries(keys)) {
    const [name = "", below] = key.split(".");
    Object.assign(all, { [name]: below === undefined ? value : { ...all[name], [below]: value } });
  }
  return all;
}

interface Level {
  readonly tool: (keys: Keys) => Keys;
  readonly settings: (keys: Keys) => Keys;
  readonly origin: RegExp;
}

const LEVELS: Readonly<Record<"a declaration" | "a group" | "the defaults", Level>> = {
  "a declaration": { tool: nested, settings: () => ({}), origin: /^file:one\.yaml:1$/ },
  "a group": {
    tool: () => ({ group: "shared" }),
    settings: (keys) => ({ groups: { shared: nested(keys) } }),
    origin: /^gateway\.yaml:\d+$/,
  },
  "the defaults": {
    tool: () => ({}),
    settings: (keys) => ({ defaults: nested(keys) }),
    origin: /^gateway\.yaml:\d+$/,
  },
};

function toolText(name: string, upstream: Upstream, keys: Keys): string {
  const description = "用于检查策略 shows which policies have an effect";
  return JSON.stringify({ name, description, type: "http", endpoint: upstream.url, ...keys });
}

async function seeing(
  level: Level,
  key: string,
  { see, beside, status }: Difference,
  value: unknown,
): Promise<unknown> {
  const keys = { ...beside, [key]: value };
  const waits: number[] = [];
  await using upstream = await Upstream.start(status);
  await using folder = await temporaryFolder();
  const tool = (name: string): string => toolText(name, upstream, level.tool(keys));
  await using gateway = await openGateway({
    folder: folder.path,
    files: { "tools/one.yaml": tool("one"), "tools/two.yaml": tool("two") },
    settings: level.settings(keys),
    clock: notingClock(waits),
  });
  const seen = await see(gateway, upstream, waits);
  const transport = createConnectTransport({ baseUrl: gateway.url, httpVersion: "1.1" });
  const { values } = await createClient(OperatorService, transport).explain({ name: "one" });
  const explained = key in GROUP_SETTINGS ? `groups.shared.${key}` : key;
  expect(values.find((each) => each.key === explained)?.origin).toMatch(level.origin);
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

/** Changes the declarations of both tools, and waits until they are in force. */
async function redeclare(gateway: OpenGateway, upstream: Upstream, keys: Keys): Promise<void> {
  const before = await etagsOf(gateway);
  for (const name of before.keys()) {
    await writeFile(join(gateway.folder, "tools", `${name}.yaml`), toolText(name, upstream, keys));
  }
  await retryUntil(
    () => etagsOf(gateway),
    (now) => [...before].every(([name, etag]) => now.get(name) !== etag),
  );
}

async function etagsOf({ client }: OpenGateway): Promise<ReadonlyMap<string, string>> {
  return new Map((await client.service.list({})).tools.map(({ name, etag }) => [name, etag]));
}

test.for(Object.entries(POLICIES))(
  "a changed `%s` is in force at the next call [S2-124]",
  async ([key, { values, beside, status, see, seen }]) => {
    const waits: number[] = [];
    await using upstream = await Upstream.start(status);
    await using folder = await temporaryFolder();
    const declared = (value: unknown): Keys => nested({ ...beside, [key]: value });
    const files = Object.fromEntries(
      ["one", "two"].map((name) => [`tools/${name}.yaml`, toolText(name, upstream, declared(values[0]))]),
    );
    await using gateway = await openGateway({ folder: folder.path, files, clock: notingClock(waits) });
    // Its steps are made for the first call, so there has to be one.
    await gateway.client.service.call({ invocation: { name: "one", validateOnly: true } });
    await redeclare(gateway, upstream, declared(values[1]));
    expect(await see(gateway, upstream, waits)).toEqual(seen[1]);
  },
);

test.for(Object.entries(POLICIES))(
  "`%s` changed in gateway.yaml while the gateway runs is in force for the calls that come [S2-124]",
  async ([key, { values, beside, status, see, seen }]) => {
    const waits: number[] = [];
    await using upstream = await Upstream.start(status);
    await using folder = await temporaryFolder();
    const defaults = (value: unknown): Keys => ({ defaults: nested({ ...beside, [key]: value }) });
    await using gateway = await openGateway({
      folder: folder.path,
      files: { "tools/one.yaml": toolText("one", upstream, {}), "tools/two.yaml": toolText("two", upstream, {}) },
      settings: defaults(values[0]),
      clock: notingClock(waits),
    });
    await gateway.client.service.call({ invocation: { name: "one", validateOnly: true } });
    const before = await etagsOf(gateway);
    await gateway.reconfigure(defaults(values[1]));
    await retryUntil(
      () => etagsOf(gateway),
      (now) => [...before].every(([name, etag]) => now.get(name) !== etag),
    );
    expect(await see(gateway, upstream, waits)).toEqual(seen[1]);
  },
);

test("a changed `group` is in force at the next call [S2-124]", async () => {
  await using upstream = await Upstream.start();
  await using folder = await temporaryFolder();
  await using gateway = await openGateway({
    folder: folder.path,
    files: { "tools/one.yaml": toolText("one", upstream, { group: "wide" }) },
    settings: { groups: { wide: { max_parallel_calls: 5 }, narrow: { max_parallel_calls: 2 } } },
  });
  const see = callTogether(Array(6).fill("one"));
  expect(await see(gateway, upstream, [])).toBe(5);
  upstream.most = 0;
  await redeclare(gateway, upstream, { group: "narrow" });
  expect(await see(gateway, upstream, [])).toBe(2);
});

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
