import { hash } from "node:crypto";
import { ownObject, ownText } from "../config/own-values.ts";
import type { UpstreamTool } from "../core/adapter.ts";
import { canonicalJson, isJsonObject, type JsonObject, type JsonValue, ownValue } from "../core/json.ts";
import type { EffectClass } from "../core/step.ts";
import { oneLine } from "../core/text.ts";
import type { DeclaredTool, ToolHints } from "../core/tool.ts";
import { resolveAccess } from "./access.ts";
import type { AdaptedTool, Declaration, RemoteTool } from "./declaration.ts";
import { readHints } from "./declared-tool.ts";
import { contractDigestOf, declarationDigestOf } from "./digests.ts";
import { explainRemote } from "./explain-remote.ts";
import { foreignNameProblem, foreignText, MAX_DESCRIPTION, MAX_TITLE } from "./foreign-text.ts";
import { withoutKeyField } from "./key-field.ts";
import { overrideParams } from "./param-overrides.ts";
import { hedgeIssues } from "./policies.ts";
import type { Override, ServerParts } from "./server-parts.ts";
import type { SettledOverride } from "./settled-override.ts";

/** A step on the way from an offered tool to one of the gateway's, or why it ends there. */
type Outcome<T> = { readonly ok: true; readonly value: T } | Refused;

/** `offeredSo`: for what the server says, and not for what the declaration does. */
interface Refused {
  readonly ok: false;
  readonly reason: string;
  readonly offeredSo: boolean;
}

/** A tool as its server describes it, fit to be shown. */
interface ForeignTool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly inputSchema: JsonObject;
  readonly outputSchema: JsonObject | undefined;
  readonly hints: ToolHints;
  /** SHA-256 (hex) over name, description and schemas. */
  readonly digest: string;
  readonly notes: readonly string[];
}

/** Makes a declared tool of one that a server offers. Never throws: what cannot be served is held back, and only that. */
export function adaptOffered(
  offered: UpstreamTool,
  overrides: readonly Override[],
  settled: SettledOverride,
  parts: ServerParts,
): AdaptedTool {
  const [first] = settled.issues;
  if (first !== undefined) return heldBack(`its overrides contradict each other: ${first.message}`);
  const foreign = readForeign(offered, parts);
  if (!foreign.ok) return heldBack(foreign.reason, foreign.offeredSo);
  const pinned = ownText(settled.keys, "pin");
  if (pinned !== "" && pinned !== foreign.value.digest) {
    return heldBack(
      `what the server says of it has changed: \`pin\` is ${pinned}, it has ${foreign.value.digest} now; look at it, then pin that`,
    );
  }
  const shown = toolOf(foreign.value, overrides, settled, parts);
  if (!shown.ok) return heldBack(shown.reason, shown.offeredSo);
  const declaration = declarationOf(shown.value, overrides, settled, parts);
  const hedged = overrides.some(({ keys }) => ownValue(keys, "hedge") !== undefined);
  const idle = hedged ? hedgeIssues(settled.policies, declaration.policy.effectClass, declaration.tool) : [];
  return { kind: "tool", declaration, notes: [...foreign.value.notes, ...idle.map(({ message }) => message)] };
}

/** Reads what the server says, trusting none of it. */
function readForeign(offered: UpstreamTool, { schemaProblem }: ServerParts): Outcome<ForeignTool> {
  const nameProblem = foreignNameProblem(offered.name);
  if (nameProblem !== undefined) return refused(nameProblem, true);
  const notes: string[] = [];
  const title = foreignText(offered.title, MAX_TITLE);
  const description = foreignText(offered.description, MAX_DESCRIPTION);
  if (description.shortened) {
    notes.push(`its description has more than ${MAX_DESCRIPTION} characters and was shortened`);
  }
  const input: unknown = offered.inputSchema;
  if (!isJsonObject(input)) return refused("its input schema is no mapping", true);
  const type = ownValue(input, "type") ?? "object";
  if (type !== "object") return refused("its input schema is not of type object, which arguments always are", true);
  let outputSchema = isJsonObject(offered.outputSchema) ? offered.outputSchema : undefined;
  const why = outputSchema === undefined ? undefined : schemaProblem(outputSchema);
  if (why !== undefined) {
    notes.push(`its output schema cannot be used and was left out: ${why}`);
    outputSchema = undefined;
  }
  const said: JsonObject = {
    name: offered.name,
    description: typeof offered.description === "string" ? offered.description : "",
    inputSchema: input,
    outputSchema: isJsonObject(offered.outputSchema) ? offered.outputSchema : null,
  };
  return {
    ok: true,
    value: {
      name: offered.name,
      title: title.text,
      description: description.text,
      inputSchema: ownValue(input, "type") === undefined ? { type, ...input } : input,
      outputSchema,
      hints: offered.hints,
      digest: hash("sha256", canonicalJson(said), "hex"),
      notes,
    },
  };
}

/** The tool as callers see it, with the way to the server. */
interface ShownTool {
  readonly tool: DeclaredTool;
  readonly remote: RemoteTool;
  readonly stepConfigs: Declaration["stepConfigs"];
}

