import { expect, test } from "vitest";
import { shortRun } from "../fuzz/run.ts";
import { openSocket } from "../fuzz/socket.ts";
import { START_TIMEOUT_MS } from "./spawned.ts";

test("no bytes of HTTP/1, HTTP/2, gRPC or Connect end the gateway, hold up another client or are an error in the log", {
  timeout: 2 * START_TIMEOUT_MS,
}, async () => {
  await using target = await openSocket();
  await shortRun(target, { name: "socket", inputs: 100 });
  expect(target.outcomes.of("http2")).toBeGreaterThan(0);
});
