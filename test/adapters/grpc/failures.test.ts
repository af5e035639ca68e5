import { create, toBinary } from "@bufbuild/protobuf";
import { anyPack } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "../../../gen/google/rpc/error_details_pb.ts";
import { StatusSchema } from "../../../gen/google/rpc/status_pb.ts";
import type { Outcome } from "../http/fixture.ts";
import { call } from "../http/fixture.ts";
import { openTool, order, type RawCall, refuse, reply, startRaw, type ToolOptions } from "./fixture.ts";

async function outcomeOf(answer: (call: RawCall) => void, options: Partial<ToolOptions> = {}): Promise<Outcome> {
  await using server = await startRaw(answer);
  await using tool = await openTool({ ...options, grpc: { address: server.address } });
  return await call(tool);
}

test.for([
  ["1", "UPSTREAM_STATUS", { transient: false, retryable: false, upstreamFault: false }, "unknown"],
  ["2", "UPSTREAM_STATUS", { transient: false, retryable: false, upstreamFault: true }, "unknown"],
  ["3", "UPSTREAM_STATUS", { transient: false, retryable: false, upstreamFault: false }, "none"],
  ["5", "UPSTREAM_STATUS", { transient: false, retryable: false, upstreamFault: false }, "none"],
  ["7", "UPSTREAM_UNAUTHORIZED", { transient: false, retryable: false, upstreamFault: false }, "none"],
  ["8", "UPSTREAM_RATE_LIMITED", { transient: true, retryable: true, upstreamFault: false }, "none"],
  ["10", "UPSTREAM_STATUS", { transient: true, retryable: true, upstreamFault: false }, "none"],
  ["12", "UPSTREAM_STATUS", { transient: false, retryable: false, upstreamFault: false }, "none"],
  ["13", "UPSTREAM_STATUS", { transient: false, retryable: false, upstreamFault: true }, "unknown"],
  ["14", "UPSTREAM_STATUS", { transient: true, retryable: false, upstreamFault: true }, "unknown"],
  ["16", "UPSTREAM_UNAUTHORIZED", { transient: false, retryable: false, upstreamFault: false }, "none"],
  ["77", "UPSTREAM_STATUS", { transient: false, retryable: false, upstreamFault: true }, "unknown"],
] as const)("status %s is an answer: a failure that says what may be done", async ([code, reason, facts, effect]) => {
  for (const answer of [refuse, inTrailers]) {
    const { result } = await outcomeOf((got) => answer(got, { "grpc-status": code, "grpc-message": "why" }));
    expect(result).toMatchObject({ effect, upstreamCode: Number(code), failure: { reason, ...facts } });
    expect(result?.failure?.message).toMatch(/^get_order: .*: why$/);
  }
});

function inTrailers(got: RawCall, fields: Readonly<Record<string, string>>): void {
  reply(got, [], fields);
}

test("a call that changes nothing may be repeated after UNAVAILABLE", async () => {
  const { result } = await outcomeOf((got) => refuse(got, { "grpc-status": "14" }), { hints: { readOnly: true } });
  expect(result).toMatchObject({ effect: "none", failure: { retryable: true } });
});

test("the server's words arrive as they were written, in one line", async () => {
  const words = encodeURIComponent("订单失败\nline2 é 😀 100%");
  const { result } = await outcomeOf((got) => refuse(got, { "grpc-status": "9", "grpc-message": words }));
  expect(result?.failure?.message).toBe(
    "get_order: the upstream answered FAILED_PRECONDITION: 订单失败\\u000aline2 é 😀 100%",
  );
});

test("details of the well-known kinds say more: reason, fields, and when to come again", async () => {
  const status = create(StatusSchema, {
    code: 8,
    details: [
      anyPack(ErrorInfoSchema, create(ErrorInfoSchema, { reason: "QUOTA_SPENT", domain: "shop" })),
      anyPack(RetryInfoSchema, create(RetryInfoSchema, { retryDelay: { seconds: 2n, nanos: 500_000_000 } })),
      anyPack(
        BadRequestSchema,
        create(BadRequestSchema, { fieldViolations: [{ field: "order_id", description: "is too long" }] }),
      ),
    ],
  });
  const fields = {
    "grpc-status": "8",
    "grpc-message": "slow down",
    "grpc-status-details-bin": Buffer.from(toBinary(StatusSchema, status)).toString("base64"),
  };
  const { result } = await outcomeOf((got) => refuse(got, fields));
  expect(result?.failure).toMatchObject({ reason: "UPSTREAM_RATE_LIMITED", retryAfterMs: 2_500 });
  expect(result?.failure?.message).toContain("[QUOTA_SPENT]: slow down; order_id: is too long; retry after 3 s");
});

