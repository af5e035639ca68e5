import { enableCompileCache } from "node:module";
import { join } from "node:path";
import { homeFolder, processHost, userName } from "./cli/process-host.ts";
import type { GatewayConfig } from "./config/gateway-config.ts";
import { VERSION } from "./core/version.ts";

// Compiled code is kept between runs, which saves a third of the time until a command answers. The folder is the user's
// own, since whoever can write there decides what runs. NODE_DISABLE_COMPILE_CACHE=1 switches it off.
enableCompileCache(join(process.env.XDG_CACHE_HOME || join(homeFolder(), ".cache"), "toolgate"));

/** Puts on record what an administrator does beside the gateway. */
async function noteOf(config: GatewayConfig): Promise<(act: Act) => Promise<void>> {
  if (!config.records.audit) return () => Promise.resolve();
  const { appendAudit } = await import("./observability/append-audit.ts");
  const { recordFolder } = await import("./config/record-settings.ts");
  return async ({ action, facts }) => {
    try {
      const entry = { action, outcome: "done", actor: `os:${userName()}`, facts: { ...facts } } as const;
      await appendAudit(recordFolder(config), entry, Date.now());
    } catch (error) {
      // A key that leaked must be revoked though the disk be full.
      process.stderr.write(`not put on record in the audit log: ${String(error)}\n`);
    }
  };
}

interface Act {
  readonly action: string;
  readonly facts: object;
}

const host = processHost({
  version: VERSION,
  async loadApiKeys(config) {
    const { openApiKeys } = await import("./identity/key-administration.ts");
    return openApiKeys(config.state.folder, await noteOf(config));
  },
  async loadLogins(config) {
    const { openLogins } = await import("./logins.ts");
    return openLogins({ config, environment: process.env, note: await noteOf(config) });
  },
  async loadServer() {
    const { createGateway } = await import("./gateway.ts");
    const { createPinoLogger } = await import("./observability/pino-logger.ts");
    const { createSecrets } = await import("./secrets/secrets.ts");
    const secrets = createSecrets(process.env);
    return {
      createGateway: (options) => createGateway({ ...options, secrets, environment: process.env }),
      createLogger: (level) => createPinoLogger({ level, destination: process.stderr, redactor: secrets.redactor }),
    };
  },
});

// Only now, so that what follows comes out of the cache.
const { runCli } = await import("./cli/run.ts");
process.exitCode = await runCli(process.argv.slice(2), host);
