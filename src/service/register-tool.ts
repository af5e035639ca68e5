import { hash } from "node:crypto";
import { type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import {
  type RegisterRequest,
  RegisterRequestSchema,
  type RegisterResponseSchema,
  type UnregisterRequest,
  type UnregisterResponseSchema,
} from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import type { RegisterOutcome, ToolRegistry } from "../core/registry.ts";
import { raceSignal } from "../core/signal.ts";
import { decodeEtag, decodeRegister } from "../wire/registry-codec.ts";
import { requiredName } from "../wire/request-error.ts";
import type { ToolCodec } from "../wire/tool-codec.ts";
import { requireRole } from "./authenticate.ts";
import type { RequestIds } from "./request-ids.ts";
import type { Rpc } from "./rpc.ts";

/** What registering takes. */
export interface RegisterDeps {
  readonly registry: ToolRegistry;
  readonly tools: ToolCodec;
  readonly requestIds: RequestIds<RegisterOutcome>;
  /** Of which a caller needs one to register and unregister tools. */
  readonly registrationRoles: readonly string[];
  /** Aborts when the gateway has stopped. */
  readonly lifetime: AbortSignal;
}

/**
 * Registers what a declaration makes. With a request id it runs to its end even where the caller leaves, so that a
 * second attempt finds its answer.
 *
 * @throws GatewayError PERMISSION_DENIED, REQUEST_INVALID, REQUEST_ID_REUSED, and what the registry throws.
 */
export async function registerTool(
  request: RegisterRequest,
  rpc: Rpc,
  { registry, tools, requestIds, lifetime, registrationRoles }: RegisterDeps,
): Promise<MessageInitShape<typeof RegisterResponseSchema>> {
  requireRole(rpc.principal, registrationRoles, "register tools");
  const options = decodeRegister(request);
  const { requestId } = request;
  const signal = requestId === "" ? rpc.signal : lifetime;
  const digest = requestId === "" ? "" : hash("sha256", toBinary(RegisterRequestSchema, request));
  const registered = requestIds.answer({ principalId: rpc.principal.id, requestId, digest }, () =>
    registry.register(options, rpc.principal, signal),
  );
  const outcome = await raceSignal(registered, rpc.signal);
  return {
    tools: outcome.tools.map((view) => tools.message(view, false)),
    revision: BigInt(outcome.revision),
    warnings: [...outcome.warnings],
  };
}

/** Removes a registered tool. @throws GatewayError PERMISSION_DENIED, REQUEST_INVALID, and what the registry throws. */
export async function unregisterTool(
  request: UnregisterRequest,
  rpc: Rpc,
  { registry, registrationRoles }: Pick<RegisterDeps, "registry" | "registrationRoles">,
): Promise<MessageInitShape<typeof UnregisterResponseSchema>> {
  requireRole(rpc.principal, registrationRoles, "unregister tools");
  const options = {
    name: requiredName("name", request.name),
    etag: decodeEtag(request.etag),
    allowMissing: request.allowMissing,
  };
  const revision = await raceSignal(registry.unregister(options, rpc.principal, rpc.signal), rpc.signal);
  return { revision: BigInt(revision) };
}