function toolOf(
  foreign: ForeignTool,
  overrides: readonly Override[],
  { keys, delivery }: SettledOverride,
  parts: ServerParts,
): Outcome<ShownTool> {
  const { tool: server, schemaProblem } = parts;
  const renamed = ownText(keys, "name");
  const name = `${server.name}/${renamed === "" ? foreign.name : renamed}`;
  const params = ownObject(keys, "params") ?? {};
  const overridden = overrideParams({
    tool: name,
    schema: foreign.inputSchema,
    params,
    mustExist: namedForIt(overrides, foreign.name),
  });
  if (!overridden.ok) return refused(overridden.reason);
  const field = ownText(keys, "idempotency_field");
  const schemas = withoutKeyField(overridden.schema, field === "" ? undefined : field);
  const why = schemas.issues[0]?.message ?? schemaProblem(schemas.callers);
  if (why !== undefined) return refused(`its input schema cannot be used: ${why}`, schemas.issues.length === 0);
  const title = ownText(keys, "title");
  const description = ownText(keys, "description");
  const labels = ownObject(keys, "labels") ?? {};
  const tool: DeclaredTool = {
    name,
    title: title === "" ? foreign.title : title,
    description: description === "" ? foreign.description : description,
    kind: server.kind,
    inputSchema: schemas.callers,
    outputSchema: foreign.outputSchema,
    ...hintsOf(foreign, keys, parts),
    labels: Object.fromEntries(Object.keys(labels).map((label) => [label, ownText(labels, label)])),
    delivery,
    enabled: server.enabled && ownValue(keys, "enabled") !== false,
  };
  const remote: RemoteTool = {
    server: server.name,
    name: foreign.name,
    visible: ownValue(keys, "visible") !== false,
    offeredDigest: foreign.digest,
    toServer: (args) => overridden.toServer(args),
  };
  return { ok: true, value: { tool, remote, stepConfigs: stepConfigsOf(keys, parts) } };
}

/** Parameters that an override of this very tool speaks of. */
function namedForIt(overrides: readonly Override[], name: string): ReadonlySet<string> {
  const own = overrides.findLast(({ names }) => names === name);
  return new Set(Object.keys((own === undefined ? undefined : ownObject(own.keys, "params")) ?? {}));
}

/** What the server says of effects decides only where the declaration vouches for it. */
function hintsOf(
  foreign: ForeignTool,
  keys: JsonObject,
  parts: ServerParts,
): Pick<DeclaredTool, "hints" | "claimedHints"> {
  const own = readHints(ownObject(keys, "hints") ?? {});
  if (ownValue(parts.keys, "trust_hints") === true) return { hints: { ...foreign.hints, ...own } };
  return { hints: own, claimedHints: foreign.hints };
}

function stepConfigsOf(keys: JsonObject, { stepKeys }: ServerParts): ReadonlyMap<string, JsonValue> {
  return new Map(
    stepKeys.flatMap((key): [string, JsonValue][] => {
      const value = ownValue(keys, key);
      return value === undefined ? [] : [[key, value]];
    }),
  );
}

function declarationOf(
  { tool, remote, stepConfigs }: ShownTool,
  overrides: readonly Override[],
  settled: SettledOverride,
  parts: ServerParts,
): Declaration & { readonly remote: RemoteTool } {
  const { adapter, defaults, document, source, upstream, upstreamDigest } = parts;
  const { timeouts, policies, ownAccess, result } = settled;
  const access = resolveAccess(settled.keys, defaults, { tool: tool.name, ofServer: !ownAccess });
  const { rules } = result;
  const effects = effectClass(tool, stepConfigs);
  const policy = { ...timeouts.policy, ...policies.policy, ...access.policy, effectClass: effects, upstream };
  const contractDigest = contractDigestOf(tool);
  const placed = { policy, ...access.placed };
  const declared = { source, tool, adapter, config: undefined, rules, ...placed, stepConfigs, contractDigest };
  const own: JsonObject = {
    upstreamDigest,
    offeredDigest: remote.offeredDigest,
    visible: remote.visible,
    params: ownObject(settled.keys, "params") ?? {},
    claimed: { ...tool.claimedHints },
  };
  return {
    ...declared,
    namePlace: document.position("/name"),
    digest: declarationDigestOf(declared, { own, defaults, facts: policies.facts }),
    notes: [],
    get explained() {
      return parts.explain((place) => explainRemote({ tool, remote, stepConfigs, settled, access, overrides }, place));
    },
    remote,
  };
}

function effectClass({ hints }: DeclaredTool, stepConfigs: Declaration["stepConfigs"]): EffectClass {
  if (hints.readOnly === true) return "read";
  if (stepConfigs.has("idempotency_field")) return "keyed";
  return hints.idempotent === true ? "idempotent" : "write";
}

function heldBack(reason: string, offeredSo = false): AdaptedTool {
  return { kind: "held-back", reason: oneLine(reason), offeredSo };
}

function refused(reason: string, offeredSo = false): Refused {
  return { ok: false, reason, offeredSo };
}
