import { type ContextValues, createContextKey, createContextValues } from "@connectrpc/connect";
import type { LiveRpc } from "./rpc.ts";

const key = createContextKey<LiveRpc | undefined>(undefined, { description: "the RPC" });

/** Values by which Connect carries an RPC to gate, interceptors and handlers. */
export function valuesOf(rpc: LiveRpc): ContextValues {
  return createContextValues().set(key, rpc);
}

/** The RPC that {@link valuesOf} put in. */
export function rpcOf(values: ContextValues): LiveRpc {
  const rpc = values.get(key);
  if (rpc === undefined) throw new TypeError("a call did not come through the front");
  return rpc;
}