test("details that cannot be read do not hide the status", async () => {
  const fields = { "grpc-status": "5", "grpc-status-details-bin": "/////w==" };
  const { result } = await outcomeOf((got) => refuse(got, fields));
  expect(result?.failure?.message).toBe("get_order: the upstream answered NOT_FOUND");
});

test.for([
  [503, "text/html", "UPSTREAM_STATUS", "UNAVAILABLE", "unknown"],
  [502, "text/html", "UPSTREAM_STATUS", "UNAVAILABLE", "unknown"],
  [429, "text/plain", "UPSTREAM_STATUS", "UNAVAILABLE", "none"],
  [401, "text/html", "UPSTREAM_UNAUTHORIZED", "UNAUTHENTICATED", "none"],
  [403, "application/json", "UPSTREAM_UNAUTHORIZED", "PERMISSION_DENIED", "none"],
  [404, "text/html", "UPSTREAM_STATUS", "UNIMPLEMENTED", "none"],
  [200, "text/html", "UPSTREAM_STATUS", "UNKNOWN", "unknown"],
] as const)("HTTP %s of a proxy, %s, has the code that it stands for and none of its page [G-D07]", async (row) => {
  const [status, type, reason, name, effect] = row;
  const { result } = await outcomeOf(({ stream }) => {
    stream.respond({ ":status": status, "content-type": type });
    stream.end("<html><h1>Bad gateway</h1></html>");
  });
  expect(result).toMatchObject({ effect, upstreamCode: status, failure: { reason } });
  expect(result?.failure?.message).toContain(name);
  expect(result?.failure?.message).toContain(`HTTP ${status} of type ${type}`);
  expect(result?.failure?.message).not.toContain("<");
});

test("an answer without a status is lost, and says so [G-D07]", async () => {
  const cut = ({ stream }: RawCall): void => {
    stream.respond({ ":status": 200, "content-type": "application/grpc" });
    stream.end(Buffer.concat([Buffer.from([0, 0, 0, 0, 0])]));
  };
  const { error } = await outcomeOf(cut);
  expect(error).toMatchObject({
    reason: "UPSTREAM_ANSWER_LOST",
    effect: "unknown",
    metadata: { code: "STATUS_MISSING" },
  });
  const read = await outcomeOf(cut, { hints: { readOnly: true } });
  expect(read.error).toMatchObject({ reason: "UPSTREAM_UNREACHABLE", effect: "none" });
});

test("an answer that is OK and ends within a message is lost", async () => {
  const { error } = await outcomeOf(({ stream }) => {
    stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
    stream.once("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
    stream.end(Buffer.from([0, 0, 0, 0, 9, 1]));
  });
  expect(error?.reason).toBe("UPSTREAM_ANSWER_LOST");
});

test("a stream that the server resets is lost", async () => {
  const { error } = await outcomeOf(({ stream }) => stream.close(2));
  expect(error).toMatchObject({ reason: "UPSTREAM_ANSWER_LOST", effect: "unknown" });
  expect(error?.message).toMatch(/closed the connection before it answered/);
});

test("a server that refuses each stream is not reached, and nothing has happened", async () => {
  await using server = await startRaw(({ stream }) => stream.close(7));
  await using tool = await openTool({ grpc: { address: server.address } });
  const { error } = await call(tool);
  expect(error).toMatchObject({ reason: "UPSTREAM_UNREACHABLE", effect: "none" });
  expect(server.calls.length).toBeGreaterThan(1);
});

test("a stream that was refused once is sent again", async () => {
  let refused = false;
  const { result } = await outcomeOf((got) => {
    if (refused) reply(got, [order()]);
    else got.stream.close(7);
    refused = true;
  });
  expect(result?.value).toMatchObject({ orderId: "A1" });
});

test("each limit of time is named in the error [U-D11]", async () => {
  const slow = await outcomeOf(() => undefined, { timeouts: { readMs: 20 } });
  expect(slow.error).toMatchObject({ reason: "UPSTREAM_TIMEOUT", metadata: { limit: "read" }, effect: "unknown" });
  const stuck = await outcomeOf(
    ({ stream }) => stream.respond({ ":status": 200, "content-type": "application/grpc" }),
    { timeouts: { idleMs: 20 }, hints: { readOnly: true } },
  );
  expect(stuck.error).toMatchObject({ reason: "UPSTREAM_TIMEOUT", metadata: { limit: "idle" }, effect: "none" });
});
