import { createServer as createHttp1Server } from "node:http";
import { createServer as createHttp2Server } from "node:http2";
import { setTimeout } from "node:timers/promises";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { ToolGatewayService } from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import { echo, echoPiece, FIRST_PAUSE_MS, wantsOnePiece } from "../echo.ts";
import { listenAnywhere, reportReady } from "./ready.ts";

// The baseline: the same service by connect-node as it comes, with handlers that do nothing.
const handler = connectNodeAdapter({
  routes: (router) => {
    router.service(ToolGatewayService, {
      call: (request) => echo(request),
      async *callStream(request, { signal }) {
        for (let sequence = 0; !signal.aborted; sequence++) {
          yield echoPiece(sequence);
          if (!wantsOnePiece(request)) continue;
          await setTimeout(FIRST_PAUSE_MS);
          return;
        }
      },
    });
  },
});

reportReady({
  h1: await listenAnywhere(createHttp1Server(handler)),
  h2: await listenAnywhere(createHttp2Server(handler)),
});
