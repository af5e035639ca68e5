import { hash } from "node:crypto";
import { accessKey } from "../core/access.ts";
import type { AdapterSettings } from "../core/adapter.ts";
import { egressKey } from "../core/egress.ts";
import { canonicalJson, type JsonObject, type JsonValue } from "../core/json.ts";
import type { ResultRules } from "../core/shaper.ts";
import type { DeclaredTool, ToolHints } from "../core/tool.ts";
import type { Declaration, DeclarationDefaults } from "./declaration.ts";

/** SHA-256 (hex) over what a model and a typed client depend on: name, description, schemas and hints. */
export function contractDigestOf(tool: DeclaredTool): string {
  const contract: JsonObject = {
    name: tool.name,
    description: tool.description,
    inputSchema: tool.inputSchema,
    outputSchema: tool.outputSchema ?? null,
    hints: hintsOf({ ...tool.claimedHints, ...tool.hints }),
  };
  return hash("sha256", canonicalJson(contract), "hex");
}

/** An unknown hint is left out, so that `undefined` and absent give one digest. */
function hintsOf(hints: ToolHints): JsonObject {
  return Object.fromEntries(Object.entries(hints).filter(([, value]) => value !== undefined));
}

/** What a declaration's digest depends on besides the declaration. */
export interface DigestParts {
  /** The adapter's keys as declared. */
  readonly own: JsonObject;
  readonly defaults: DeclarationDefaults;
  /** All of its policies that has an effect. */
  readonly facts: JsonObject;
}

/** SHA-256 (hex) over all that has an effect: comments, layout and the order of keys have none. */
export function declarationDigestOf(
  declared: Pick<Declaration, "tool" | "contractDigest" | "rules" | "policy" | "stepConfigs" | "toolsets" | "exposed">,
  { own, defaults, facts }: DigestParts,
): string {
  const { tool, contractDigest, rules, policy, stepConfigs, toolsets, exposed } = declared;
  const { title, kind, labels, delivery, enabled } = tool;
  const { maxResponseBytes, pool = {}, egress } = defaults;
  const text = canonicalJson({
    contractDigest,
    tool: { title, kind, labels, delivery, enabled },
    own,
    rules: { successField: null, dataField: null, ...declaredOnly(rules) },
    policy: { totalMs: policy.totalMs, timeouts: { ...policy.timeouts }, effectClass: policy.effectClass },
    ...(policy.access === undefined ? {} : { access: accessKey(policy.access) }),
    ...(toolsets === undefined ? {} : { toolsets, exposed }),
    policies: facts,
    steps: Object.fromEntries(stepConfigs),
    maxResponseBytes,
    pool: { ...pool },
    ...(egress === undefined ? {} : { egress: egressKey(egress) }),
  });
  return hash("sha256", text, "hex");
}

/** SHA-256 (hex) over all that the connection to a server depends on: what is said of its tools has no part in it. */
export function upstreamDigestOf(parts: {
  /** The adapter's keys as declared. */
  readonly own: JsonObject;
  /** The server's. */
  readonly name: string;
  readonly settings: AdapterSettings;
  /** What is masked in all that the server says. */
  readonly masked: readonly string[];
}): string {
  const { own, name, settings, masked } = parts;
  const { timeouts, maxResponseBytes, format, pool, reach, egress } = settings;
  return hash(
    "sha256",
    canonicalJson({
      own,
      name,
      timeouts: { ...timeouts },
      maxResponseBytes,
      format,
      pool: { ...pool },
      reach,
      egress: egressKey(egress),
      masked,
    }),
    "hex",
  );
}

/** The rules that are there. */
function declaredOnly({ fields, ...rules }: ResultRules): JsonObject {
  const { keep, drop, rename } = fields ?? {};
  const all = { ...rules, keep, drop, rename };
  return Object.fromEntries(
    Object.entries(all).filter((entry): entry is [string, JsonValue] => entry[1] !== undefined),
  );
}
