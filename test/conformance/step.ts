import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import type { CallContext, Invoke, ToolCall, UpstreamEvent } from "../../src/core/call.ts";
import { GatewayError } from "../../src/core/errors.ts";
import type { Interceptor, Step, ToolPolicy } from "../../src/core/step.ts";
import type { ToolDefinition } from "../../src/core/tool.ts";
import { createFakeClock } from "../core/fake-clock.ts";

/** A step to be examined, with a tool that has it in its path and a call that it lets pass. */
export interface StepCase {
  readonly step: Step;
  readonly tool: ToolDefinition;
  readonly policy: ToolPolicy;
  /** Value of the step's key. */
  readonly config?: unknown;
  readonly call: ToolCall;
  makeContext(signal: AbortSignal): CallContext;
}

const EVENTS: readonly UpstreamEvent[] = [
  { type: "progress", current: 1, total: 2, message: "half" },
  { type: "upstream-delta", text: "a" },
  { type: "log", level: "info", message: "line" },
  { type: "upstream-delta", text: "b" },
  { type: "upstream-result", result: { content: [], value: { ok: true }, effect: "committed" } },
];

/** What every step of the pipeline must hold, whatever else it does. */
export function testStepConformance(stepCase: StepCase): void {
  const { step, tool, policy, config, call, makeContext } = stepCase;

  function compile(): Interceptor {
    const interceptor = step.compile(tool, policy, { clock: createFakeClock() }, config);
    if (interceptor === undefined) throw new Error(`step ${step.name} is not in the path of the tool given`);
    return interceptor;
  }

  function run(next: Invoke, signal = new AbortController().signal): AsyncIterator<UpstreamEvent> {
    return compile()(call, makeContext(signal), next)[Symbol.asyncIterator]();
  }

  test(`${step.name}: events pass unchanged and in order`, async () => {
    const passed: UpstreamEvent[] = [];
    for await (const event of { [Symbol.asyncIterator]: () => run(source(EVENTS)) }) passed.push(event);
    expect(passed).toEqual(EVENTS);
  });

  test(`${step.name}: an event is asked of the adapter only when the reader asks for one`, async () => {
    let given = 0;
    const counting: Invoke = async function* () {
      for (const event of EVENTS) {
        given++;
        yield event;
      }
    };
    const events = run(counting);
    await turn();
    expect(given).toBe(0);
    await events.next();
    await turn();
    expect(given).toBe(1);
    await events.next();
    await turn();
    expect(given).toBe(2);
    await events.return?.();
  });

  test(`${step.name}: leaving early reaches the adapter`, async () => {
    let returned = false;
    const endless: Invoke = async function* () {
      try {
        while (true) yield { type: "upstream-delta", text: "x" };
      } finally {
        returned = true;
      }
    };
    const events = run(endless);
    await events.next();
    await events.return?.();
    expect(returned).toBe(true);
  });

  test(`${step.name}: the adapter's error comes out as it is`, async () => {
    const error = new GatewayError("UPSTREAM_UNREACHABLE", "no connection");
    const failing: Invoke = async function* () {
      yield { type: "upstream-delta", text: "a" };
      throw error;
    };
    const events = run(failing);
    await events.next();
    await expect(events.next()).rejects.toBe(error);
  });

  test(`${step.name}: two calls at the same time do not touch each other`, async () => {
    const interceptor = compile();
    const context = makeContext(new AbortController().signal);
    const open = (text: string) => {
      const events: UpstreamEvent[] = [
        { type: "upstream-delta", text },
        { type: "upstream-result", result: { content: [], value: text, effect: "none" } },
      ];
      return interceptor(call, context, source(events))[Symbol.asyncIterator]();
    };
    const [a, b] = [open("a"), open("b")];
    expect((await a.next()).value).toMatchObject({ text: "a" });
    expect((await b.next()).value).toMatchObject({ text: "b" });
    expect((await b.next()).value).toMatchObject({ result: { value: "b" } });
    expect((await a.next()).value).toMatchObject({ result: { value: "a" } });
  });

  test(`${step.name}: nothing of a call is left on its signal, however it ends`, async () => {
    const { signal } = new AbortController();
    const whole = run(source(EVENTS), signal);
    while ((await whole.next()).done !== true);
    const left = run(source(EVENTS), signal);
    await left.next();
    await left.return?.();
    const failed = run(async function* () {
      throw new GatewayError("UPSTREAM_UNREACHABLE", "no connection");
    }, signal);
    await expect(failed.next()).rejects.toThrow("no connection");
    expect(getEventListeners(signal, "abort")).toHaveLength(0);
  });

  test(`${step.name}: the call it was given is not changed`, async () => {
    const before = structuredClone(call);
    const events = run(source(EVENTS));
    while ((await events.next()).done !== true);
    expect(call).toEqual(before);
  });
}

function source(events: readonly UpstreamEvent[]): Invoke {
  return async function* () {
    yield* events;
  };
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
