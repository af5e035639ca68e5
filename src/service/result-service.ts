import type { ResultService } from "../../gen/toolgate/v1/result_service_pb.ts";
import { type ResultReader, resultNotFound } from "../core/results.ts";
import { raceSignal } from "../core/signal.ts";
import { decodeRead, encodePage } from "../wire/read-codec.ts";
import { rpcOf } from "./connect-context.ts";
import type { Service } from "./service.ts";

/** toolgate.v1.ResultService. `reader`: undefined where no result is ever kept. */
export function createResultService(reader: ResultReader | undefined): Service<typeof ResultService> {
  return {
    read: async (message, { values }) => {
      const { principal, signal } = rpcOf(values);
      const request = decodeRead(message);
      if (reader === undefined) throw resultNotFound(request.handle);
      return encodePage(await raceSignal(reader.read(request, principal, signal), signal));
    },
  };
}
