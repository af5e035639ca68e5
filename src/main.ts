import { enableCompileCache } from "node:module";
import { join } from "node:path";
import { homeFolder, processHost } from "./cli/process-host.ts";
import { VERSION } from "./core/version.ts";

// Compiled code is kept between runs, which saves a third of the time until a command answers. The folder is the user's
// own, since whoever can write there decides what runs. NODE_DISABLE_COMPILE_CACHE=1 switches it off.
enableCompileCache(join(process.env.XDG_CACHE_HOME || join(homeFolder(), ".cache"), "toolgate"));

const host = processHost({
  version: VERSION,
  async loadApiKeys(stateFolder) {
    const { openApiKeys } = await import("./identity/key-administration.ts");
    return openApiKeys(stateFolder);
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
