import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { create, createFileRegistry, fromBinary, fromJson, toJson } from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { expect, test } from "vitest";
import { ServerReflection, type ServerReflectionRequest } from "../../gen/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as ServerReflectionAlpha } from "../../gen/grpc/reflection/v1alpha/reflection_pb.ts";
import { type Served, serve } from "./serve.ts";

type Ask = Exclude<ServerReflectionRequest["messageRequest"], { case: "fileContainingExtension" | undefined }>;

const BUF = "node_modules/.bin/buf";

async function buf(...args: string[]): Promise<string> {
  return (await promisify(execFile)(BUF, args)).stdout;
}

/** Answers to questions asked on one stream. */
async function ask({ url }: Served, ...questions: Ask[]) {
  const client = createClient(ServerReflection, createGrpcTransport({ baseUrl: url }));
  const requests = (async function* () {
    for (const messageRequest of questions) yield { host: "h", messageRequest };
  })();
  const answers = [];
  for await (const answer of client.serverReflectionInfo(requests)) answers.push(answer);
  return answers;
}

/** Names of the files in an answer. */
function fileNames(answer: Awaited<ReturnType<typeof ask>>[number] | undefined): string[] {
  if (answer?.messageResponse.case !== "fileDescriptorResponse") return [];
  return answer.messageResponse.value.fileDescriptorProto.map(
    (bytes) => fromBinary(FileDescriptorProtoSchema, bytes).name,
  );
}

test.each(["grpc-v1", "grpc-v1alpha"])(
  "buf curl calls a tool without a schema, by reflection (%s)",
  async (protocol) => {
    await using served = await serve();
    const output = await buf(
      "curl",
      "--http2-prior-knowledge",
      "--protocol=grpc",
      `--reflect-protocol=${protocol}`,
      "--data",
      '{"invocation":{"name":"echo","arguments_json":"{\\"a\\":1}"}}',
      `${served.url}/toolgate.v1.ToolGatewayService/Call`,
    );
    expect(JSON.parse(output)).toMatchObject({ result: { structuredJson: '{"a":1}' } });
  },
);

test("buf curl lists the services", async () => {
  await using served = await serve();
  const output = await buf("curl", "--http2-prior-knowledge", "--protocol=grpc", "--list-services", served.url);
  expect(output.trim().split("\n").toSorted()).toEqual([
    "grpc.health.v1.Health",
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
    "toolgate.v1.OperatorService",
    "toolgate.v1.ResultService",
    "toolgate.v1.ToolGatewayService",
  ]);
});

test("the files of a symbol come with what they need, and each only once on a stream", async () => {
  await using served = await serve();
  const [service, again, message] = await ask(
    served,
    { case: "fileContainingSymbol", value: "toolgate.v1.ToolGatewayService" },
    { case: "fileByFilename", value: "toolgate/v1/tool.proto" },
    { case: "fileContainingSymbol", value: "toolgate.v1.CheckResult" },
  );
  expect(fileNames(service)).toEqual([
    "toolgate/v1/tool_gateway_service.proto",
    "google/protobuf/duration.proto",
    "toolgate/v1/call.proto",
    "google/protobuf/struct.proto",
    "google/protobuf/timestamp.proto",
    "toolgate/v1/errors.proto",
    "toolgate/v1/tool.proto",
  ]);
  expect(fileNames(again)).toEqual(["toolgate/v1/tool.proto"]);
  expect(fileNames(message)).toEqual(["toolgate/v1/operator_service.proto"]);
  expect(service).toMatchObject({ validHost: "h", originalRequest: { host: "h" } });
});

test("what comes is enough to read and write messages", async () => {
  await using served = await serve();
  const [answer] = await ask(served, { case: "fileContainingSymbol", value: "toolgate.v1.ToolGatewayService.Call" });
  if (answer?.messageResponse.case !== "fileDescriptorResponse") return expect.unreachable();
  const files = new Map<string, FileDescriptorProto>();
  for (const bytes of answer.messageResponse.value.fileDescriptorProto) {
    const file = fromBinary(FileDescriptorProtoSchema, bytes);
    files.set(file.name, file);
  }
  const file: FileDescriptorProto[] = [];
  const dependenciesFirst = (name: string): void => {
    const found = files.get(name);
    if (found === undefined || file.includes(found)) return;
    found.dependency.forEach(dependenciesFirst);
    file.push(found);
  };
  for (const name of files.keys()) dependenciesFirst(name);
  const registry = createFileRegistry(create(FileDescriptorSetSchema, { file }));
  const input = registry.getService("toolgate.v1.ToolGatewayService")?.method["call"]?.input;
  if (input === undefined) return expect.unreachable();
  const json = { invocation: { name: "echo", timeout: "3s" } };
  expect(toJson(input, fromJson(input, json, { registry }), { registry })).toEqual(json);
});

test.each([
  "toolgate.v1.Tool",
  "toolgate.v1.Tool.name",
  "toolgate.v1.Invocation.arguments",
  "toolgate.v1.ToolKind",
  "toolgate.v1.TOOL_KIND_HTTP",
  "toolgate.v1.OperatorService.Explain",
  "google.protobuf.Duration",
])("the symbol %s is found", async (value) => {
  await using served = await serve();
  const [answer] = await ask(served, { case: "fileContainingSymbol", value });
  expect(fileNames(answer).length).toBeGreaterThan(0);
});

test("what is not known is answered as such, and the stream goes on", async () => {
  await using served = await serve();
  const answers = await ask(
    served,
    { case: "fileContainingSymbol", value: "toolgate.v1.Nothing" },
    { case: "fileByFilename", value: "nothing.proto" },
    { case: "allExtensionNumbersOfType", value: "toolgate.v1.Nothing" },
    { case: "allExtensionNumbersOfType", value: "toolgate.v1.Tool" },
    { case: "listServices", value: "" },
  );
  expect(answers.map(({ messageResponse }) => messageResponse.case)).toEqual([
    "errorResponse",
    "errorResponse",
    "errorResponse",
    "allExtensionNumbersResponse",
    "listServicesResponse",
  ]);
  expect(answers[0]?.messageResponse.value).toMatchObject({ errorCode: 5 });
});

test("reflection can be left out", async () => {
  await using served = await serve({ reflection: false });
  for (const service of [ServerReflection, ServerReflectionAlpha]) {
    expect((await fetch(`${served.url}/${service.typeName}/ServerReflectionInfo`, { method: "POST" })).status).toBe(
      404,
    );
  }
});
