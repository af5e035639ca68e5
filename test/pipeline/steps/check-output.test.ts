import { expect, test } from "vitest";
import type { UpstreamEvent, UpstreamResult } from "../../../src/core/call.ts";
import type { JsonObject } from "../../../src/core/json.ts";
import type { ToolDefinition } from "../../../src/core/tool.ts";
import { createSchemaChecker } from "../../../src/pipeline/schema-checker.ts";
import { createCheckOutputStep } from "../../../src/pipeline/steps/check-output.ts";
import { testStepConformance } from "../../conformance/step.ts";
import {
  collect,
  invokeOf,
  makeCall,
  makeContext,
  makeTool,
  POLICY,
  type RecordedLine,
  recordingLogger,
} from "../fixtures.ts";

const step = createCheckOutputStep(createSchemaChecker({ maxCompiled: 10 }));

const SCHEMA: JsonObject = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };

function makeServerTool(outputSchema: JsonObject | undefined = SCHEMA): ToolDefinition {
  return makeTool({ kind: "mcp", name: "calc/add", outputSchema });
}

async function checked(result: Partial<UpstreamResult>, tool = makeServerTool(), lines: RecordedLine[] = []) {
  const event: UpstreamEvent = { type: "upstream-result", result: { content: [], effect: "none", ...result } };
  const intercept = step.compile(
    tool,
    POLICY,
    { clock: { now: () => 0, monotonicMs: () => 0, after: never } },
    undefined,
  );
  if (intercept === undefined) throw new Error("not in the path");
  const context = makeContext({ logger: recordingLogger(lines) });
  const events = await collect(intercept(makeCall(), context, invokeOf(event)));
  const [last] = events;
  if (last?.type !== "upstream-result") throw new Error("no result");
  return last.result;
}

function never(): never {
  throw new Error("no timer is needed");
}

testStepConformance({
  step,
  tool: makeServerTool({ type: "object", properties: { ok: { type: "boolean" } } }),
  policy: POLICY,
  call: makeCall(),
  makeContext: (signal) => makeContext({ signal }),
});

test("a result without a structured part keeps its text and has a notice [M-D16]", async () => {
  const content = [{ type: "text", text: "n=1" }] as const;
  const result = await checked({ content });
  expect(result.content).toEqual(content);
  expect(result.notices).toEqual([
    {
      reason: "OUTPUT_SCHEMA_MISMATCH",
      message: "the tool declares an output schema and gave no structured content; its text is the result",
    },
  ]);
  expect(result.failure).toBeUndefined();
});

test("a structured part that does not fit is told and stays as it came [M-D16]", async () => {
  const lines: RecordedLine[] = [];
  const result = await checked({ value: { n: "x" } }, makeServerTool(), lines);
  expect(result.value).toEqual({ n: "x" });
  expect(result.notices?.[0]).toMatchObject({ reason: "OUTPUT_SCHEMA_MISMATCH" });
  expect(result.notices?.[0]?.message).toMatch(
    /^the result does not fit the tool's output schema: \/n: expected integer/,
  );
  expect(lines).toMatchObject([{ level: "warn", message: "tool-output-mismatch", fields: { tool: "calc/add" } }]);
  expect(JSON.stringify(lines)).not.toContain('"x"');
});

test("the text of an error is never replaced by words about a schema [M-D16]", async () => {
  const failure = { reason: "TOOL_FAILED", message: "no", upstreamCode: undefined, retryable: false } as const;
  const result = await checked({ failure: { ...failure, upstreamFault: false } });
  expect(result.notices).toBeUndefined();
  expect(result.failure?.message).toBe("no");
});

test("what fits passes, a null and digits beyond a double included", async () => {
  expect((await checked({ value: { n: 9_007_199_254_740_993n } })).notices).toBeUndefined();
  expect((await checked({ value: null }, makeServerTool({ type: "null" }))).notices).toBeUndefined();
  expect((await checked({ value: 2n ** 60n }, makeServerTool({ type: "integer" }))).notices).toBeUndefined();
  // Arguments may leave out what they give as null; a result says null.
  expect(
    (await checked({ value: { n: 1, m: null } }, makeServerTool({ properties: { m: { type: "string" } } }))).notices,
  ).toHaveLength(1);
});

test("a schema that cannot be used, and a result too large to be checked, stand in nobody's way", async () => {
  expect((await checked({ value: 1 }, makeServerTool({ $ref: "https://example.com/schema" }))).notices).toBeUndefined();
  const value = Array.from({ length: 30_000 }, () => "x");
  expect(
    (await checked({ value }, makeServerTool({ type: "array", items: { type: "integer" } }))).notices,
  ).toBeUndefined();
});

test("a tool that is no server's, or has no schema, has the step not in its path", () => {
  const deps = { clock: { now: () => 0, monotonicMs: () => 0, after: never } };
  expect(step.compile(makeTool({ outputSchema: SCHEMA }), POLICY, deps, undefined)).toBeUndefined();
  expect(step.compile(makeTool({ kind: "mcp" }), POLICY, deps, undefined)).toBeUndefined();
});
