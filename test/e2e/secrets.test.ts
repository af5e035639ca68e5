import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { OperatorService } from "../../gen/toolgate/v1/operator_service_pb.ts";
import { type EchoUpstream, startEchoUpstream } from "./echo-upstream.ts";
import { type OpenGateway, openGateway, temporaryFolder } from "./effects-gateway.ts";
import { reasonOf } from "./gateway-client.ts";

const running = new AsyncDisposableStack();
let upstream: EchoUpstream;

beforeAll(async () => {
  upstream = running.use(await startEchoUpstream());
});

afterAll(async () => {
  await running.disposeAsync();
});

function tool(name: string, reference: string): string {
  return JSON.stringify({
    name,
    description: "用于检查密钥 shows where secrets come from",
    type: "http",
    endpoint: `http://127.0.0.1:${upstream.port}/echo/${name}`,
    auth: { header_name: "Authorization", secret_ref: reference, prefix: "Bearer" },
  });
}

async function examine(gateway: OpenGateway) {
  const transport = createConnectTransport({ baseUrl: gateway.url, httpVersion: "1.1" });
  return (await createClient(OperatorService, transport).diagnose({})).checks;
}

test("a rotated key file counts at the next calls without a reload, and is in no list [S2-47, S2-48, S2-49]", async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, "secrets.env");
  await writeFile(file, "ORDER_TOKEN=first-0123456789\n", { mode: 0o600 });
  const files = { "tools/orders.yaml": tool("orders", "ORDER_TOKEN") };
  const settings = { secrets: { key_file: "secrets.env" } };
  await using gateway = await openGateway({ folder: folder.path, files, settings });
  await gateway.client.call("orders");
  expect(upstream.last("orders")?.headers.authorization).toBe("Bearer first-0123456789");
  await writeFile(file, "ORDER_TOKEN=second-9876543210\n");
  await expect
    .poll(
      async () => {
        await gateway.client.call("orders");
        return upstream.last("orders")?.headers.authorization;
      },
      { timeout: 30_000 },
    )
    .toBe("Bearer second-9876543210");
  const { service } = gateway.client;
  const shown = JSON.stringify([await service.list({}), await service.get({ name: "orders" })], (_key, value) =>
    typeof value === "bigint" ? String(value) : (value as unknown),
  );
  expect(shown).not.toMatch(/0123456789|9876543210|ORDER_TOKEN/);
});

test("a missing secret is named with every tool that needs it, and comes without a new start [S2-48]", async () => {
  await using folder = await temporaryFolder();
  const files = {
    "tools/orders.yaml": tool("orders", "ORDER_TOKEN"),
    "tools/invoices.yaml": tool("invoices", "ORDER_TOKEN"),
    "tools/weather.yaml": tool("weather", "WEATHER_TOKEN"),
    "mounted/WEATHER_TOKEN": "sunny-0123456789\n",
    "mounted/EMPTY": "\n",
  };
  const settings = { secrets: { folder: "mounted" } };
  await using gateway = await openGateway({ folder: folder.path, files, settings });
  const missing = (await examine(gateway)).filter(({ subject }) => subject.startsWith("secret "));
  const place = join(folder.path, "mounted", "ORDER_TOKEN");
  expect(missing).toMatchObject([
    {
      subject: "secret ORDER_TOKEN",
      message: "is not set; needed by invoices, orders",
      mend: `Set the environment variable ORDER_TOKEN where the gateway is started, or write it to ${place}.`,
    },
  ]);
  const refused = await gateway.client.call("orders").catch((error: unknown) => error);
  expect(reasonOf(refused)).toBe("SECRET_MISSING");
  expect(String(refused)).toContain("orders: secret ORDER_TOKEN is not set; the upstream was not reached");
  await writeFile(place, "there-0123456789");
  await expect
    .poll(() => gateway.client.call("orders").then(() => "called", reasonOf), { timeout: 30_000 })
    .toBe("called");
  expect((await examine(gateway)).filter(({ subject }) => subject.startsWith("secret "))).toEqual([]);
});

test("a gateway does not start with a key file that others can read, and says the mend [S2-48]", async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, "secrets.env");
  await writeFile(file, "ORDER_TOKEN=first-0123456789\n");
  await chmod(file, 0o644);
  const opening = openGateway({ folder: folder.path, settings: { secrets: { key_file: "secrets.env" } } });
  await expect(opening).rejects.toThrow(`can be read or changed by others (mode 0644): chmod 600 ${file}`);
});

test("an examination asks issuers for their keys, and says what keeps them away", async () => {
  await using folder = await temporaryFolder();
  const issuer = (name: string, jwks: string) => ({ issuer: name, name, audiences: ["toolgate"], jwks_url: jwks });
  const jwt = [
    issuer("none", `http://127.0.0.1:${upstream.port}/echo`),
    issuer("failing", `http://127.0.0.1:${upstream.port}/failing`),
    issuer("away", "http://127.0.0.1:1/jwks"),
  ];
  const settings = { identity: { jwt, anonymous_roles: ["operator"] } };
  await using gateway = await openGateway({ folder: folder.path, settings });
  const found = (await examine(gateway)).filter(({ subject }) => subject.startsWith("jwks_url"));
  expect(found.map(({ message }) => message)).toEqual([
    "its answer is no list of keys",
    "answered HTTP 500",
    "cannot be fetched: tried 127.0.0.1:1 ECONNREFUSED",
  ]);
});
