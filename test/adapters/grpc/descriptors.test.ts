import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { clone, create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { expect, onTestFinished, test } from "vitest";
import {
  type ServerReflectionRequest,
  ServerReflectionRequestSchema,
  type ServerReflectionResponse,
  ServerReflectionResponseSchema,
} from "../../../gen/grpc/reflection/v1/reflection_pb.ts";
import { call } from "../http/fixture.ts";
import {
  DESCRIPTORS,
  descriptorsOf,
  openTool,
  order,
  type RawCall,
  type RawServer,
  refuse,
  reply,
  startRaw,
} from "./fixture.ts";

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "toolgate-grpc-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  return folder;
}

const answering = (): Promise<RawServer> => startRaw((got) => reply(got, [order()]));

test("a descriptor file that is missing or broken takes the tool out of service until it is there", async () => {
  const folder = await temporaryFolder();
  await using server = await answering();
  let changes = 0;
  let nowMs = 0;
  const clock = {
    now: () => Date.now(),
    monotonicMs: () => nowMs,
    after: () => ({ [Symbol.dispose]: () => undefined }),
  };
  const changed = (): void => void (changes += 1);
  await using tool = await openTool({ folder, grpc: { address: server.address }, clock, changed });
  const missing = tool.availability();
  expect(missing).toMatchObject({ state: "unavailable", reason: `there is no file ${join(folder, "orders.binpb")}` });
  expect(missing.mend).toContain("grpc.descriptor");
  const { error } = await call(tool);
  expect(error).toMatchObject({ reason: "UPSTREAM_UNREACHABLE", effect: "none", retryable: false });
  await writeFile(join(folder, "new"), "no descriptor");
  await rename(join(folder, "new"), join(folder, "orders.binpb"));
  nowMs += 2_000;
  expect((await call(tool)).error?.message).toMatch(/orders\.binpb cannot be used: it holds no/);
  expect(tool.availability().mend).toContain("buf build");
  await writeFile(
    join(folder, "new"),
    descriptorsOf(() => true),
  );
  await rename(join(folder, "new"), join(folder, "orders.binpb"));
  nowMs += 2_000;
  expect((await call(tool)).result?.value).toMatchObject({ orderId: "A1" });
  expect(tool.availability()).toEqual({ state: "ready", reason: "" });
  await Promise.resolve();
  expect(changes).toBeGreaterThanOrEqual(2);
});

test.for([
  [
    { method: "shop.v1.OrderServce/GetOrder" },
    'there is no service "shop.v1.OrderServce"; did you mean "shop.v1.OrderService"?',
  ],
  [{ method: "shop.v1.OrderService/GetOrders" }, 'has no method "GetOrders"; did you mean "GetOrder"'],
  [{ method: "shop.v1.OrderService/UploadOrders" }, "takes a stream of requests, which no tool call is"],
] as const)("a method that cannot be called is said so: %j", async ([grpc, words]) => {
  await using tool = await openTool({ grpc: { address: "http://127.0.0.1:1", ...grpc } });
  expect(tool.availability()).toMatchObject({ state: "unavailable", reason: expect.stringContaining(words) });
  expect((await call(tool)).error?.message).toContain(words);
  expect(await tool.probe(new AbortController().signal)).toMatchObject({
    ok: false,
    message: expect.stringContaining(words),
  });
});

test("a parameter that is no field of the request is said so, with the nearest one", async () => {
  const params = { ordr_id: { type: "string" } };
  await using tool = await openTool({ grpc: { address: "http://127.0.0.1:1" }, params });
  expect(tool.availability().reason).toBe(
    'parameter `ordr_id` is no field of shop.v1.GetOrderRequest; did you mean "order_id", "orderId"?',
  );
});

test("a set without its imports keeps the services from serving that need them, and only those", async () => {
  const folder = await temporaryFolder();
  const alone = create(FileDescriptorProtoSchema, {
    name: "alone.proto",
    package: "shop.v1",
    syntax: "proto3",
    messageType: [{ name: "Nothing" }],
    service: [
      { name: "Alone", method: [{ name: "Do", inputType: ".shop.v1.Nothing", outputType: ".shop.v1.Nothing" }] },
    ],
  });
  const set = descriptorsOf((name) => name === "orders.proto");
  await writeFile(
    join(folder, "orders.binpb"),
    Buffer.concat([set, field1(toBinary(FileDescriptorProtoSchema, alone))]),
  );
  await using server = await startRaw((got) => reply(got, [Buffer.alloc(0)]));
  await using broken = await openTool({ folder, grpc: { address: server.address } });
  expect(broken.availability().reason).toBe(
    'file "orders.proto" imports "google/protobuf/timestamp.proto", which is not there',
  );
  await using sound = await openTool({
    folder,
    params: {},
    grpc: { address: server.address, method: "shop.v1.Alone/Do" },
  });
  expect((await call(sound)).result?.value).toEqual({});
});

