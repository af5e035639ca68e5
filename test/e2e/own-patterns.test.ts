import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Writable } from "node:stream";
import { ConnectError } from "@connectrpc/connect";
import { expect, onTestFinished, test } from "vitest";
import { parseGatewayConfig } from "../../src/config/gateway-config.ts";
import { createGateway } from "../../src/gateway.ts";
import { createPinoLogger } from "../../src/observability/pino-logger.ts";
import { createSecrets } from "../../src/secrets/secrets.ts";
import { temporaryFolder } from "./effects-gateway.ts";
import { createGatewayClient, retryUntil } from "./gateway-client.ts";
import { startHttpServers } from "./http-servers.ts";

/** What a rule is to mask: one of gateway.yaml, one of a tool's own. */
const [CASE_NUMBER, PROJECT] = ["CASE-12345", "PRJ-67890"];

/** A program that says both in its error and its exit. */
const LOUD = `echo "${CASE_NUMBER} ${PROJECT}" >&2; exit 3`;

test("patterns of one's own hold in results, errors, the log and what servers say of their tools [K-D01]", {
  timeout: 60_000,
}, async () => {
  await using servers = await startHttpServers();
  servers.tools.set("desk", [{ name: "find", description: `Finds ${CASE_NUMBER} of ${PROJECT}` }]);
  const folder = await temporaryFolder();
  const redact = { patterns: ["PRJ-\\d+"] };
  const loud = { description: "says what nobody may read", type: "script", result: { redact } };
  const files = {
    "loud.json": { ...loud, name: "loud", command: "/bin/sh", args: ["-c", LOUD] },
    "lost.json": { ...loud, name: "lost", command: `/nowhere/${CASE_NUMBER}/${PROJECT}` },
    "desk.json": {
      name: "desk",
      type: "mcp",
      mcp: { url: servers.url("desk"), protocol: "legacy" },
      result: { redact },
    },
  };
  await mkdir(join(folder.path, "tools"));
  for (const [name, keys] of Object.entries(files)) {
    await writeFile(join(folder.path, "tools", name), JSON.stringify(keys));
  }
  const settings = { listen: "127.0.0.1:0", defaults: { result: { redact: { patterns: ["CASE-\\d+"] } } } };
  const parsed = parseGatewayConfig(JSON.stringify(settings), { file: "gateway.yaml", folder: folder.path });
  if (!parsed.ok) throw new Error("configuration");
  const secrets = createSecrets({});
  let log = "";
  const destination = new Writable({
    write(chunk, _encoding, done) {
      log += String(chunk);
      done();
    },
  });
  const logger = createPinoLogger({ level: "debug", destination, redactor: secrets.redactor });
  const gateway = await createGateway({ config: parsed.config, secrets, logger });
  onTestFinished(async () => {
    await gateway.stop();
    await folder[Symbol.asyncDispose]();
  });
  using client = createGatewayClient(Number(new URL(gateway.url).port));
  await retryUntil(
    () => client.service.list({}),
    ({ tools }) => tools.some(({ name }) => name === "desk/find"),
    30_000,
  );

  const { tool } = await client.service.get({ name: "desk/find" });
  expect(tool?.description).toBe("Finds *** of ***");
  const failed = await client.call("loud");
  expect(failed.result?.failure?.message).toContain("*** ***");
  const error: unknown = await client.call("lost").catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(ConnectError);
  expect(String(error)).toContain("***");
  logger.info(`the log of ${CASE_NUMBER}`, { field: CASE_NUMBER });
  await expect.poll(() => log, { timeout: 20_000 }).toContain("the log of ***");
  const all = [
    JSON.stringify(failed, (_, value: unknown) => (typeof value === "bigint" ? "" : value)),
    String(error),
    log,
  ];
  for (const text of all) {
    expect(text).not.toContain(CASE_NUMBER);
    expect(text).not.toContain(PROJECT);
  }
});
