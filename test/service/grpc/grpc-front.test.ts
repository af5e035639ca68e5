import { once } from "node:events";
import { createServer } from "node:http2";
import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { Health, HealthCheckResponse_ServingStatus as Status } from "../../../gen/health/v1/health_pb.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { silentLogger } from "../../../src/core/logger.ts";
import { authenticateNobody } from "../../../src/service/authenticate.ts";
import { DEFAULT_CONNECTION_LIMITS } from "../../../src/service/connection-limits.ts";
import { GrpcFront } from "../../../src/service/grpc/grpc-front.ts";
import { LiveRpcs } from "../../../src/service/rpc.ts";
import { UnreadAnswers } from "../../../src/service/unread-answers.ts";
import { envelope, grpcHeaders, rawSession } from "../raw.ts";

test("a handler that ignores its signal is left as soon as nobody reads its messages", async () => {
  const live = new LiveRpcs(systemClock, DEFAULT_CONNECTION_LIMITS);
  const front = new GrpcFront({
    authenticate: authenticateNobody,
    logger: silentLogger,
    rpcs: { clock: systemClock, live, resetGraceMs: 1_000 },
    requestBytes: 1_000,
    unread: new UnreadAnswers(1_000_000),
    shown: new WeakMap(),
  });
  const left = Promise.withResolvers<void>();
  front.service(Health, {
    check: () => ({}),
    list: () => ({}),
    watch: async function* () {
      try {
        while (true) {
          yield { status: Status.SERVING };
          await turn();
        }
      } finally {
        left.resolve();
      }
    },
  });
  const server = createServer().on("stream", (stream, headers) => expect(front.take(stream, headers)).toBe(true));
  await once(server.listen(0, "127.0.0.1"), "listening");
  const address = server.address();
  const port = address !== null && typeof address === "object" ? address.port : 0;
  using session = rawSession(`http://127.0.0.1:${port}`);
  const stream = session.request(grpcHeaders(`/${Health.typeName}/Watch`));
  stream.on("error", () => undefined).end(envelope(new Uint8Array()));
  await once(stream, "data");
  stream.close(8);
  await left.promise;
  await live.idle();
  live[Symbol.dispose]();
  server.close();
});
