import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { processHost } from "../src/cli/process-host.ts";
import { runCli } from "../src/cli/run.ts";
import { openApiKeys } from "../src/identity/key-administration.ts";
import { createGateway, createPinoLogger, createSecrets, type Gateway, VERSION } from "../src/index.ts";
import { openLogins } from "../src/logins.ts";
import { createDemoUpstream, type DemoUpstream } from "./upstream/demo-upstream.ts";

// `npm start`: the gateway with the example tools, and the upstream they call, in one process.
const HOST = "127.0.0.1";
const DEMO_TOKEN = "demo-order-token";

const { values: flags } = parseArgs({
  options: {
    config: { type: "string", default: fileURLToPath(new URL("gateway.yaml", import.meta.url)) },
    /** The example tools say 7434. */
    "upstream-port": { type: "string", default: "7434" },
  },
});

const upstream = await startUpstream(Number(flags["upstream-port"]));
if (upstream !== undefined) {
  process.exitCode = await runCli(["serve", "--config", flags.config], hostWithGuide(upstream));
  await upstream.close();
}

async function startUpstream(port: number): Promise<DemoUpstream | undefined> {
  try {
    return await createDemoUpstream({ port, host: HOST });
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "EADDRINUSE")) throw error;
    console.error(`The demo upstream cannot start: port ${port} is in use. Does another npm start run?`);
    process.exitCode = 1;
    return undefined;
  }
}

/** The process as `toolgate serve` sees it, with a token for the order API and a guide once the gateway is up. */
function hostWithGuide(demo: DemoUpstream): ReturnType<typeof processHost> {
  const { env } = process;
  const secrets = createSecrets({ ...env, ORDER_API_TOKEN: env["ORDER_API_TOKEN"] || DEMO_TOKEN });
  return processHost({
    version: VERSION,
    loadApiKeys: ({ state }) => Promise.resolve(openApiKeys(state.folder)),
    loadLogins: (config) => openLogins({ config, environment: env }),
    loadServer: () =>
      Promise.resolve({
        createLogger: (level) => createPinoLogger({ level, destination: process.stderr, redactor: secrets.redactor }),
        async createGateway(options) {
          const gateway = await createGateway({ ...options, secrets, environment: env });
          // After the line that `serve` writes.
          setImmediate(() => console.log(guide(gateway, demo, env)));
          return gateway;
        },
      }),
  });
}

function guide({ url }: Gateway, { port }: DemoUpstream, env: NodeJS.ProcessEnv): string {
  const token = env["ORDER_API_TOKEN"] ? "set, and used as it is" : `not set: the demo uses "${DEMO_TOKEN}"`;
  const key = env["WEATHER_API_KEY"] ? "set" : "not set: the tool `weather` is unavailable until it is";
  return `
Gateway          ${url}  (gRPC, gRPC-Web and Connect)
Demo upstream    http://${HOST}:${port}
ORDER_API_TOKEN  ${token}
WEATHER_API_KEY  ${key}

Try in another terminal:
  npx toolgate tool list
  npx toolgate tool call order_status --param order_id=SO20241001
  npx toolgate tool call order_status --param order_id=SO20241001 --explain
  npx toolgate tool call log_tail --param service=orders --param lines=5 --stream
  npx toolgate doctor
A file in examples/tools is a tool a moment after it is written.

Ctrl-C stops both.`;
}
