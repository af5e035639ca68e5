import { create, fromJson, type MessageInitShape } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { ToolFilterSchema } from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import { ToolKind, ToolState } from "../../gen/toolgate/v1/tool_pb.ts";
import { matchesGlob, toolSelection } from "../../src/wire/filter.ts";
import { cpuMs } from "../config/cpu-time.ts";
import { toolDefinition } from "../service/fake-registry.ts";
import { gatewayError } from "./errors.ts";

const order = {
  definition: toolDefinition({ name: "order_status", labels: { team: "shop" } }),
  availability: at("ready"),
};
const server = {
  definition: toolDefinition({ name: "github/search", kind: "mcp", toolsets: ["code", "all"] }),
  availability: at("unavailable"),
};
const off = { definition: toolDefinition({ name: "off" }), availability: at("disabled") };

type Refusal = [field: string, filter: MessageInitShape<typeof ToolFilterSchema>, reason: string];

/** An enum value of a later version. */
const UNKNOWN = fromJson(ToolFilterSchema, { states: [9] }).states[0] ?? ToolState.UNSPECIFIED;

function at(state: "ready" | "unavailable" | "disabled") {
  return { state, reason: "" };
}

function selected(filter: MessageInitShape<typeof ToolFilterSchema> | undefined): string[] {
  const selection = toolSelection(filter === undefined ? undefined : create(ToolFilterSchema, filter));
  return [order, server, off].filter((view) => selection.matches(view)).map((view) => view.definition.name);
}

test("without a filter, and with an empty one, every tool but the disabled ones is selected", () => {
  expect(selected(undefined)).toEqual(["order_status", "github/search"]);
  expect(selected({})).toEqual(["order_status", "github/search"]);
});

test("states, kinds, labels and globs each select, and all of them must match [S2-08]", () => {
  expect(selected({ states: [ToolState.DISABLED, ToolState.UNAVAILABLE] })).toEqual(["github/search", "off"]);
  expect(selected({ kinds: [ToolKind.MCP] })).toEqual(["github/search"]);
  expect(selected({ labels: { team: "shop" } })).toEqual(["order_status"]);
  expect(selected({ labels: { team: "other" } })).toEqual([]);
  expect(selected({ names: ["order_*", "nothing"] })).toEqual(["order_status"]);
  expect(selected({ names: ["*"], kinds: [ToolKind.HTTP], labels: { team: "shop" } })).toEqual(["order_status"]);
});

test("toolsets select, any of them, and one that does not exist has no tools [S1-18]", () => {
  expect(selected({ toolsets: ["code"] })).toEqual(["github/search"]);
  expect(selected({ toolsets: ["none", "all"] })).toEqual(["github/search"]);
  expect(selected({ toolsets: ["none"] })).toEqual([]);
  expect(selected({ toolsets: ["code"], names: ["order_*"] })).toEqual([]);
  const key = (toolsets: string[]): string => toolSelection(create(ToolFilterSchema, { toolsets })).key;
  expect(key(["a", "b"])).toBe(key(["b", "a", "a"]));
  expect(key(["a"])).not.toBe(key(["b"]));
});

test("a label named like a member of every object is no label", () => {
  expect(selected({ labels: { constructor: "x" } })).toEqual([]);
});

test.each([
  ["*", "anything/at.all", true],
  ["github/*", "github/search", true],
  ["git*search", "github/search", true],
  ["order_statu?", "order_status", true],
  ["order_status?", "order_status", false],
  ["Order_status", "order_status", false],
  ["*status*x", "order_status", false],
  ["[a-z]*", "order_status", false],
  ["", "", true],
])("the glob %s on %s gives %s", (glob, text, matches) => {
  expect(matchesGlob(glob, text)).toBe(matches);
});

test("a hostile glob takes no time", () => {
  // Tried without bound it would take years.
  expect(cpuMs(() => expect(matchesGlob(`${"*a".repeat(120)}b`, "a".repeat(129))).toBe(false))).toBeLessThan(1_000);
});

test.each([
  ["filter.kinds", { kinds: [ToolKind.UNSPECIFIED] }, "UNKNOWN_VALUE"],
  ["filter.kinds", { kinds: [UNKNOWN] }, "UNKNOWN_VALUE"],
  ["filter.states", { states: [ToolState.UNSPECIFIED] }, "UNKNOWN_VALUE"],
  ["filter.names", { names: Array.from({ length: 101 }, (_, i) => `n${i}`) }, "TOO_MANY"],
  ["filter.names", { names: ["x".repeat(300)] }, "TOO_LONG"],
  ["filter.names", { names: [""] }, "MISSING"],
  ["filter.toolsets", { toolsets: Array.from({ length: 101 }, (_, i) => `n${i}`) }, "TOO_MANY"],
  ["filter.toolsets", { toolsets: ["x".repeat(65)] }, "TOO_LONG"],
  ["filter.toolsets", { toolsets: [""] }, "MISSING"],
  ["filter.labels", { labels: Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`l${i}`, ""])) }, "TOO_MANY"],
] satisfies Refusal[])("%s is refused for a value it does not take", (field, filter, reason) => {
  const error = gatewayError(() => toolSelection(create(ToolFilterSchema, filter)));
  expect(error.reason).toBe("REQUEST_INVALID");
  expect(error.violations[0]).toMatchObject({ field, reason });
});

test("an enum value that is refused comes with the values that are taken", () => {
  const error = gatewayError(() => toolSelection(create(ToolFilterSchema, { states: [UNKNOWN] })));
  expect(error.message).toBe("`filter.states` takes READY (1), DEGRADED (2), UNAVAILABLE (3), DISABLED (4), got 9");
});

test("filters that select alike have one key, others have others", () => {
  const key = (filter: MessageInitShape<typeof ToolFilterSchema>) =>
    toolSelection(create(ToolFilterSchema, filter)).key;
  expect(key({ names: ["b", "a", "a"], labels: { x: "1", a: "2" } })).toBe(
    key({ names: ["a", "b"], labels: { a: "2", x: "1" } }),
  );
  expect(key({ names: ["a"] })).not.toBe(key({ names: ["b"] }));
  expect(key({ kinds: [ToolKind.HTTP] })).not.toBe(key({ states: [ToolState.READY] }));
  expect(key({})).toBe(toolSelection(undefined).key);
});
