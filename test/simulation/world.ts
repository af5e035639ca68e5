import type { ServiceImpl } from "@connectrpc/connect";
import type { ToolGatewayService } from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import type { CallContext, ToolEvent } from "../../src/core/call.ts";
import { GatewayError } from "../../src/core/errors.ts";
import type { LogFields, Logger } from "../../src/core/logger.ts";
import type { RepeatRules, ToolRegistry } from "../../src/core/registry.ts";
import type { Redactor } from "../../src/core/secrets.ts";
import type { Step } from "../../src/core/step.ts";
import { providerSchema } from "../../src/models/provider-schema.ts";
import { composePipeline } from "../../src/pipeline/compose.ts";
import { createPipelineSteps } from "../../src/pipeline/index.ts";
import { createSchemaChecker, type SchemaChecker } from "../../src/pipeline/schema-checker.ts";
import { KeptCalls } from "../../src/service/kept-calls.ts";
import { RequestIds } from "../../src/service/request-ids.ts";
import { LiveRpcs } from "../../src/service/rpc.ts";
import { createToolGatewayService } from "../../src/service/tool-gateway-service.ts";
import { Turns } from "../../src/service/turns.ts";
import { createResultShaper } from "../../src/shaping/result-shaper.ts";
import { createToolCodec } from "../../src/wire/tool-codec.ts";
import { createFakeClock, type FakeClock } from "../core/fake-clock.ts";
import { createFakeRegistry, type FakeRegistry } from "../service/fake-registry.ts";
import { makeRules } from "../shaping/fixtures.ts";
import { checkAttempt, checkWait } from "./attempt-rules.ts";
import { BreakerRules } from "./breaker-rules.ts";
import { createDice, type Dice } from "./dice.ts";
import { Journal } from "./journal.ts";
import {
  createSimulatedLedger,
  createSimulatedSpill,
  type SimulatedLedger,
  type SimulatedSpill,
} from "./ledger-store.ts";
import type { Scenario, SimulatedTool } from "./scenario-parts.ts";
import { TrafficRules } from "./traffic-rules.ts";
import { SimulatedUpstream } from "./upstream.ts";

const REDACTOR: Redactor = { text: (value) => value, stream: () => ({ push: (piece) => piece, end: () => "" }) };

/** What worlds have in common: what costs time to make and keeps nothing of calls. */
export interface WorldParts {
  readonly checker: SchemaChecker;
}

export function createWorldParts(): WorldParts {
  return { checker: createSchemaChecker({ maxCompiled: 10 }) };
}

/** A whole gateway but for its connections and adapters, on a clock that moves when it is told to. */
export interface World {
  readonly clock: FakeClock;
  readonly dice: Dice;
  readonly journal: Journal;
  readonly upstream: SimulatedUpstream;
  readonly ledger: SimulatedLedger;
  readonly spill: SimulatedSpill;
  readonly registry: FakeRegistry;
  readonly traffic: TrafficRules;
  readonly live: LiveRpcs;
  readonly kept: KeptCalls;
  readonly steps: readonly Step[];
  readonly lies: Lies;
  readonly service: ServiceImpl<typeof ToolGatewayService>;
  toolOf(name: string): SimulatedTool | undefined;
}

