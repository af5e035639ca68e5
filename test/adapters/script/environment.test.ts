import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { callOnce, problemsOf, type ToolOptions, textOf } from "./fixture.ts";

const GATEWAY = {
  ORDER_API_TOKEN: "tok-1",
  DB_PASSWORD: "secret-2",
  HOME: "/home/gate",
  LC_TIME: "C",
  JAVA_HOME: "/java",
};

async function environmentOf(options: Partial<ToolOptions>, how = {}): Promise<ReadonlyMap<string, string>> {
  const outcome = await callOnce(
    { environment: GATEWAY, ...options, keys: { command: "env", ...options.keys } },
    {},
    { deadlineMs: 2_000_000_000_000, ...how },
  );
  const lines = textOf(outcome).split("\n").slice(0, -1);
  return new Map(lines.map((line): [string, string] => [line.split("=")[0] ?? "", line.slice(line.indexOf("=") + 1)]));
}

/** What a program gets besides what is told of its call. */
async function namesOf(options: Partial<ToolOptions>): Promise<readonly string[]> {
  return [...(await environmentOf(options)).keys()].filter((name) => !name.startsWith("TOOLGATE_")).toSorted();
}

test("a program gets the few variables of the list and what is declared, also when `env` is given [S-D08]", async () => {
  expect(await namesOf({})).toEqual(["HOME", "LC_TIME", "PATH"]);
  expect(await namesOf({ keys: { command: "env", env: { A: "1" } } })).toEqual(["A", "HOME", "LC_TIME", "PATH"]);
  expect(await namesOf({ keys: { command: "env", inherit_env: ["JAVA_HOME", "NOT_SET"] } })).toEqual([
    "HOME",
    "JAVA_HOME",
    "LC_TIME",
    "PATH",
  ]);
});

test("a secret reaches a program by its environment alone, as it is now [S-D08]", async () => {
  const environment = { ...GATEWAY };
  const keys = { command: "env", env: { API_TOKEN: { secret_ref: "ORDER_API_TOKEN" }, HOME: "/elsewhere" } };
  const found = await environmentOf({ keys, environment });
  expect(found.get("API_TOKEN")).toBe("tok-1");
  expect(found.get("HOME")).toBe("/elsewhere");
  environment.ORDER_API_TOKEN = "tok-2";
  expect((await environmentOf({ keys, environment })).get("API_TOKEN")).toBe("tok-2");
});

test("a secret that is not set, or that no variable can hold, starts nothing", async () => {
  const keys = { command: "env", env: { API_TOKEN: { secret_ref: "NOT_SET" } } };
  const missing = await callOnce({ keys });
  expect(missing.error).toMatchObject({ reason: "SECRET_MISSING", effect: "none" });
  const odd = await callOnce({ keys, environment: { NOT_SET: "a\0b" } });
  expect(odd.error?.message).toBe(
    "run_report: secret NOT_SET holds a NUL, which no variable can; the upstream was not reached",
  );
});

test("call ids, deadline and trace reach a program as variables", async () => {
  const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const trace = { traceparent, tracestate: "vendor=1", baggage: "user=7" };
  const found = await environmentOf({}, { ...trace, callId: "call-7", sessionId: "s-1", attempt: 2 });
  expect(Object.fromEntries(found)).toMatchObject({
    TOOLGATE_TOOL: "run_report",
    TOOLGATE_CALL_ID: "call-7",
    TOOLGATE_ATTEMPT: "2",
    TOOLGATE_DEADLINE_MS: "2000000000000",
    TOOLGATE_SESSION_ID: "s-1",
    TRACEPARENT: traceparent,
    TRACESTATE: "vendor=1",
    BAGGAGE: "user=7",
  });
  expect(Number(found.get("TOOLGATE_TIMEOUT_MS"))).toBeGreaterThan(1_000_000);
  expect([...found.keys()]).not.toContain("TOOLGATE_TASK_ID");
  expect([...(await environmentOf({}, { traceparent: "x\ny" })).keys()]).not.toContain("TRACEPARENT");
});

test("a program gets no descriptor besides its three", async () => {
  const keys = { command: "sh", args: ["-c", "ls /proc/self/fd"] };
  // What this process was given by whoever started it, and the folder that `ls` reads.
  const given = spawnSync("ls", ["/proc/self/fd"], { encoding: "utf8" }).stdout;
  expect(textOf(await callOnce({ keys }))).toBe(given);
});

test("names that no variable can have, and those the gateway sets, are refused", () => {
  const env = { "A=B": "1", TOOLGATE_CALL_ID: "1", traceparent: "1", OK: "a\0b" };
  expect(problemsOf({ keys: { command: "env", env } })).toEqual([
    "/env/A=B is no name of an environment variable",
    "/env/TOOLGATE_CALL_ID is set by the gateway for each call; choose another name",
    "/env/traceparent is set by the gateway for each call; choose another name",
    "/env/OK holds a NUL, which no variable can",
  ]);
});
