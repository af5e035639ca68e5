import type { MessageInitShape } from "@bufbuild/protobuf";
import type { DiagnoseResponseSchema, OperatorService } from "../../gen/toolgate/v1/operator_service_pb.ts";
import type { Clock } from "../core/clock.ts";
import { GatewayError } from "../core/errors.ts";
import type { AuditTrail } from "../core/observation.ts";
import { OPERATOR_ROLE, type Principal } from "../core/principal.ts";
import type { CheckResult, ToolRegistry } from "../core/registry.ts";
import { raceSignal } from "../core/signal.ts";
import { toDuration } from "../wire/durations.ts";
import { encodeCheck, encodeProblems, encodeToolExplanation } from "../wire/registry-codec.ts";
import { requiredName } from "../wire/request-error.ts";
import { requireRole } from "./authenticate.ts";
import { rpcOf } from "./connect-context.ts";
import type { Rpc } from "./rpc.ts";
import type { Service } from "./service.ts";

/** Longest examination. */
const DIAGNOSE_MS = 20_000;

/** What the service takes. */
export interface OperatorDeps {
  readonly registry: ToolRegistry;
  readonly clock: Clock;
  /** Of the gateway. */
  readonly version: string;
  /** Milliseconds since the epoch. */
  readonly startedAtMs: number;
  /** What the gateway finds of itself, besides its tools. Default: nothing. */
  readonly selfChecks?: () => readonly CheckResult[];
  /** Takes down who was refused. */
  readonly audit?: AuditTrail | undefined;
}

/** toolgate.v1.OperatorService. */
export function createOperatorService(deps: OperatorDeps): Service<typeof OperatorService> {
  return {
    explain: (request, { values }) => {
      const { principal } = rpcOf(values);
      requireOperator(principal, "see a tool's policy", deps.audit);
      return encodeToolExplanation(deps.registry.explain(requiredName("name", request.name), principal));
    },
    diagnose: (_request, { values }) => diagnose(rpcOf(values), deps),
  };
}

/** @throws GatewayError PERMISSION_DENIED. */
function requireOperator(principal: Principal, action: string, audit: AuditTrail | undefined): void {
  try {
    requireRole(principal, [OPERATOR_ROLE], action);
  } catch (error) {
    audit?.note({ action: "operator-access", outcome: "refused", actor: principal.id, facts: { to: action } });
    throw error;
  }
}

async function diagnose(rpc: Rpc, deps: OperatorDeps): Promise<MessageInitShape<typeof DiagnoseResponseSchema>> {
  const { registry, clock, version, startedAtMs } = deps;
  requireOperator(rpc.principal, "examine the gateway", deps.audit);
  using _limit = clock.after(DIAGNOSE_MS, () =>
    rpc.abort(
      new GatewayError("CALL_DEADLINE_EXCEEDED", `the examination took longer than ${DIAGNOSE_MS / 1000} s`, {
        metadata: { limit: "gateway", deadline_ms: String(DIAGNOSE_MS) },
      }),
    ),
  );
  const checks = await raceSignal(registry.diagnose(rpc.signal), rpc.signal);
  return {
    checks: [...checks, ...(deps.selfChecks?.() ?? [])].map(encodeCheck),
    version,
    runtime: `Node.js ${process.version}`,
    uptime: toDuration(Math.max(0, clock.now() - startedAtMs)),
    problems: encodeProblems(registry.list(rpc.principal).problems),
  };
}
