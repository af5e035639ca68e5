import { openSync, rmSync, writeSync } from "node:fs";
import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { devNull, tmpdir } from "node:os";
import { join } from "node:path";
import { createGateway, createPinoLogger, createSecrets, parseGatewayConfig } from "../../src/index.ts";
import { reportReady } from "./ready.ts";

// The gateway as it is shipped, with tools that point at the bench's upstream: gateway.ts UPSTREAM_PORT [SETTINGS], these
// as JSON, over `listen`.
const [upstreamPort = "", settings = "{}"] = process.argv.slice(2);

const PARAMS = `params:
  - { name: order_id, type: string, required: true }
  - { name: include_history, type: boolean, default: false }
  - { name: note, type: string }
  - { name: limit, type: integer, minimum: 1, maximum: 100 }
`;

function declaration(name: string, path: string, more: string): string {
  const endpoint = `http://127.0.0.1:${upstreamPort}/${path}`;
  return `name: ${name}\ndescription: 性能测试工具 for the bench\ntype: http\nmethod: GET\nendpoint: ${endpoint}\n${PARAMS}${more}`;
}

const folder = await mkdtemp(join(tmpdir(), "toolgate-bench-"));
process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
await mkdir(join(folder, "tools"));
const tools = {
  bench_json: declaration(
    "bench_json",
    "json",
    "result: { success_field: code, success_value: 0, data_field: data }\n",
  ),
  bench_first: declaration("bench_first", "first", "delivery: incremental\n"),
  bench_feed: declaration("bench_feed", "feed", "delivery: incremental\n"),
  bench_stalled: declaration(
    "bench_stalled",
    "stalled",
    "concurrency_limit: 10\nqueue: { max_wait: 1h }\ntimeout: { read: 1h, total: 1h }\n",
  ),
  bench_unlimited: declaration("bench_unlimited", "congested", ""),
  bench_limited: declaration("bench_limited", "congested", "concurrency_limit: 32\n"),
  bench_adaptive: declaration("bench_adaptive", "congested", "concurrency: { adaptive: true }\n"),
};
for (const [name, text] of Object.entries(tools)) await writeFile(join(folder, "tools", `${name}.yaml`), text);

const text = JSON.stringify({ listen: "127.0.0.1:0", ...JSON.parse(settings) });
const outcome = parseGatewayConfig(text, { file: "gateway.yaml", folder });
if (!outcome.ok) throw new Error(JSON.stringify(outcome.problems));
// Every line is made and written, as in a gateway whose log is a file.
const log = openSync(devNull, "w");
const secrets = createSecrets(process.env);
const logger = createPinoLogger({
  level: outcome.config.log.level,
  destination: { write: (line) => void writeSync(log, line) },
  redactor: secrets.redactor,
});
const { url } = await createGateway({ config: outcome.config, secrets, logger });
const port = Number(new URL(url).port);
reportReady({ h1: port, h2: port });
