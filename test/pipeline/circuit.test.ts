import { expect, test } from "vitest";
import { Circuit, type Permit } from "../../src/pipeline/circuit.ts";
import type { UpstreamFault } from "../../src/pipeline/upstream-fault.ts";
import { createFakeClock } from "../core/fake-clock.ts";

const FAULT: UpstreamFault = { words: "it answered HTTP 503", reachable: true };

function make(failureThreshold = 5) {
  const clock = createFakeClock();
  const states: string[] = [];
  const circuit: Circuit = new Circuit({
    failureThreshold,
    resetTimeoutMs: 60_000,
    clock,
    changed: () => states.push(circuit.state),
  });
  return { clock, states, circuit };
}

function admitted(circuit: Circuit): Permit {
  return circuit.admit() ?? expect.unreachable("not admitted");
}

function fail(circuit: Circuit, times: number): void {
  for (let i = 0; i < times; i++) admitted(circuit).end(FAULT);
}

test("it opens after so many faults in a row, and an answer between them begins the count anew [S2-63]", () => {
  const { circuit, states } = make();
  for (let i = 0; i < 20; i++) admitted(circuit).end("answered");
  fail(circuit, 4);
  admitted(circuit).end("answered");
  fail(circuit, 4);
  expect(circuit.state).toBe("closed");
  fail(circuit, 1);
  expect(circuit).toMatchObject({ state: "open", faults: 5, lastFault: FAULT, retryInMs: 60_000 });
  expect(states).toEqual(["open"]);
  expect(circuit.admit()).toBeUndefined();
});

test("after its time one attempt passes and the others do not; if that fails it is open for the whole time again [S2-64, R-D03]", async () => {
  const { circuit, clock, states } = make();
  fail(circuit, 5);
  await clock.advance(59_999);
  expect(circuit.admit()).toBeUndefined();
  await clock.advance(1);
  expect(circuit.state).toBe("half-open");
  const permits = Array.from({ length: 100 }, () => circuit.admit()).filter((permit) => permit !== undefined);
  expect(permits).toHaveLength(1);
  await clock.advance(500);
  permits[0]?.end(FAULT);
  expect(circuit).toMatchObject({ state: "open", faults: 6, retryInMs: 60_000 });
  await clock.advance(59_999);
  expect(circuit.admit()).toBeUndefined();
  await clock.advance(1);
  admitted(circuit).end("answered");
  expect(circuit).toMatchObject({ state: "closed", faults: 0 });
  expect(states).toEqual(["open", "half-open", "open", "half-open", "closed"]);
  fail(circuit, 4);
  expect(circuit.state).toBe("closed");
});

test("an attempt that shows nothing leaves the trial to the next one", async () => {
  const { circuit, clock } = make(1);
  fail(circuit, 1);
  await clock.advance(60_000);
  admitted(circuit).end("nothing");
  expect(circuit.state).toBe("half-open");
  admitted(circuit).end("answered");
  expect(circuit.state).toBe("closed");
});

test("the first output of a stream closes it, and a break later counts", async () => {
  const { circuit, clock } = make(2);
  fail(circuit, 2);
  await clock.advance(60_000);
  const permit = admitted(circuit);
  permit.alive();
  expect(circuit.state).toBe("closed");
  permit.end(FAULT);
  expect(circuit).toMatchObject({ state: "closed", faults: 1 });
});

test("a stream that closed it as the trial does not close it again once others have opened it", async () => {
  const { clock, circuit } = make();
  fail(circuit, 5);
  await clock.advance(60_000);
  const stream = admitted(circuit);
  stream.alive();
  fail(circuit, 5);
  stream.alive();
  expect(circuit.state).toBe("open");
  expect(circuit.admit()).toBeUndefined();
});

test("what comes of attempts from before it opened counts no more", async () => {
  const { circuit, clock, states } = make(2);
  const early = [admitted(circuit), admitted(circuit), admitted(circuit)];
  fail(circuit, 2);
  early[0]?.end(FAULT);
  await clock.advance(10_000);
  early[1]?.end("answered");
  expect(circuit).toMatchObject({ state: "open", faults: 2, retryInMs: 50_000 });
  await clock.advance(50_000);
  early[2]?.end("answered");
  circuit.count(FAULT);
  expect(circuit.state).toBe("half-open");
  expect(states).toEqual(["open", "half-open"]);
});

test("a permit ends once", () => {
  const { circuit } = make();
  const permit = admitted(circuit);
  for (let i = 0; i < 9; i++) permit.end(FAULT);
  expect(circuit.faults).toBe(1);
});

test("closed it holds no timer, and disposed none either [R-D04]", async () => {
  const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
  const before = timers();
  const { circuit, clock } = make(1);
  expect(clock.pending).toBe(0);
  const late = admitted(circuit);
  fail(circuit, 1);
  expect(clock.pending).toBe(1);
  expect(timers()).toBe(before);
  circuit[Symbol.dispose]();
  expect(clock.pending).toBe(0);
  await clock.advance(120_000);
  late.end(FAULT);
  expect(circuit.faults).toBe(1);
});
