import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { toJsonString } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { expect, onTestFinished, test } from "vitest";
import { ErrorInfoSchema } from "../../gen/google/rpc/error_details_pb.ts";
import { ToolErrorDetailSchema } from "../../gen/toolgate/v1/errors_pb.ts";
import {
  type CallResponse,
  CallResponseSchema,
  CallStreamResponseSchema,
  GetResponseSchema,
  ListResponseSchema,
  WatchResponseSchema,
} from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import { SchemaForm } from "../../gen/toolgate/v1/tool_pb.ts";
import { runInProcess } from "../cli/test-host.ts";
import { openGateway, temporaryFolder } from "./effects-gateway.ts";

const SECRET = "s3cr3t-Zq7Wk4Xv9Rb2Mn";
const REFERENCE = "BACKEND_TOKEN";
const HOST = "inner-billing.localhost";

/** How the upstream answers, by tool. */
const ANSWERS = ["good", "refused", "page", "json", "cut", "reset", "late", "redirect", "unreachable"] as const;

/** An upstream that puts its own host and the secret that it got wherever it can. */
async function startUpstream(): Promise<number> {
  const server = createServer((request, response) => {
    const { authorization = "" } = request.headers;
    const text = `${authorization} at the database`;
    const answer = request.url?.slice(1).split("?")[0];
    if (answer === "refused") response.writeHead(401, { "www-authenticate": `Bearer ${text}` }).end(text);
    else if (answer === "page") response.writeHead(502, { "content-type": "text/html" }).end(`<title>${text}</title>`);
    else if (answer === "json")
      response.writeHead(500, { "content-type": "application/json" }).end(`{"message": "${text}"}`);
    else if (answer === "cut")
      response.writeHead(200, { "content-length": "100" }).write(text, () => response.destroy());
    else if (answer === "reset") response.destroy();
    else if (answer === "redirect") response.writeHead(307, { location: `http://other.${HOST}/` }).end();
    else if (answer !== "late") response.setHeader("content-type", "application/json").end(`{"seen": "${text}"}`);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

test("a model is told neither the secret nor the host of a tool: by lists, calls that work, and calls that fail in every way [S2-51]", {
  timeout: 60_000,
}, async () => {
  const port = await startUpstream();
  await using folder = await temporaryFolder();
  const files = ANSWERS.map((name) => {
    const origin = `http://${HOST}:${name === "unreachable" ? 1 : port}`;
    const keys = {
      name,
      description: "查询账单 looks a bill up",
      type: "http",
      endpoint: `${origin}/${name}`,
      timeout: { total: name === "late" ? "500ms" : "20s" },
      auth: { header_name: "Authorization", prefix: "Bearer", secret_ref: REFERENCE },
    };
    return [`tools/${name}.yaml`, JSON.stringify(keys)] as const;
  });
  await using gateway = await openGateway({
    folder: folder.path,
    files: Object.fromEntries(files),
    env: { [REFERENCE]: SECRET },
  });
  const { service } = gateway.client;
  /** What a model may be given, and all that a caller gets. */
  const forModels: string[] = [];
  const all: string[] = [];
  const shown = (text: string): void => void forModels.push(text);
  shown(toJsonString(ListResponseSchema, { ...(await service.list({})), problems: [] }));
  const inProviderForm = { schemaForm: SchemaForm.PROVIDER };
  shown(toJsonString(ListResponseSchema, { ...(await service.list(inProviderForm)), problems: [] }));
  for await (const event of service.watch({})) {
    if (event.event.case !== "problems") shown(toJsonString(WatchResponseSchema, event));
    if (event.event.case === "synced") break;
  }
  const outcomes: string[] = [];
  const failed = (error: unknown): void => {
    const { rawMessage, details, metadata } = ConnectError.from(error);
    all.push(rawMessage, JSON.stringify(details), JSON.stringify([...metadata]));
    // The message is for people; what a model is told stands beside it.
    const [detail] = ConnectError.from(error).findDetails(ToolErrorDetailSchema);
    const [info] = ConnectError.from(error).findDetails(ErrorInfoSchema);
    shown(detail === undefined ? "none" : toJsonString(ToolErrorDetailSchema, detail));
    shown(info === undefined ? "none" : toJsonString(ErrorInfoSchema, info));
    outcomes.push(info?.reason ?? "none");
  };
  const ended = (response: CallResponse): void => {
    shown(toJsonString(CallResponseSchema, response));
    outcomes.push(response.result?.failure?.reason ?? "done");
  };
  for (const name of ANSWERS) {
    const invocation = { name };
    shown(toJsonString(GetResponseSchema, await service.get({ name })));
    shown(toJsonString(GetResponseSchema, await service.get({ name, ...inProviderForm })));
    await service.call({ invocation }).then(ended, failed);
    try {
      for await (const event of service.callStream({ invocation }))
        shown(toJsonString(CallStreamResponseSchema, event));
    } catch (error) {
      failed(error);
    }
  }
  const address = ["--address", `127.0.0.1:${gateway.port}`];
  for (const args of [
    ["tool", "list"],
    ["tool", "list", "--output", "json"],
    ["tool", "get", "good"],
    ["tool", "call", "refused"],
  ]) {
    const { stdout, stderr } = await runInProcess([...args, ...address]);
    shown(stdout);
    shown(stderr);
  }
  expect(new Set(outcomes)).toEqual(
    new Set(["done", "UPSTREAM_STATUS", "UPSTREAM_UNAUTHORIZED", "UPSTREAM_UNREACHABLE", "CALL_DEADLINE_EXCEEDED"]),
  );
  for (const word of [SECRET, SECRET.slice(0, 12), Buffer.from(SECRET).toString("base64")]) {
    expect([...forModels, ...all].join("\n")).not.toContain(word);
  }
  for (const word of [REFERENCE, HOST, `:${port}`, "127.0.0.1", "localhost"]) {
    expect(forModels.filter((text) => text.includes(word))).toEqual([]);
  }
});
