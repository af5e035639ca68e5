import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { ConnectError } from "@connectrpc/connect";
import { expect } from "vitest";
import { Effect } from "../../gen/toolgate/v1/errors_pb.ts";
import { createRandom } from "../core/random.ts";
import { createGatewayClient, type GatewayClient, reasonOf, valueOf } from "./gateway-client.ts";
import { startAgain, startGateway } from "./gateway-process.ts";

/** Calls that run at a time. */
const CALLERS = 16;
/** Each round kills the gateway at a random moment of its first so many milliseconds under load. */
const KILL_WITHIN_MS = 800;

/** What came of all rounds. */
export interface CrashReport {
  readonly calls: number;
  /** Answered before the crash, and answered the same after it. */
  readonly answered: number;
  /** Not answered before the crash, but on record as answered after it. */
  readonly recovered: number;
  /** Not dispatched before the crash, and run once after it. */
  readonly runLater: number;
  /** Said to be unknown, and how many of those had taken effect. */
  readonly unknown: number;
  readonly unknownTookEffect: number;
}

/** The judge: counts what took effect, by the order that a request is about. */
class CountingUpstream implements AsyncDisposable {
  readonly #effects = new Map<string, number>();
  readonly #server: Server;
  readonly #random: () => number;

  private constructor(random: () => number) {
    this.#random = random;
    this.#server = createServer((request, response) => {
      const [, path = "", order = ""] = (request.url ?? "").split("/");
      request.resume();
      request.once("end", () => {
        if (path === "pay") this.#effects.set(order, this.effects(order) + 1);
        const body = JSON.stringify({ order, effects: this.effects(order), receipt: this.#random() });
        setTimeout(() => {
          response.setHeader("content-type", "application/json").end(body);
        }, this.#random() * 20);
      });
    });
  }

  static async start(random: () => number): Promise<CountingUpstream> {
    const upstream = new CountingUpstream(random);
    upstream.#server.listen(0, "127.0.0.1");
    await once(upstream.#server, "listening");
    return upstream;
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === "object" && address !== null ? address.port : 0;
  }

  effects(order: string): number {
    return this.#effects.get(order) ?? 0;
  }

  /** Orders that took effect more than once. */
  get doubled(): readonly string[] {
    return [...this.#effects].filter(([, count]) => count > 1).map(([order]) => order);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, "close");
  }
}

function declarations(port: number): Readonly<Record<string, string>> {
  const tool = (name: string, keys: object): string =>
    JSON.stringify({ name, description: "Pay an order of the shop once", type: "http", ...keys });
  const params = [{ name: "order", type: "string", required: true }];
  const pay = { endpoint: `http://127.0.0.1:${port}/pay/{order}`, method: "POST", params };
  return {
    "pay.yaml": tool("pay", pay),
    "pay_checked.yaml": tool("pay_checked", { ...pay, reconcile: "pay_status" }),
    "pay_status.yaml": tool("pay_status", { endpoint: `http://127.0.0.1:${port}/status/{order}`, params }),
  };
}

interface Made {
  readonly tool: "pay" | "pay_checked";
  readonly order: string;
  /** Its answer before the crash. */
  answer: unknown;
}

function make(client: GatewayClient, { tool, order }: Made) {
  const json = JSON.stringify({ order });
  return client.service.call({
    invocation: { name: tool, requestId: `key-${order}`, arguments: { case: "argumentsJson", value: json } },
  });
}

/** Makes calls without end, each with a key of its own, until the gateway is gone. */
async function callUntilGone(client: GatewayClient, round: number, made: Made[]): Promise<void> {
  const caller = async (): Promise<void> => {
    for (;;) {
      const call: Made = {
        tool: made.length % 2 === 0 ? "pay" : "pay_checked",
        order: `${round}-${made.length}`,
        answer: undefined,
      };
      made.push(call);
      try {
        call.answer = valueOf(await make(client, call));
      } catch (error) {
        // What the gateway itself says stands; only a lost connection is what the test is about.
        if (reasonOf(error) !== undefined) throw error;
        return;
      }
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, caller));
}

type Verdict = keyof Omit<CrashReport, "calls" | "unknownTookEffect">;

/** Asks the gateway after its restart about a call, and holds what it says against the judge. */
async function judge(client: GatewayClient, call: Made, upstream: CountingUpstream): Promise<Verdict> {
  const before = upstream.effects(call.order);
  const again = await make(client, call).catch((error: unknown) => error);
  const after = upstream.effects(call.order);
  const known = `order ${call.order} of ${call.tool}, ${before} effects before, ${after} after`;
  if (again instanceof ConnectError) {
    expect([reasonOf(again), call.tool, call.answer], known).toEqual(["OUTCOME_UNKNOWN", "pay", undefined]);
    expect(after, known).toBe(before);
    return "unknown";
  }
  const response = again as Awaited<ReturnType<typeof make>>;
  if (response.result?.failure?.reason === "OUTCOME_UNKNOWN") {
    expect([call.tool, call.answer, after], known).toEqual(["pay_checked", undefined, before]);
    expect(response.stats?.effect, known).toBe(Effect.UNKNOWN);
    // The tool that knows was asked.
    expect(valueOf(response), known).toMatchObject({ order: call.order, effects: before });
    return "unknown";
  }
  expect(valueOf(response), known).toMatchObject({ order: call.order, effects: 1 });
  expect(after, known).toBe(1);
  if (call.answer !== undefined) {
    expect([response.stats?.replayed, valueOf(response)], known).toEqual([true, call.answer]);
    return "answered";
  }
  expect(response.stats?.replayed, known).toBe(before === 1);
  return before === 1 ? "recovered" : "runLater";
}

/**
 * Kills a gateway under load, again and again, and asks the next one about every call of the one before. Throws where a
 * call took effect twice, where an answered one was forgotten, or where an interrupted one was not said to be unknown.
 */
export async function crashRounds(rounds: number, seed: number): Promise<CrashReport> {
  const random = createRandom(seed);
  await using upstream = await CountingUpstream.start(createRandom(seed + 1));
  await using first = await startGateway({ tools: declarations(upstream.port) });
  const counts = { calls: 0, answered: 0, recovered: 0, runLater: 0, unknown: 0, unknownTookEffect: 0 };
  let gateway: Awaited<ReturnType<typeof startAgain>> = first;
  let made: Made[] = [];
  for (let round = 0; round <= rounds; round++) {
    using client = createGatewayClient(gateway.port);
    await Promise.all(
      made.map(async (call) => {
        const verdict = await judge(client, call, upstream);
        counts[verdict] += 1;
        if (verdict === "unknown") counts.unknownTookEffect += upstream.effects(call.order);
      }),
    );
    counts.calls += made.length;
    expect(upstream.doubled, `seed ${seed}, round ${round}`).toEqual([]);
    if (round === rounds) break;
    made = [];
    const calling = callUntilGone(client, round, made);
    await delay(random() * KILL_WITHIN_MS);
    await gateway.stop("SIGKILL");
    await calling;
    gateway = await startAgain(first.folder);
  }
  await gateway.stop("SIGKILL");
  return counts;
}
