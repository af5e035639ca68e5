import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { create, toBinary } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { ListRequestSchema } from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import { openGateway, temporaryFolder } from "./effects-gateway.ts";
import { START_TIMEOUT_MS } from "./spawned.ts";

const TOOLS = 100;

/** With a schema that has to be compiled. Its address answers nobody. */
function declare(name: string): string {
  return `name: ${name}
description: 按编号查询订单 one of many tools
type: http
endpoint: http://127.0.0.1:1/o
params:
  - { name: id, type: string, required: true, pattern: "^SO[0-9]{8}$" }
  - { name: limit, type: integer, default: 10, minimum: 1, maximum: 100 }
`;
}

test("listing, registering and checking without a change does not grow the heap [A-D08]", {
  timeout: 2 * START_TIMEOUT_MS,
}, async () => {
  setFlagsFromString("--expose-gc");
  const collectGarbage = runInNewContext("gc") as () => void;
  await using folder = await temporaryFolder();
  const names = Array.from({ length: TOOLS }, (_, i) => `t${i}`);
  await using gateway = await openGateway({
    folder: folder.path,
    settings: { tools: { folder: "tools" }, state: { folder: "state" } },
    files: Object.fromEntries(names.slice(1).map((name) => [`tools/${name}.yaml`, declare(name)])),
  });
  const list = toBinary(ListRequestSchema, create(ListRequestSchema, { pageSize: TOOLS }));
  const round = async (i: number): Promise<void> => {
    // After a registration all are listed anew, which takes its time.
    const value = declare("t0");
    if (i % 5 === 0) await gateway.client.service.register({ declaration: { case: "declarationYaml", value } });
    const name = names[i % TOOLS] ?? "t0";
    const args = { case: "argumentsJson" as const, value: '{"id":"SO20241001"}' };
    await gateway.client.service.call({ invocation: { name, arguments: args, validateOnly: true } });
    // Not by the client, which would spend ten times as long on the answer as the gateway.
    const answer = await fetch(`http://127.0.0.1:${gateway.port}/toolgate.v1.ToolGatewayService/List`, {
      method: "POST",
      headers: { "content-type": "application/proto", "accept-encoding": "identity" },
      body: list,
    });
    expect((await answer.arrayBuffer()).byteLength).toBeGreaterThan(TOOLS * 100);
  };
  const heapAfter = async (rounds: number): Promise<number> => {
    for (let i = 0; i < rounds; i++) await round(i);
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  // After as many rounds as there are tools, each has been checked once.
  const early = await heapAfter(TOOLS);
  expect(await heapAfter(400)).toBeLessThan(early * 1.2);
});
