import { mkdir, readFile, rm, stat, symlink } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { KEY_PREFIX } from "../../src/identity/api-keys.ts";
import { openApiKeys } from "../../src/identity/key-administration.ts";
import { startEchoUpstream } from "./echo-upstream.ts";
import { type OpenGateway, openGateway, temporaryFolder } from "./effects-gateway.ts";
import { reasonOf, retryUntil, valueOf } from "./gateway-client.ts";
import { type RecordLine, recordsOf } from "./record-files.ts";

const SECRET = "sk-live-0123456789abcdef";

interface Recorded extends AsyncDisposable {
  readonly gateway: OpenGateway;
  readonly folder: string;
  /** Stops the gateway, so that all is written. */
  lines(log: "gateway" | "session" | "audit"): Promise<readonly RecordLine[]>;
}

/** A gateway with the tools `echo`, `writing` (counted once) and `closed` (for the role `admin`). */
async function recordedGateway(settings: Readonly<Record<string, unknown>> = {}): Promise<Recorded> {
  const running = new AsyncDisposableStack();
  const upstream = running.use(await startEchoUpstream());
  const { path: folder } = running.use(await temporaryFolder());
  const tool = (name: string, keys: object): string =>
    JSON.stringify({
      name,
      description: "用于检查记录 shows what is on record",
      type: "http",
      endpoint: `http://127.0.0.1:${upstream.port}/echo/${name}`,
      params: [
        { name: "order_no", type: "string" },
        { name: "lang", type: "string", default: "zh" },
      ],
      ...keys,
    });
  const files = {
    "tools/echo.yaml": tool("echo", { auth: { header_name: "Authorization", prefix: "Bearer ", secret_ref: "TOKEN" } }),
    "tools/writing.yaml": tool("writing", { method: "POST" }),
    "tools/closed.yaml": tool("closed", { allowed_roles: ["admin"] }),
    "tools/gone.yaml": tool("gone", { endpoint: "http://127.0.0.1:9/" }),
  };
  const gateway = running.use(await openGateway({ folder, files, settings, env: { TOKEN: SECRET } }));
  return {
    gateway,
    folder: join(folder, "state/records"),
    async lines(log) {
      await gateway.stop();
      return recordsOf(join(folder, "state/records"), log);
    },
    [Symbol.asyncDispose]: () => running.disposeAsync(),
  };
}

const CONTEXT = { sessionId: "s-1", turnId: "t-2", taskId: "k-3", toolCallId: "c-4" };

test("each call is a line with ids, caller, tool, digest, outcome, attempts, durations, sizes and effect [S2-81, S2-127]", async () => {
  await using it = await recordedGateway();
  const { callId } = await it.gateway.client.service.call({
    invocation: { name: "echo", context: CONTEXT, arguments: { case: "argumentsJson", value: '{"order_no":"SO1"}' } },
  });
  await it.gateway.client.call("gone").catch(() => undefined);
  await it.gateway.client.call("echo", { unknown: 1 }).catch(() => undefined);
  const [ok, gone, invalid] = await it.lines("gateway");
  expect(ok).toEqual({
    level: "info",
    time: expect.stringMatching(/^\d{4}-.*Z$/),
    callId,
    ...CONTEXT,
    principal: "anonymous",
    tool: "echo",
    kind: "http",
    argumentsDigest: expect.stringMatching(/^[0-9a-f]{16}$/),
    outcome: "ok",
    status: "OK",
    upstreamCode: 200,
    effect: "none",
    attempts: 1,
    queuedMs: 0,
    connectMs: expect.any(Number),
    firstByteMs: expect.any(Number),
    totalMs: expect.any(Number),
    argumentBytes: 18,
    requestBytes: 0,
    responseBytes: expect.any(Number),
    resultBytes: expect.any(Number),
    message: "tool-call",
  });
  expect(gone).toMatchObject({ tool: "gone", outcome: "error", status: "UNAVAILABLE", reason: "UPSTREAM_UNREACHABLE" });
  expect(invalid).toMatchObject({ outcome: "error", status: "INVALID_ARGUMENT", reason: "ARGUMENTS_INVALID" });
  expect(invalid).not.toHaveProperty("upstreamCode");
});