/** Bytes as the field 1 of a message. */
function field1(bytes: Uint8Array): Buffer {
  const length: number[] = [];
  for (let rest = bytes.length; rest > 0; rest >>= 7) length.push((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
  return Buffer.concat([Buffer.from([0x0a, ...length]), bytes]);
}

/** Answers reflection, by default with one file at a time; other methods with an order. */
function reflecting(
  options: { readonly scope?: string; readonly asked?: string[]; readonly files?: typeof DESCRIPTORS.file } = {},
) {
  const { scope = "grpc.reflection.v1", asked = [], files = DESCRIPTORS.file } = options;
  return (got: RawCall): void => {
    const path = got.headers[":path"] ?? "";
    if (!path.includes("ServerReflection")) reply(got, [order()]);
    else if (path !== `/${scope}.ServerReflection/ServerReflectionInfo`) refuse(got, { "grpc-status": "12" });
    else
      reply(
        got,
        requestsIn(got.request).map((request) => answerTo(request, asked, files)),
      );
  };
}

function answerTo(
  { messageRequest }: ServerReflectionRequest,
  asked: string[],
  files: typeof DESCRIPTORS.file,
): Uint8Array {
  const { case: kind, value } = messageRequest;
  asked.push(`${kind} ${JSON.stringify(value)}`);
  const wanted = kind === "fileContainingSymbol" && value === "shop.v1.OrderService" ? "orders.proto" : value;
  const file = files.find(({ name }) => name === wanted);
  const messageResponse: Partial<ServerReflectionResponse>["messageResponse"] =
    file === undefined
      ? {
          case: "errorResponse",
          value: { $typeName: "grpc.reflection.v1.ErrorResponse", errorCode: 5, errorMessage: "not found" },
        }
      : {
          case: "fileDescriptorResponse",
          value: {
            $typeName: "grpc.reflection.v1.FileDescriptorResponse",
            fileDescriptorProto: [toBinary(FileDescriptorProtoSchema, file)],
          },
        };
  return toBinary(ServerReflectionResponseSchema, create(ServerReflectionResponseSchema, { messageResponse }));
}

/** The first message has no frame any more. */
function requestsIn(body: Buffer): ServerReflectionRequest[] {
  const requests: ServerReflectionRequest[] = [];
  let rest = body;
  // The length of the first one is what stands before the next frame, or all there is.
  while (rest.length > 0) {
    const length = 2 + (rest[1] ?? 0);
    requests.push(fromBinary(ServerReflectionRequestSchema, rest.subarray(0, length)));
    rest = rest.subarray(length + 5);
  }
  return requests;
}

test.for(["grpc.reflection.v1", "grpc.reflection.v1alpha"])(
  "`grpc.reflection` asks the server for the messages, with all that they import: %s",
  async (scope) => {
    const asked: string[] = [];
    await using server = await startRaw(reflecting({ scope, asked }));
    await using tool = await openTool({
      grpc: { address: server.address, reflection: true, metadata: { "x-tenant": "acme" } },
    });
    expect((await call(tool, { order_id: "A1" }, { validateOnly: true })).result).toEqual({
      content: [],
      effect: "none",
    });
    expect(server.calls).toHaveLength(0);
    expect((await call(tool, { order_id: "A1" })).result?.value).toMatchObject({ orderId: "A1" });
    expect((await call(tool, { order_id: "A1" })).result?.value).toMatchObject({ orderId: "A1" });
    expect(asked).toEqual([
      'fileContainingSymbol "shop.v1.OrderService"',
      'fileByFilename "google/protobuf/timestamp.proto"',
      'fileByFilename "google/protobuf/wrappers.proto"',
    ]);
    expect(server.calls.every(({ headers }) => headers["x-tenant"] === "acme")).toBe(true);
    expect(await tool.probe(new AbortController().signal)).toMatchObject({ ok: true, mend: "" });
  },
);

test("a server is asked again over a new connection, since it may be another one", async () => {
  const asked: string[] = [];
  await using server = await startRaw(reflecting({ asked }));
  await using tool = await openTool({ grpc: { address: server.address, reflection: true } });
  await call(tool);
  server.sessions[0]?.goaway(0);
  await call(tool);
  await call(tool);
  expect(asked.filter((question) => question.startsWith("fileContaining"))).toHaveLength(2);
});

test("fields have their JSON names where the server's reflection leaves them out", async () => {
  const bare = DESCRIPTORS.file.map((file) => {
    const copy = clone(FileDescriptorProtoSchema, file);
    for (const { field } of copy.messageType) for (const each of field) each.jsonName = "";
    return copy;
  });
  await using server = await startRaw(reflecting({ files: bare }));
  await using tool = await openTool({ grpc: { address: server.address, reflection: true } });
  expect((await call(tool, { order_id: "A1" })).result?.value).toMatchObject({ orderId: "A1", totalCents: "0" });
  expect((await call(tool, { orderId: "A1" })).result?.value).toMatchObject({ orderId: "A1" });
});

test("a server without reflection, or without the service, is said so", async () => {
  await using none = await startRaw((got) => refuse(got, { "grpc-status": "12" }));
  await using tool = await openTool({ grpc: { address: none.address, reflection: true } });
  const { error } = await call(tool);
  expect(error).toMatchObject({ reason: "UPSTREAM_UNREACHABLE", effect: "none" });
  expect(error?.message).toContain("does not tell what it offers by reflection (UNIMPLEMENTED)");
  expect(tool.availability()).toMatchObject({ state: "unavailable", mend: expect.stringContaining("grpc.descriptor") });
  await using other = await startRaw(reflecting());
  await using wrong = await openTool({
    grpc: { address: other.address, reflection: true, method: "shop.v1.Other/Get" },
  });
  expect((await call(wrong)).error?.message).toContain("the server's reflection does not know it: not found");
});
