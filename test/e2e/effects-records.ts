import { utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import type { RECORD_SETTINGS } from "../../src/config/record-settings.ts";
import type { OpenGateway, OpenGatewayOptions } from "./effects-gateway.ts";
import { retryUntil } from "./gateway-client.ts";
import { filesOf, recordsOf } from "./record-files.ts";

type Open = (options: Pick<OpenGatewayOptions, "settings" | "files">) => Promise<OpenGateway>;

/** Calls a tool that is not there so often, and stops: each call is a line of a KiB. */
async function recorded(open: Open, records: object, calls = 1): Promise<{ readonly folder: string }> {
  const gateway = await open({ settings: { records } });
  const id = "i".repeat(256);
  const context = { sessionId: id, turnId: id, taskId: id, toolCallId: id };
  for (let i = 0; i < calls; i++) {
    await gateway.client.service.call({ invocation: { name: "absent", context } }).catch(() => undefined);
  }
  await gateway.stop();
  return { folder: join(gateway.folder, "state/records") };
}

/** Whether each log was written. */
async function written(open: Open, records: object): Promise<readonly boolean[]> {
  const { folder } = await recorded(open, records);
  const logs = await Promise.all((["gateway", "session", "audit"] as const).map((log) => recordsOf(folder, log)));
  return logs.map((lines) => lines.length > 0);
}

/** Enough calls for several files of the least size. */
const MANY = 250;

/** A gateway whose folder has closed files of long ago already, and the names of those that are left. */
async function leftOver(open: Open, records: object): Promise<readonly string[]> {
  const old = ["2020-01-01", "2020-01-02", "2020-01-03"].map((day) => `gateway-${day}T00-00-00.000Z.jsonl`);
  const line = `${JSON.stringify({ message: "tool-call", words: "x".repeat(30_000) })}\n`;
  const files = Object.fromEntries(old.map((name) => [`state/records/${name}`, line]));
  const gateway = await open({ settings: { records }, files });
  await gateway.client.call("absent").catch(() => undefined);
  await gateway.stop();
  return (await filesOf(join(gateway.folder, "state/records"), "gateway")).filter((name) => old.includes(name));
}

/** Every key of `records` with what shows that it has an effect. */
export const RECORD_EFFECTS: Readonly<Record<keyof typeof RECORD_SETTINGS, (open: Open) => Promise<void>>> = {
  async "records.folder"(open) {
    const gateway = await open({ settings: { records: { folder: "elsewhere" } } });
    await gateway.client.call("absent").catch(() => undefined);
    await gateway.stop();
    expect(await recordsOf(join(gateway.folder, "elsewhere"), "gateway")).toHaveLength(1);
    expect(await recordsOf(join(gateway.folder, "state/records"), "gateway")).toEqual([]);
  },
  async "records.gateway"(open) {
    expect(await written(open, { gateway: true })).toEqual([true, false, true]);
    expect(await written(open, { gateway: false })).toEqual([false, false, true]);
  },
  async "records.session"(open) {
    expect(await written(open, { session: true })).toEqual([true, true, true]);
  },
  async "records.audit"(open) {
    expect(await written(open, { audit: false })).toEqual([true, false, false]);
  },
  async "records.file_bytes"(open) {
    const small = await recorded(open, { file_bytes: "64KiB" }, MANY);
    expect((await filesOf(small.folder, "gateway")).length).toBeGreaterThan(2);
    const large = await recorded(open, {}, MANY);
    expect(await filesOf(large.folder, "gateway")).toHaveLength(1);
  },
  async "records.file_age"(open) {
    const files = async (file_age: string): Promise<number> => {
      const gateway = await open({ settings: { records: { file_age } } });
      await gateway.client.call("absent").catch(() => undefined);
      const folder = join(gateway.folder, "state/records");
      await retryUntil(
        () => recordsOf(folder, "gateway"),
        (lines) => lines.length > 0,
      );
      await new Promise((resolve) => setTimeout(resolve, 1_100));
      await gateway.client.call("absent").catch(() => undefined);
      await gateway.stop();
      return (await filesOf(folder, "gateway")).length;
    };
    expect(await files("1s")).toBeGreaterThan(1);
    expect(await files("1h")).toBe(1);
  },
  async "records.retention"(open) {
    expect(await leftOver(open, { retention: "24h" })).toHaveLength(3);
    // Their age is that of their last line.
    const gateway = await open({ settings: { records: { retention: "24h" } } });
    const path = join(gateway.folder, "state/records/gateway-2020-01-01T00-00-00.000Z.jsonl");
    await gateway.client.call("absent").catch(() => undefined);
    await retryUntil(
      () => recordsOf(join(gateway.folder, "state/records"), "gateway"),
      (lines) => lines.length > 0,
    );
    await writeFile(path, "{}\n");
    await utimes(path, 1_577_836_800, 1_577_836_800);
    await gateway.stop();
    const again = await open({
      settings: { records: { retention: "24h", folder: join(gateway.folder, "state/records") } },
    });
    await again.client.call("absent").catch(() => undefined);
    await again.stop();
    expect(await filesOf(join(gateway.folder, "state/records"), "gateway")).toEqual(["gateway.jsonl"]);
  },
  async "records.max_files"(open) {
    expect(await leftOver(open, {})).toHaveLength(3);
    expect(await leftOver(open, { max_files: 2 })).toHaveLength(2);
  },
  async "records.max_bytes"(open) {
    expect(await leftOver(open, { file_bytes: "64KiB", max_bytes: "96KiB" })).toHaveLength(1);
  },
};
