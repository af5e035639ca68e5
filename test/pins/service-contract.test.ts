import { execFile } from "node:child_process";
import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { DescService } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { Health } from "../../gen/health/v1/health_pb.ts";
import { OperatorService } from "../../gen/toolgate/v1/operator_service_pb.ts";
import { ResultService } from "../../gen/toolgate/v1/result_service_pb.ts";
import { ToolGatewayService } from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";

function contract(service: DescService): string[] {
  return service.methods.map((method) => {
    const stream = method.methodKind === "server_streaming" ? "stream " : "";
    const get = method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS ? " by GET too" : "";
    return `/${service.typeName}/${method.name}(${method.input.name}) → ${stream}${method.output.name}${get}`;
  });
}

/** Output of `buf breaking` of a folder of .proto files against the committed baseline; empty when nothing breaks. */
async function breaking(folder: string): Promise<string> {
  const buf = resolve("node_modules/@bufbuild/buf/bin/buf");
  return new Promise((done) => {
    const args = [buf, "breaking", folder, "--against", resolve("proto/baseline.binpb")];
    execFile(process.execPath, args, (error, stdout, stderr) => done(error === null ? "" : stdout + stderr));
  });
}

test("the services have these methods", () => {
  expect([
    ...contract(ToolGatewayService),
    ...contract(OperatorService),
    ...contract(ResultService),
    ...contract(Health),
  ]).toEqual([
    "/toolgate.v1.ToolGatewayService/Register(RegisterRequest) → RegisterResponse",
    "/toolgate.v1.ToolGatewayService/Unregister(UnregisterRequest) → UnregisterResponse",
    "/toolgate.v1.ToolGatewayService/Get(GetRequest) → GetResponse by GET too",
    "/toolgate.v1.ToolGatewayService/List(ListRequest) → ListResponse by GET too",
    "/toolgate.v1.ToolGatewayService/Watch(WatchRequest) → stream WatchResponse",
    "/toolgate.v1.ToolGatewayService/Call(CallRequest) → CallResponse",
    "/toolgate.v1.ToolGatewayService/CallStream(CallStreamRequest) → stream CallStreamResponse",
    "/toolgate.v1.OperatorService/Explain(ExplainRequest) → ExplainResponse by GET too",
    "/toolgate.v1.OperatorService/Diagnose(DiagnoseRequest) → DiagnoseResponse",
    "/toolgate.v1.ResultService/Read(ReadRequest) → ReadResponse by GET too",
    "/grpc.health.v1.Health/Check(HealthCheckRequest) → HealthCheckResponse",
    "/grpc.health.v1.Health/Watch(HealthCheckRequest) → stream HealthCheckResponse",
    "/grpc.health.v1.Health/List(HealthListRequest) → HealthListResponse",
  ]);
});

test("the contract breaks nothing of the baseline", { timeout: 180_000 }, async () => {
  expect(await breaking("proto")).toBe("");
});

test("the baseline notices a field that changed its number", { timeout: 180_000 }, async () => {
  const folder = await mkdtemp(join(tmpdir(), "toolgate-breaking-"));
  try {
    await cp("proto", folder, { recursive: true });
    const file = join(folder, "toolgate/v1/tool_gateway_service.proto");
    const text = await readFile(file, "utf8");
    await writeFile(file, text.replace("string next_page_token = 2;", "string next_page_token = 22;"));
    expect(await breaking(folder)).toContain('Previously present field "2" with name "next_page_token"');
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
