import type { DescService } from "@bufbuild/protobuf";
import { ServerReflection } from "../../gen/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as ServerReflectionAlpha } from "../../gen/grpc/reflection/v1alpha/reflection_pb.ts";
import { Health } from "../../gen/health/v1/health_pb.ts";
import { OperatorService } from "../../gen/toolgate/v1/operator_service_pb.ts";
import { ResultService } from "../../gen/toolgate/v1/result_service_pb.ts";
import { ToolGatewayService } from "../../gen/toolgate/v1/tool_gateway_service_pb.ts";
import type { Logger } from "../core/logger.ts";
import type { CallWatch } from "../core/observation.ts";
import { OPERATOR_ROLE } from "../core/principal.ts";
import type { ResultReader } from "../core/results.ts";
import { providerSchema } from "../models/provider-schema.ts";
import { createToolCodec } from "../wire/tool-codec.ts";
import { createCallIds } from "./call-ids.ts";
import { createHealthService, type ServingState } from "./health.ts";
import type { KeptCalls } from "./kept-calls.ts";
import { createOperatorService, type OperatorDeps } from "./operator-service.ts";
import { createReflection } from "./reflection.ts";
import { RequestIds } from "./request-ids.ts";
import { createResultService } from "./result-service.ts";
import type { ServiceRouter } from "./service.ts";
import { createToolGatewayService } from "./tool-gateway-service.ts";
import { Turns } from "./turns.ts";

/** What the services take. */
export interface ServicesDeps extends OperatorDeps {
  readonly logger: Logger;
  readonly state: ServingState;
  /** Aborts when the gateway has stopped. */
  readonly lifetime: AbortSignal;
  readonly limits: { readonly deadlineMs: number };
  /** Of which a caller needs one to register tools. Default: the operator's. */
  readonly registrationRoles?: readonly string[];
  readonly reflection: boolean;
  readonly kept: KeptCalls;
  readonly watch?: CallWatch | undefined;
  /** Absent: no result is ever kept. */
  readonly results?: ResultReader | undefined;
}

/** Everything the gateway serves, on a router. */
export function registerServices(router: ServiceRouter, deps: ServicesDeps): void {
  const { registry, clock, logger, lifetime } = deps;
  const services: DescService[] = [ToolGatewayService, OperatorService, ResultService, Health];
  if (deps.reflection) services.push(ServerReflection, ServerReflectionAlpha);
  const toolGateway = createToolGatewayService({
    registry,
    clock,
    logger,
    lifetime,
    kept: deps.kept,
    maxDeadlineMs: deps.limits.deadlineMs,
    nextCallId: createCallIds(),
    tools: createToolCodec(providerSchema),
    registrationRoles: deps.registrationRoles ?? [OPERATOR_ROLE],
    requestIds: new RequestIds(clock),
    turns: new Turns(clock),
    watch: deps.watch,
    audit: deps.audit,
  });
  const names = services.map((service) => service.typeName);
  router.service(ToolGatewayService, toolGateway);
  router.service(OperatorService, createOperatorService(deps));
  router.service(ResultService, createResultService(deps.results));
  router.service(Health, createHealthService(deps.state, names));
  if (!deps.reflection) return;
  const reflection = createReflection(services);
  router.service(ServerReflection, reflection.v1);
  router.service(ServerReflectionAlpha, reflection.v1alpha);
}
