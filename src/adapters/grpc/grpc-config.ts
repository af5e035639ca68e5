import type { AdapterSettings } from "../../core/adapter.ts";
import type { JsonObject } from "../../core/json.ts";
import type { DeclaredTool } from "../../core/tool.ts";
import type { BodyTemplate } from "../shared/body-template.ts";
import type { EgressChoice } from "../shared/network/egress.ts";
import type { NamedValue } from "../shared/value-template.ts";
import type { TlsFiles } from "./tls-files.ts";

/** Where a gRPC server is, and how it is reached. */
export interface GrpcTarget {
  /** As it is shown: `http://127.0.0.1:50051`, `https://…` or `unix:/run/orders.sock`. */
  readonly address: string;
  /** For `:scheme` and `:authority`; of a Unix socket `http://localhost`. */
  readonly origin: string;
  /** Of a Unix socket. */
  readonly path: string | undefined;
  readonly tls: TlsFiles | undefined;
  readonly egress: EgressChoice;
}

/** Where the descriptors of a service come from. */
export type DescriptorPlace = { readonly kind: "file"; readonly path: string } | { readonly kind: "reflection" };

/** The name of a method. */
export interface MethodName {
  /** With its package. */
  readonly service: string;
  readonly method: string;
}

/** A gRPC tool, compiled: a call only fills it in. */
export interface GrpcConfig {
  readonly tool: DeclaredTool;
  readonly settings: AdapterSettings;
  readonly target: GrpcTarget;
  readonly method: MethodName;
  readonly descriptor: DescriptorPlace;
  /** The request message in JSON. Absent: the arguments are it. */
  readonly request: BodyTemplate | undefined;
  readonly metadata: readonly NamedValue[];
  /** Parameters whose schema allows null. */
  readonly keepsNull: ReadonlySet<string>;
  readonly readOnly: boolean;
  /** The block as it was declared, for explanations. */
  readonly declared: JsonObject;
}
