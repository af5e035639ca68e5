import { GatewayError } from "../core/errors.ts";
import type { AuditTrail } from "../core/observation.ts";
import type { Principal } from "../core/principal.ts";
import type { Authenticate } from "./authenticate.ts";
import type { Answer } from "./http-routes.ts";
import type { NodeRequest } from "./listener.ts";
import { connectionOf, webHeaders } from "./node-request.ts";
import { peerOf, type ShownCertificates } from "./peer.ts";

/** What the route works with. */
export interface MetricsRouteOptions {
  readonly metrics: {
    /** Of which who reads needs one. */
    readonly roles: readonly string[];
    text(): Promise<string>;
  };
  readonly authenticate: Authenticate;
  readonly shown: ShownCertificates;
  readonly audit: AuditTrail | undefined;
}

/** Source: https://prometheus.io/docs/instrumenting/exposition_formats/. */
const PROMETHEUS_TEXT = "text/plain; version=0.0.4; charset=utf-8";

/** Answers `/metrics` to who may read them: tools have names, and names are not for everybody. Never rejects. */
export async function answerMetrics(request: NodeRequest, options: MetricsRouteOptions): Promise<Answer> {
  const { metrics, authenticate, shown, audit } = options;
  let principal: Principal;
  try {
    principal = await authenticate(webHeaders(request), peerOf(connectionOf(request), shown));
  } catch (error) {
    const { status, message } = GatewayError.from(error);
    return { status: status === "UNAUTHENTICATED" ? 401 : 503, text: message };
  }
  if (!metrics.roles.some((role) => principal.roles.includes(role))) {
    audit?.note({ action: "metrics-read", outcome: "refused", actor: principal.id });
    return { status: 403, text: "reading metrics takes a role of `metrics.roles`" };
  }
  try {
    return { status: 200, text: await metrics.text(), type: PROMETHEUS_TEXT };
  } catch {
    // What a gauge throws is a fault of the gateway's, and no reason to end a connection.
    return { status: 500, text: "metrics cannot be read" };
  }
}
