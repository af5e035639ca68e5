import { Code } from "@connectrpc/connect";
import { expect, test } from "vitest";
import { CheckStatus } from "../../gen/toolgate/v1/operator_service_pb.ts";
import { createFakeClock } from "../core/fake-clock.ts";
import { failureOf } from "./clients.ts";
import { grpcClients, serve } from "./serve.ts";

test("Explain gives the policy in force with where each value came from", async () => {
  await using served = await serve();
  const { operator } = grpcClients(served.url);
  expect(await operator.explain({ name: "echo" })).toMatchObject({
    name: "echo",
    etag: "etag-echo",
    values: [{ key: "timeout.read", value: "10s", origin: "file:echo.yaml:12" }],
    steps: ["audit", "validate-arguments", "deadline"],
  });
  expect((await failureOf(operator.explain({ name: "nothing" }))).code).toBe(Code.NotFound);
  expect((await failureOf(operator.explain({}))).fields).toEqual(["name"]);
});

test("Diagnose gives checks, problems, version, runtime and uptime", async () => {
  const clock = createFakeClock();
  await using served = await serve({ clock, startedAtMs: clock.now() - 90_000 });
  served.registry.diagnosis = async () => [
    { subject: "secret KEY", status: "failed", message: "not set", mend: "set it" },
    { subject: "folder", status: "warning", message: "empty", mend: "add a file" },
  ];
  served.registry.setProblems([
    { source: "file:a.yaml", line: 1, column: 1, message: "bad", lastGoodServing: false, note: false },
  ]);
  expect(await grpcClients(served.url).operator.diagnose({})).toMatchObject({
    checks: [
      { subject: "secret KEY", status: CheckStatus.FAILED, message: "not set", mend: "set it" },
      { subject: "folder", status: CheckStatus.WARNING },
    ],
    version: "1.2.3",
    runtime: expect.stringMatching(/^Node\.js v\d+/),
    uptime: { seconds: 90n },
    problems: [{ source: "file:a.yaml" }],
  });
});

test("an examination that does not end is ended after 20 s", async () => {
  const clock = createFakeClock();
  await using served = await serve({ clock });
  const aborted = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  served.registry.diagnosis = (signal) => {
    signal.addEventListener("abort", () => aborted.resolve());
    begun.resolve();
    return new Promise(() => undefined);
  };
  const failure = failureOf(grpcClients(served.url).operator.diagnose({}));
  await begun.promise;
  await clock.advance(20_000);
  expect(await failure).toMatchObject({
    code: Code.DeadlineExceeded,
    message: "the examination took longer than 20 s",
  });
  await aborted.promise;
});