export function createWorld(scenario: Scenario, { checker }: WorldParts): World {
  const dice = createDice(scenario.seed ^ 0x5bd1e995);
  const clock = createFakeClock(undefined, () => dice.roll());
  const journal = new Journal(clock);
  const traffic = new TrafficRules(clock, journal);
  const breakers = new BreakerRules(clock, journal);
  const tools = new Map(scenario.tools.map((tool) => [tool.definition.name, tool]));
  const logger = createLogger((message, fields) => {
    const tool = tools.get(String(fields["tool"]));
    if (tool === undefined) return;
    if (message === "circuit-open" || message === "circuit-close") breakers.log(message, fields, tool);
    traffic.log(message, fields, tool);
    if (message === "tool-call-retry") {
      checkWait(fields, upstream.attempts, { clock, journal });
    }
    const words = [fields["callId"], fields["outcome"], fields["reason"]].filter((word) => typeof word === "string");
    journal.note(`log ${message} ${words.join(" ")}`);
  });
  const ledger = createSimulatedLedger(clock, dice, scenario.ledger);
  const upstream: SimulatedUpstream = new SimulatedUpstream({
    clock,
    dice,
    journal,
    begins: (attempt, context) => checkAttempt(attempt, context, upstream, { clock, journal, claimed: ledger.claimed }),
  });
  const rules = new Map([
    ["circuit-breaker", breakers.step],
    ["dispatch", breakers.dispatchStep],
  ]);
  const steps = createPipelineSteps({ checker, random: () => dice.roll() }).flatMap((step) => {
    const rule = rules.get(step.name);
    return rule === undefined ? [step] : [step, rule];
  });
  const lies = new Lies(scenario.lies, dice);
  const { registry, seen } = createTools(scenario, upstream, { steps, clock, lies });
  const spill = createSimulatedSpill();
  const { memoryBytes, diskBytes, streams } = scenario.kept;
  const resume = { windowMs: 20_000, callMemoryBytes: memoryBytes, callDiskBytes: diskBytes, calls: streams };
  const kept = new KeptCalls({ store: ledger, spill, clock, logger, resume });
  let calls = 0;
  const service = createToolGatewayService({
    registry: seen,
    clock,
    logger,
    kept,
    lifetime: new AbortController().signal,
    maxDeadlineMs: 3_600_000,
    nextCallId: () => `c${calls++}`,
    tools: createToolCodec(providerSchema),
    registrationRoles: ["operator"],
    requestIds: new RequestIds(clock),
    // Work takes no time here, so nobody has to make room for others.
    turns: new Turns({ ...clock, monotonicMs: () => 0 }),
  });
  const live = new LiveRpcs(clock, { requestMs: 1e9, answerMs: 1e9 });
  const toolOf = (name: string): SimulatedTool | undefined => tools.get(name);
  const parts = { clock, dice, journal, upstream, ledger, spill, registry, traffic, live, kept, steps, service };
  return { ...parts, lies, toolOf };
}

/** A part of the gateway outside of the ledger that breaks now and then, after the answer, and says that nothing happened. */
export class Lies {
  /** Calls it lied about. */
  readonly told = new Set<string>();
  #share: number;
  readonly #dice: Dice;

  constructor(share: number, dice: Dice) {
    this.#share = share;
    this.#dice = dice;
  }

  /** From now on it breaks no more. */
  end(): void {
    this.#share = 0;
  }

  async *about({ callId }: CallContext, events: AsyncIterable<ToolEvent>): AsyncGenerator<ToolEvent, void, undefined> {
    for await (const event of events) {
      if (event.type === "completed" && this.#share > 0 && this.#dice.chance(this.#share)) {
        this.told.add(callId);
        throw new GatewayError("INTERNAL", "a part of the gateway broke", { effect: "none" });
      }
      yield event;
    }
  }
}

/** The tools, each with its path through the steps to the upstream, as a registry of the gateway would have them. */
function createTools(
  { tools }: Scenario,
  upstream: SimulatedUpstream,
  { steps, clock, lies }: { readonly steps: readonly Step[]; readonly clock: FakeClock; readonly lies: Lies },
): { readonly registry: FakeRegistry; readonly seen: ToolRegistry } {
  const registry = createFakeRegistry();
  const rules = new Map<string, RepeatRules>();
  for (const tool of tools) {
    const { definition, policy, idempotencyField } = tool;
    const stepConfigs = new Map(idempotencyField === undefined ? [] : [["idempotency_field", idempotencyField]]);
    const pipeline = composePipeline({ steps, tool: definition, policy, stepConfigs, deps: { clock } });
    const invoke = pipeline.wrap(upstream.invokeOf(tool));
    const readOnly = definition.hints.readOnly === true;
    const shaper = createResultShaper({ tool: definition.name, rules: makeRules(), redactor: REDACTOR, readOnly });
    registry.add(definition, (call, context) => lies.about(context, shaper.shape(invoke(call, context), call)));
    const repeatable = policy.effectClass === "read" || policy.effectClass === "idempotent";
    rules.set(definition.name, { repeatable, idempotencyField, reconcile: undefined });
  }
  const acquire: ToolRegistry["acquire"] = (name, principal) => {
    const repeat = rules.get(name);
    const lease = registry.acquire(name, principal);
    return repeat === undefined ? lease : { ...lease, repeat };
  };
  return { registry, seen: { ...registry, acquire } };
}

function createLogger(write: (message: string, fields: LogFields) => void): Logger {
  const line = (message: string, fields: LogFields = {}): void => write(message, fields);
  return {
    debug: line,
    info: line,
    warn: line,
    error: line,
    child: (more) => createLogger((message, fields) => write(message, { ...more, ...fields })),
  };
}
