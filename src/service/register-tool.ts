import { hash } from "node:crypto";
import { type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import {
  type RegisterRequest,
  RegisterRequestSchema,
  type RegisterResponseSchema,
  type UnregisterRequest,
  type UnregisterResponseSchema,
} from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import type { AuditTrail } from "../core/observation.ts";
import type { RegisterOutcome, ToolRegistry } from "../core/registry.ts";
import { raceSignal } from "../core/signal.ts";
import { decodeEtag, decodeRegister } from "../wire/registry-codec.ts";
import { requiredName } from "../wire/request-error.ts";
import type { ToolCodec } from "../wire/tool-codec.ts";
import { audited } from "./audited.ts";
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
  /** Takes down who registered what, and who was refused. */
  readonly audit?: AuditTrail | undefined;
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
  deps: RegisterDeps,
): Promise<MessageInitShape<typeof RegisterResponseSchema>> {
  const { validateOnly, declaration } = request;
  const outcome = await audited(
    deps.audit,
    {
      action: "tool-register",
      actor: rpc.principal.id,
      facts: { validateOnly, declarationDigest: hash("sha256", declaration.value ?? "") },
      told: ({ tools, revision }) => ({ tools: tools.map(({ definition }) => definition.name), revision }),
    },
    () => register(request, rpc, deps),
  );
  return {
    tools: outcome.tools.map((view) => deps.tools.message(view, "declared")),
    revision: BigInt(outcome.revision),
    warnings: [...outcome.warnings],
  };
}

function register(
  request: RegisterRequest,
  rpc: Rpc,
  { registry, requestIds, lifetime, registrationRoles }: RegisterDeps,
): Promise<RegisterOutcome> {
  requireRole(rpc.principal, registrationRoles, "register tools");
  const options = decodeRegister(request);
  const { requestId } = request;
  const signal = requestId === "" ? rpc.signal : lifetime;
  const digest = requestId === "" ? "" : hash("sha256", toBinary(RegisterRequestSchema, request));
  const registered = requestIds.answer({ principalId: rpc.principal.id, requestId, digest }, () =>
    registry.register(options, rpc.principal, signal),
  );
  return raceSignal(registered, rpc.signal);
}

/** Removes a registered tool. @throws GatewayError PERMISSION_DENIED, REQUEST_INVALID, and what the registry throws. */
export async function unregisterTool(
  request: UnregisterRequest,
  rpc: Rpc,
  { registry, registrationRoles, audit }: Pick<RegisterDeps, "registry" | "registrationRoles" | "audit">,
): Promise<MessageInitShape<typeof UnregisterResponseSchema>> {
  const act = { action: "tool-unregister", actor: rpc.principal.id, facts: { tool: request.name } };
  const revision = await audited(audit, act, () => unregister(request, rpc, { registry, registrationRoles }));
  return { revision: BigInt(revision) };
}

function unregister(
  request: UnregisterRequest,
  rpc: Rpc,
  { registry, registrationRoles }: Pick<RegisterDeps, "registry" | "registrationRoles">,
): Promise<number> {
  requireRole(rpc.principal, registrationRoles, "unregister tools");
  const options = {
    name: requiredName("name", request.name),
    etag: decodeEtag(request.etag),
    allowMissing: request.allowMissing,
  };
  return raceSignal(registry.unregister(options, rpc.principal, rpc.signal), rpc.signal);
}
