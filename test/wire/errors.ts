import { GatewayError } from "../../src/core/errors.ts";

/** The GatewayError that `work` throws. */
export function gatewayError(work: () => unknown): GatewayError {
  try {
    work();
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  throw new Error("nothing was thrown");
}
