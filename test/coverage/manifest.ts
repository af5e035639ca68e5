import type { Group } from "./behaviour.ts";
import {
  ARGUMENTS,
  FILES,
  RESILIENCE,
  SCRIPTS,
  SECRETS,
  SECURITY,
  SERVERS,
  TEMPLATES,
  UPSTREAMS,
  WIRE,
} from "./field-cases.ts";
import { GATEWAY, IN_PROCESS_TOOLS } from "./promises.ts";

/** Every promised behaviour, and every case from the field. */
export const MANIFEST: readonly Group[] = [
  { prefix: "S1-", title: "Promised: tools in the process", behaviours: IN_PROCESS_TOOLS },
  { prefix: "S2-", title: "Promised: the gateway", behaviours: GATEWAY },
  { prefix: "Y-D", title: "From the field: files of declarations", behaviours: FILES },
  { prefix: "T-D", title: "From the field: templates", behaviours: TEMPLATES },
  { prefix: "A-D", title: "From the field: arguments and results", behaviours: ARGUMENTS },
  { prefix: "U-D", title: "From the field: HTTP upstreams", behaviours: UPSTREAMS },
  { prefix: "S-D", title: "From the field: scripts", behaviours: SCRIPTS },
  { prefix: "M-D", title: "From the field: MCP servers", behaviours: SERVERS },
  { prefix: "R-D", title: "From the field: resilience", behaviours: RESILIENCE },
  { prefix: "G-D", title: "From the field: gRPC and Connect", behaviours: WIRE },
  { prefix: "K-D", title: "From the field: secrets", behaviours: SECRETS },
  { prefix: "X-D", title: "From the field: security", behaviours: SECURITY },
];
