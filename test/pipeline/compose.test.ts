import { expect, test } from "vitest";
import type { Invoke, UpstreamEvent } from "../../src/core/call.ts";
import { GatewayError } from "../../src/core/errors.ts";
import type { Step } from "../../src/core/step.ts";
import type { ToolDefinition } from "../../src/core/tool.ts";
import { composePipeline } from "../../src/pipeline/compose.ts";
import { createFakeClock } from "../core/fake-clock.ts";
import { collect, invokeOf, makeCall, makeContext, makeTool, POLICY, RESULT } from "./fixtures.ts";

function tracing(name: string, trace: string[], scope: Step["scope"] = "call"): Step {
  return {
    name,
    scope,
    compile: () => (call, context, next) => {
      trace.push(name);
      return next(call, context);
    },
  };
}

function compose(steps: readonly Step[], tool: ToolDefinition = makeTool(), configs: [string, unknown][] = []) {
  return composePipeline({
    steps,
    tool,
    policy: POLICY,
    stepConfigs: new Map(configs),
    deps: { clock: createFakeClock() },
  });
}

test("the first step in the list is outermost", async () => {
  const trace: string[] = [];
  const pipeline = compose([tracing("a", trace), tracing("b", trace), tracing("c", trace, "attempt")]);
  expect(await collect(pipeline.wrap(invokeOf(RESULT))(makeCall(), makeContext()))).toEqual([RESULT]);
  expect(trace).toEqual(["a", "b", "c"]);
  expect(pipeline.names).toEqual(["a", "b", "c"]);
});

test("a step with nothing to do for a tool is not in its path", () => {
  const idle: Step = { name: "idle", scope: "call", compile: () => undefined };
  expect(compose([idle, tracing("a", [])]).names).toEqual(["a"]);
});

test("each step is compiled once, with the value of its own key", async () => {
  const configs: unknown[] = [];
  const reading = (name: string): Step => ({
    name,
    scope: "call",
    compile(_tool, _policy, _deps, config) {
      configs.push(config);
      return (call, context, next) => next(call, context);
    },
  });
  const pipeline = compose([reading("retry"), reading("other")], makeTool(), [["retry", { max: 3 }]]);
  const invoke = pipeline.wrap(invokeOf(RESULT));
  await collect(invoke(makeCall(), makeContext()));
  await collect(invoke(makeCall(), makeContext()));
  expect(configs).toEqual([{ max: 3 }, undefined]);
});

test("what stands inside a step that repeats a call runs once for each attempt", async () => {
  const trace: string[] = [];
  const retry: Step = {
    name: "retry",
    scope: "call",
    compile: () =>
      async function* (call, context, next) {
        try {
          yield* next(call, { ...context, attempt: 1 });
        } catch {
          yield* next(call, { ...context, attempt: 2 });
        }
      },
  };
  const adapter: Invoke = async function* (_call, { attempt }) {
    if (attempt === 1) throw new GatewayError("UPSTREAM_UNREACHABLE", "no connection");
    yield RESULT;
  };
  const pipeline = compose([tracing("once", trace), retry, tracing("each", trace, "attempt")]);
  await collect(pipeline.wrap(adapter)(makeCall(), makeContext()));
  expect(trace).toEqual(["once", "each", "each"]);
});

test("a step of the whole call inside a step of attempts is refused", () => {
  expect(() => compose([tracing("breaker", [], "attempt"), tracing("ledger", [])])).toThrow(
    'step "ledger" runs once a call, so it must stand before the steps of attempts',
  );
});

function fault(events: readonly UpstreamEvent[]): Promise<unknown> {
  return collect(compose([]).wrap(invokeOf(...events))(makeCall(), makeContext())).catch((error: unknown) => error);
}

test("an adapter without a result, with two, or with more after it is a fault that names the tool", async () => {
  const delta: UpstreamEvent = { type: "upstream-delta", text: "a" };
  for (const events of [[], [delta], [RESULT, RESULT], [RESULT, delta]]) {
    const error = await fault(events);
    expect(error).toMatchObject({
      reason: "INTERNAL",
      message: 'tool "order_status": internal error',
      effect: "unknown",
    });
  }
  expect(await fault([])).toMatchObject({
    cause: { message: 'the adapter of tool "order_status" ended without a result' },
  });
});

test("what an adapter throws that is no GatewayError is hidden behind one, with the error below as cause", async () => {
  const cause = new TypeError("secret detail");
  const failing: Invoke = async function* () {
    throw cause;
  };
  const tool = makeTool({ hints: { readOnly: true } });
  const error = await collect(compose([], tool).wrap(failing)(makeCall(), makeContext())).catch((e: unknown) => e);
  expect(error).toMatchObject({ reason: "INTERNAL", effect: "none", cause });
  expect((error as Error).message).not.toContain("secret");
});

test("an adapter that breaks because the call was ended gives the reason the call was ended", async () => {
  const controller = new AbortController();
  const breaking: Invoke = async function* () {
    yield { type: "upstream-delta", text: "a" };
    controller.abort(new GatewayError("CALL_CANCELLED", "the caller went away"));
    throw new DOMException("aborted", "AbortError");
  };
  const quiet: Invoke = async function* () {
    yield { type: "upstream-delta", text: "a" };
  };
  for (const adapter of [breaking, quiet]) {
    const run = collect(compose([]).wrap(adapter)(makeCall(), makeContext({ signal: controller.signal })));
    await expect(run).rejects.toMatchObject({ reason: "CALL_CANCELLED", effect: "unknown" });
  }
});

test("the result is let go when the adapter has ended and cleaned up", async () => {
  const order: string[] = [];
  const adapter: Invoke = async function* () {
    try {
      yield RESULT;
    } finally {
      await Promise.resolve();
      order.push("cleaned up");
    }
  };
  for await (const event of compose([]).wrap(adapter)(makeCall(), makeContext())) order.push(event.type);
  expect(order).toEqual(["cleaned up", "upstream-result"]);
});

test("leaving early returns the adapter's generator, and nothing is asked of it before it is needed", async () => {
  const order: string[] = [];
  const adapter: Invoke = async function* () {
    try {
      for (let i = 0; ; i++) {
        order.push(`gives ${i}`);
        yield { type: "upstream-delta", text: String(i) };
      }
    } finally {
      order.push("returned");
    }
  };
  for await (const event of compose([tracing("a", [])]).wrap(adapter)(makeCall(), makeContext())) {
    if (event.type === "upstream-delta" && event.text === "1") break;
  }
  expect(order).toEqual(["gives 0", "gives 1", "returned"]);
});