test("a call that is refused at the door, joined or replayed is a line, too", async () => {
  await using it = await recordedGateway();
  const { service } = it.gateway.client;
  await it.gateway.client.call("absent").catch(() => undefined);
  const keyed = { invocation: { name: "writing", requestId: "once" } };
  const first = await service.call(keyed);
  const second = await service.call(keyed);
  const lines = await it.lines("gateway");
  expect(lines).toHaveLength(3);
  expect(lines[0]).toMatchObject({ tool: "absent", outcome: "error", status: "NOT_FOUND", reason: "TOOL_NOT_FOUND" });
  expect(lines[1]).toMatchObject({ callId: first.callId, outcome: "ok", effect: "committed" });
  expect(lines[2]).toMatchObject({ callId: second.callId, outcome: "ok", effect: "committed", replayed: true });
});

test("the session log has the whole chain of a call under one id: arguments, what was checked, request, upstream status, result [S2-82, S2-96, S2-127]", async () => {
  await using it = await recordedGateway({ records: { session: true } });
  const { callId } = await it.gateway.client.service.call({
    invocation: { name: "echo", context: CONTEXT, arguments: { case: "argumentsJson", value: '{"order_no":"SO1"}' } },
  });
  const [said] = await it.lines("session");
  expect(said).toMatchObject({
    callId,
    ...CONTEXT,
    tool: "echo",
    arguments: '{"order_no":"SO1"}',
    validated: '{"order_no":"SO1","lang":"zh"}',
    upstream: [{ method: "GET", url: expect.stringContaining("order_no=SO1&lang=zh"), status: 200 }],
    outcome: "ok",
    upstreamCode: 200,
    result: { json: expect.any(String) },
  });
  const [call] = await recordsOf(it.folder, "gateway");
  expect(call).toMatchObject({ callId });
});

test("no record holds a secret, whoever says it [S2-47, K-D02]", async () => {
  await using it = await recordedGateway({ records: { session: true } });
  const forms = [SECRET, Buffer.from(SECRET).toString("base64")];
  for (const order_no of forms) await it.gateway.client.call("echo", { order_no });
  await it.gateway.stop();
  for (const log of ["gateway", "session", "audit"] as const) {
    const text = await readFile(join(it.folder, `${log}.jsonl`), "utf8");
    for (const form of forms) expect(text).not.toContain(form);
  }
});

test("an explanation that only the session log needs is not given to the caller", async () => {
  await using it = await recordedGateway({ records: { session: true } });
  expect((await it.gateway.client.call("echo")).explanation).toBeUndefined();
});

test("who registered, was refused, or called what is not there for it, is in the audit log, and what was reloaded [X-D09]", async () => {
  await using it = await recordedGateway({ identity: { api_keys: true }, denied_calls: "not_found" });
  const keys = openApiKeys(join(it.gateway.folder, "state"));
  const make = (name: string, roles: readonly string[]): Promise<{ readonly key: string }> =>
    keys.create({ name, roles, createTimeMs: Date.now(), expireTimeMs: undefined });
  const [viewer, operator] = [await make("viewer", []), await make("boss", ["operator"])];
  const as = (key: string) => ({ headers: { authorization: `Bearer ${key}` } });
  const { service } = it.gateway.client;
  const endpoint = "http://127.0.0.1:9/";
  const yaml = JSON.stringify({
    name: "made",
    description: "用于检查登记 a tool that is registered",
    type: "http",
    endpoint,
  });
  const declaration = { case: "declarationJson", value: yaml } as const;
  await retryUntil(
    () => service.register({ declaration }, as(operator.key)).catch(reasonOf),
    (outcome) => typeof outcome !== "string",
  );
  await expect(service.register({ declaration }, as(viewer.key))).rejects.toThrow("may register tools");
  await service.unregister({ name: "made" }, as(operator.key));
  await expect(service.call({ invocation: { name: "closed" } }, as(viewer.key))).rejects.toThrow("closed");
  await expect(service.list({}, as(`${KEY_PREFIX}wrong`))).rejects.toThrow("not valid");
  await expect(service.list({})).rejects.toThrow("no credential");
  await it.gateway.reconfigure({ identity: { api_keys: true }, denied_calls: "permission_denied" });
  const lines = await it.lines("audit");
  const told = lines.map(({ message, outcome, actor }) => `${String(message)} ${String(outcome)} ${String(actor)}`);
  for (const line of [
    "gateway-start done gateway",
    "tool-register done key:boss",
    "tool-register refused key:viewer",
    "tool-unregister done key:boss",
    "tool-call refused key:viewer",
    "authenticate refused 127.0.0.1",
    "settings-reload done gateway.yaml",
    "gateway-stop done gateway",
  ]) {
    expect(told).toContain(line);
  }
  expect(lines.find(({ message }) => message === "tool-call")).toMatchObject({ tool: "closed", hidden: true });
  expect(JSON.stringify(lines)).not.toContain(viewer.key);
});

