import { afterAll, beforeAll, expect, test } from "vitest";
import { createToolgateClient, type ToolgateClient } from "../../clients/typescript/src/index.ts";
import { createNodeTransport } from "../../clients/typescript/src/node.ts";
import { type Answer, type ContentServers, startContentServers } from "./content-servers.ts";
import { type OpenGateway, openGateway, temporaryFolder } from "./effects-gateway.ts";
import { retryUntil } from "./gateway-client.ts";

const MIB = 1024 * 1024;
const PNG = Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), Buffer.alloc(2_000, 7)]);
const WAV = Buffer.concat([Buffer.from("RIFF\x10\x20\0\0WAVEfmt ", "latin1"), Buffer.alloc(2_000, 1)]);
/** Two frames of 128 kbit/s at 44,100 Hz, without a tag. */
const MP3 = Buffer.concat([1, 2].map(() => Buffer.concat([Buffer.from([0xff, 0xfb, 0x90, 0])], 417)));
const LARGE = Buffer.concat([PNG, Buffer.alloc(4 * MIB, 9)]);

const image = (mimeType: string, body: Buffer): Answer => ({
  mimeType,
  body,
  content: [
    { type: "text", text: "here it is" },
    { type: "image", mimeType, data: body.toString("base64") },
  ],
});
const audio = (mimeType: string, body: Buffer): Answer => ({
  mimeType,
  body,
  content: [{ type: "audio", mimeType, data: body.toString("base64") }],
});

const ANSWERS: Readonly<Record<string, Answer>> = {
  png: image("image/png", PNG),
  wav: audio("audio/wav", WAV),
  mp3: audio("audio/mp3", MP3),
  lying: image("image/jpeg", PNG),
  unnamed: audio("application/octet-stream", MP3),
  large: image("image/png", LARGE),
};

/** The same answers of HTTP tools, and of the tools of a server. */
const WAYS = [
  { way: "HTTP", server: "" },
  { way: "MCP", server: "content/" },
] as const;

const running = new AsyncDisposableStack();
let keeping: OpenGateway;
let plain: OpenGateway;

async function open(servers: ContentServers, settings: object): Promise<OpenGateway> {
  const folder = running.use(await temporaryFolder());
  const http = Object.keys(ANSWERS).map((name): [string, string] => {
    const tool = { name, description: `gives ${name}`, type: "http", endpoint: `${servers.origin}/${name}` };
    return [`tools/${name}.json`, JSON.stringify(tool)];
  });
  const mcp = { name: "content", type: "mcp", mcp: { url: `${servers.origin}/mcp`, protocol: "legacy" } };
  const files = { ...Object.fromEntries(http), "tools/content.json": JSON.stringify(mcp) };
  const gateway = running.use(await openGateway({ folder: folder.path, files, settings: { ...settings } }));
  await retryUntil(
    () => gateway.client.service.list({ pageSize: 100 }),
    ({ tools }) => tools.some(({ name }) => name === "content/large"),
    30_000,
  );
  return gateway;
}

beforeAll(async () => {
  const servers = running.use(await startContentServers(ANSWERS));
  keeping = await open(servers, { results: { keep: true } });
  plain = await open(servers, {});
}, 90_000);

afterAll(() => running.disposeAsync());

function clientOf(gateway: OpenGateway): ToolgateClient {
  return createToolgateClient(createNodeTransport({ baseUrl: gateway.url }));
}

/** The parts of a result, bytes by their media type, and its notices. */
async function given(gateway: OpenGateway, tool: string) {
  const { result } = await clientOf(gateway).call(tool);
  const parts = (result?.content ?? []).map(({ part }) => part);
  return {
    blobs: parts.flatMap((part) => (part.case === "blob" ? [part.value] : [])),
    links: parts.flatMap((part) => (part.case === "link" ? [part.value] : [])),
    texts: parts.flatMap((part) => (part.case === "text" ? [part.value] : [])),
    notices: (result?.notices ?? []).map(({ reason }) => reason),
    failure: result?.failure?.reason,
    structured: result?.structuredJson,
  };
}

test.for(WAYS)("images and audio are bytes with their media type, over $way", async ({ server }) => {
  for (const [tool, mimeType, body] of [
    ["png", "image/png", PNG],
    ["wav", "audio/wav", WAV],
    ["mp3", "audio/mp3", MP3],
  ] as const) {
    const { blobs, notices, structured, texts } = await given(plain, server + tool);
    expect(blobs.map((blob) => [blob.mimeType, Buffer.compare(blob.data, body)])).toEqual([[mimeType, 0]]);
    expect([notices, structured]).toEqual([[], undefined]);
    expect(texts.join("")).not.toContain(body.toString("base64").slice(0, 20));
  }
});

test.for(WAYS)(
  "what bytes are counts, not what was declared, and the result says so, over $way",
  async ({ server }) => {
    const lying = await given(plain, `${server}lying`);
    expect(lying.blobs.map(({ mimeType }) => mimeType)).toEqual(["image/png"]);
    expect(lying.notices).toEqual(["MEDIA_TYPE_MISMATCH"]);
    const unnamed = await given(plain, `${server}unnamed`);
    expect(unnamed.blobs.map(({ mimeType }) => mimeType)).toEqual(["audio/mpeg"]);
    expect(unnamed.notices).toEqual([]);
  },
);

test.for(WAYS)(
  "bytes that are too large become a link to what is kept, read on by ranges, over $way",
  async ({ server }) => {
    const { blobs, links, failure } = await given(keeping, `${server}large`);
    expect([blobs, failure]).toEqual([[], undefined]);
    expect(links).toMatchObject([{ mimeType: "image/png", sizeBytes: BigInt(LARGE.length) }]);
    const handle = links[0]?.uri ?? "";
    const client = clientOf(keeping);
    const head = await client.readResult(handle, { query: { bytes: { offset: 0, length: 8 } } });
    expect(Buffer.from(head.data ?? []).toString("latin1")).toBe("\x89PNG\r\n\x1a\n");
    expect(head).toMatchObject({ mimeType: "image/png", complete: true });
    const tail = await client.readResult(handle, { query: { bytes: { offset: LARGE.length - 5, length: 100 } } });
    expect([...(tail.data ?? [])]).toEqual([9, 9, 9, 9, 9]);
    expect(tail.cursor).toBeUndefined();
  },
);

test.for(WAYS)("where nothing is kept, bytes that are too large are a failure, over $way", async ({ server }) => {
  const { blobs, links, failure } = await given(plain, `${server}large`);
  expect([blobs, links, failure]).toEqual([[], [], "RESULT_TOO_LONG"]);
});
