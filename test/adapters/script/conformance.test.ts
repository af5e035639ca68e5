import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "../../../src/core/json.ts";
import { type AdapterBench, describeAdapter, type TestedTool } from "../../conformance/adapter.ts";
import { allGone, openTool, type TestFolder, type ToolOptions, testFolder } from "./fixture.ts";

describeAdapter("script", startBench);

async function startBench(): Promise<AdapterBench> {
  const folder = await testFolder();
  return {
    quick: tested(folder, "quick", `printf '{{"code":0}}'`),
    silent: tested(folder, "silent", "exec sleep 600"),
    endless: tested(folder, "endless", "while :; do echo tick; sleep 0.01; done", { delivery: "incremental" }),
    failing: tested(folder, "failing", "exit 3"),
    unreachable: tested(folder, "unreachable", "", { keys: { command: "./missing" } }),
    unready: tested(folder, "unready", "", { keys: { env: { TOKEN: { secret_ref: "MISSING" } } } }),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

/** Each run notes its process id. */
function tested(folder: TestFolder, log: string, script: string, options: Partial<ToolOptions> = {}): TestedTool {
  const keys: JsonObject = { command: "sh", args: ["-c", `echo $$ >> ${log}\n${script}`], ...options.keys };
  return {
    open: () => openTool({ name: "tested_tool", folder: folder.path, ...options, keys }),
    arguments: {},
    reached: () => linesOf(join(folder.path, log)).length,
    arrived: async () => void (await folder.waitForLines(log, 1)),
    quiet: async () => allGone((await folder.lines(log)).map(Number)),
  };
}

function linesOf(file: string): string[] {
  try {
    return readFileSync(file, "utf8").split("\n").slice(0, -1);
  } catch {
    return [];
  }
}
