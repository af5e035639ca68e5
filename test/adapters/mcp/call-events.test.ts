import { expect, test } from "vitest";
import { logEvent, progressEvent } from "../../../src/adapters/mcp/call-events.ts";
import type { UpstreamEvent } from "../../../src/core/call.ts";
import { call, invoke, openServer, testFolder, textOf } from "./fixture.ts";

test("a reader that is slow loses progress and not the result, and hears how much", async () => {
  await using folder = await testFolder();
  await using server = await openServer({ mcp: folder.fake() });
  await server.ready();
  const reading = invoke(server, "steps", { count: 5_000, ms: 0 })[Symbol.asyncIterator]();
  expect((await reading.next()).value).toMatchObject({ type: "progress", current: 1 });
  // The server's timers go off in turn: when this call is answered, all of the other has come.
  expect(textOf(await call(server, "steps", { count: 1, ms: 0 }))).toBe("done");
  const rest: UpstreamEvent[] = [];
  for (let step = await reading.next(); step.done !== true; step = await reading.next()) rest.push(step.value);
  const steps = rest.filter(({ type }) => type === "progress");
  expect(steps).toHaveLength(1_000);
  // The newest are kept.
  expect(steps.at(-1)).toMatchObject({ current: 5_000 });
  expect(rest.slice(-2)).toMatchObject([
    { type: "log", level: "warning", message: "3999 events came faster than they were read and were dropped" },
    { type: "upstream-result", result: { content: [{ type: "text", text: "done" }] } },
  ]);
});

test("of a long message the beginning is kept", () => {
  const message = "进".repeat(100_000);
  const kept = `${"进".repeat(8_192)}…`;
  expect(progressEvent({ progress: 1, message })).toMatchObject({ message: kept });
  expect(logEvent({ level: "info", data: message })).toMatchObject({ message: kept });
  expect(progressEvent({ progress: 1, message: "short" })).toMatchObject({ message: "short" });
});