test("the files are the gateway's user's alone, apart from configuration [S2-126]", async () => {
  await using it = await recordedGateway();
  await it.gateway.client.call("echo");
  await it.gateway.stop();
  expect((await stat(it.folder)).mode & 0o777).toBe(0o700);
  expect((await stat(join(it.folder, "gateway.jsonl"))).mode & 0o777).toBe(0o600);
});

test("on a full disk calls go on, readiness and doctor say so, and what was lost is counted when there is room again", async () => {
  await using running = new AsyncDisposableStack();
  const { path: folder } = running.use(await temporaryFolder());
  const records = join(folder, "state/records");
  await mkdir(records, { recursive: true });
  await symlink("/dev/full", join(records, "gateway.jsonl"));
  const upstream = running.use(await startEchoUpstream());
  const endpoint = `http://127.0.0.1:${upstream.port}/echo/json`;
  const text = JSON.stringify({
    name: "json",
    description: "用于检查磁盘 a tool beside a full disk",
    type: "http",
    endpoint,
  });
  const settings = { metrics: { prometheus: true } };
  const gateway = running.use(await openGateway({ folder, files: { "tools/json.yaml": text }, settings }));
  const metric = async (name: string): Promise<number> => {
    const page = await (await fetch(`${gateway.url}/metrics`)).text();
    return Number(new RegExp(`^toolgate_${name}\\{.*toolgate_log="gateway".*\\} (\\d+)`, "m").exec(page)?.[1]);
  };
  await gateway.client.call("json");
  const ready = async (): Promise<string> => (await fetch(`${gateway.url}/readyz`)).text();
  await retryUntil(ready, (words) => words.includes("records gateway.jsonl: cannot be written"));
  expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200);
  for (let i = 0; i < 20; i++) await gateway.client.call("json");
  expect([await metric("records_failing"), await metric("records_lost_total")]).toEqual([1, 0]);
  const diagnosed = await fetch(`${gateway.url}/toolgate.v1.OperatorService/Diagnose`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: "{}",
  });
  const mend = expect.stringContaining("its disk has room");
  expect(await diagnosed.json()).toHaveProperty(
    "checks",
    expect.arrayContaining([
      expect.objectContaining({ subject: "records gateway.jsonl", message: "cannot be written", mend }),
    ]),
  );
  await rm(join(records, "gateway.jsonl"));
  await retryUntil(
    () => recordsOf(records, "gateway"),
    (lines) => lines.filter(({ message }) => message === "tool-call").length === 21,
  );
  await retryUntil(ready, (words) => words === "ready\n");
  await retryUntil(
    () => metric("records_failing"),
    (failing) => failing === 0,
  );
});

test("what a full disk has no room for is counted by a metric while calls go on", { timeout: 60_000 }, async () => {
  await using running = new AsyncDisposableStack();
  const { path: folder } = running.use(await temporaryFolder());
  const records = join(folder, "state/records");
  await mkdir(records, { recursive: true });
  await symlink("/dev/full", join(records, "session.jsonl"));
  const upstream = running.use(await startEchoUpstream());
  const text = JSON.stringify({
    name: "json",
    description: "用于检查磁盘 a tool beside a full disk",
    type: "http",
    method: "POST",
    endpoint: `http://127.0.0.1:${upstream.port}/echo/json`,
    params: [{ name: "pad", type: "string" }],
  });
  const settings = { metrics: { prometheus: true }, records: { session: true } };
  const gateway = running.use(await openGateway({ folder, files: { "tools/json.yaml": text }, settings }));
  const lost = async (): Promise<number> => {
    const page = await (await fetch(`${gateway.url}/metrics`)).text();
    return Number(/^toolgate_records_lost_total\{.*toolgate_log="session".*\} (\d+)/m.exec(page)?.[1]);
  };
  expect(await lost()).toBe(0);
  // Lines wait in memory within a bound of some MB, and one says what it has to in some KB.
  const pad = "x".repeat(8_000);
  for (let calls = 0; calls < 2_000 && (await lost()) === 0; calls += 50) {
    await Promise.all(Array.from({ length: 50 }, () => gateway.client.call("json", { pad })));
  }
  expect(await lost()).toBeGreaterThan(0);
  expect(valueOf(await gateway.client.call("json", { pad: "on" }))).toBeDefined();
  expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200);
});
