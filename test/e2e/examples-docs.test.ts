import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createGatewayClient, type GatewayClient } from "./gateway-client.ts";
import { startGateway } from "./gateway-process.ts";
import { REPOSITORY, START_TIMEOUT_MS } from "./spawned.ts";

interface Example {
  readonly heading: string;
  readonly text: string;
  /** Text of the refusal that the page promises. */
  readonly refusal: string | undefined;
}

const page = await readFile(join(REPOSITORY, "docs/declarations.md"), "utf8");
const examples = examplesOf(page);
const [whole, base, ...fragments] = examples;

const running = new AsyncDisposableStack();
let client: GatewayClient;

beforeAll(async () => {
  // Some examples lead to private addresses, which registrations may not name unless they are let.
  const config = gatewaySettings(page).replace(
    "registration: { ",
    "registration: { private_addresses: all, secrets: ['*'], ",
  );
  const gateway = running.use(await startGateway({ tools: {}, config }));
  client = running.use(createGatewayClient(gateway.port));
}, START_TIMEOUT_MS);

afterAll(async () => {
  await running.disposeAsync();
});

/** The YAML blocks of the page. A ```text block that follows a YAML block is its refusal. */
function examplesOf(markdown: string): Example[] {
  const found: Example[] = [];
  let heading = "";
  for (const [, title, language, text] of markdown.matchAll(/^## (.+)$|^```(\w+)\n([^]*?)^```$/gm)) {
    if (title !== undefined) heading = title;
    else if (language === "yaml") found.push({ heading, text: text ?? "", refusal: undefined });
    else if (language === "text" && text?.startsWith("tool.yaml:")) {
      const refused = found.pop();
      if (refused !== undefined)
        found.push({ ...refused, refusal: text.replace(/^tool\.yaml:\d+:\d+:? */, "").trim() });
    }
  }
  return found;
}

/** What the page shows of gateway.yaml, in ```text blocks that begin with its name. */
function gatewaySettings(markdown: string): string {
  return [...markdown.matchAll(/^```text\n# gateway\.yaml\n([^]*?)^```$/gm)].map(([, text = ""]) => text).join("");
}

/** Puts a fragment into the declaration that the page gives for it, key by key at top level; a script or server is whole. */
function within(declaration: string, fragment: string): string {
  if (/^type: (script|mcp|grpc)$/m.test(fragment)) return fragment;
  const keysOf = (text: string): Map<string, string> =>
    new Map(text.split(/^(?=\S)/m).map((block) => [block.split(":")[0] ?? "", block]));
  const merged = keysOf(declaration);
  for (const [key, block] of keysOf(fragment)) merged.set(key, block);
  return [...merged.values()].join("");
}

/** `taken`, or the words of the refusal. */
async function check(text: string): Promise<string> {
  return client.service.register({ declaration: { case: "declarationYaml", value: text }, validateOnly: true }).then(
    () => "taken",
    (error: unknown) => ConnectError.from(error).rawMessage,
  );
}

test("the page has its examples", () => {
  expect(whole?.text).toContain("secret_ref: ORDER_API_TOKEN");
  expect(fragments.length).toBeGreaterThan(12);
});

const titled = examples.map((example, i) => [`${i + 1}, ${example.heading}`, example] as const);

describe("what docs/declarations.md shows is taken", () => {
  test.each(titled.filter(([, { refusal }]) => refusal === undefined))("example %s", async (_, { text }) => {
    expect(await check(within(base?.text ?? "", text))).toBe("taken");
  });
});

describe("what docs/declarations.md calls refused is refused in those words", () => {
  test.each(titled.filter(([, { refusal }]) => refusal !== undefined))("example %s", async (_, { text, refusal }) => {
    expect(await check(within(base?.text ?? "", text))).toContain(refusal);
  });
});
