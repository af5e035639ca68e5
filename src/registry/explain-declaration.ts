import { GROUP_SETTINGS, POLICY_SETTINGS } from "../config/policy-settings.ts";
import type { Setting } from "../config/setting.ts";
import type { SourceDocument } from "../config/source-document.ts";
import { yamlText } from "../config/yaml-text.ts";
import type { ExplainedSetting } from "../core/adapter.ts";
import { formatDuration } from "../core/durations.ts";
import type { JsonObject, JsonValue } from "../core/json.ts";
import { jsonPointer, ownValue } from "../core/json.ts";
import type { DeclaredTool } from "../core/tool.ts";
import type { ResolvedAccess } from "./access.ts";
import type { Declaration, DeclarationDefaults } from "./declaration.ts";
import type { ResolvedPolicies, ResolvedPolicy } from "./policies.ts";
import type { ResolvedTimeouts } from "./timeouts.ts";

/** One effective value with where it came from. */
type Explained = Declaration["explained"][number];

/** What is explained. */
export interface ExplainParts {
  readonly tool: DeclaredTool;
  readonly adapter: readonly ExplainedSetting[];
  readonly result: readonly ExplainedSetting[];
  readonly timeouts: ResolvedTimeouts;
  readonly policies: ResolvedPolicies;
  readonly access: ResolvedAccess;
  readonly stepConfigs: ReadonlyMap<string, JsonValue>;
}

/** What tells origins. */
export interface OriginParts {
  readonly document: SourceDocument;
  /** `file:order_status.yaml` or `api:NAME`. */
  readonly source: string;
  readonly defaults: DeclarationDefaults;
  /** Origins of the values of gateway.yaml, by dotted key. */
  readonly origins: ReadonlyMap<string, string>;
  /** JSON pointers of the mappings that a key may stand in, the one that counts first; default: the document. */
  readonly layers?: readonly string[];
  /** Origin of what stands in none of them. Default: `default`. */
  readonly otherwise?: string;
}

/** Every effective value of a declaration, with the line it came from, as `explain` shows them. */
export function explainDeclaration(parts: ExplainParts, place: OriginParts): Explained[] {
  const { tool, timeouts, policies } = parts;
  const own = (key: string, value: JsonValue): Explained => ({
    key,
    value: yamlText(value),
    origin: declaredOrigin(key, place),
  });
  const schemaKey = place.document.has("/params") ? "params" : "input_schema";
  return [
    own("name", tool.name),
    own("title", tool.title),
    own("description", tool.description),
    own("type", tool.kind),
    own("enabled", tool.enabled),
    own("delivery", tool.delivery),
    ...hintEntries(tool).map(([key, value]) => own(`hints.${key}`, value)),
    ...Object.entries(tool.labels).map(([key, value]) => own(`labels.${key}`, value)),
    { ...own(schemaKey, tool.inputSchema), key: "input_schema" },
    ...(tool.outputSchema === undefined ? [] : [own("output_schema", tool.outputSchema)]),
    ...parts.adapter.map(({ key, value }) => ({ key, value, origin: adapterOrigin(key, place) })),
    ...parts.result.map(({ key, value }) => ({ key, value, origin: resultOrigin(key, place) })),
    ...Object.entries(timeouts.resolved).map(([key, { ms, declaredBy, defaultedBy }]): Explained => {
      const origin = declaredBy === undefined ? gatewayOrigin(defaultedBy, place) : declaredOrigin(declaredBy, place);
      return { key: `timeout.${key}`, value: formatDuration(ms), origin };
    }),
    ...toolsetEntries(parts.access, place),
    ...accessEntries(parts.access, policies.group, place),
    ...(policies.group === undefined ? [] : [own("group", policies.group)]),
    ...[...policies.shared].map(([key, policy]): Explained => {
      const full = `groups.${policies.group ?? ""}.${key}`;
      return { key: full, value: policyText(GROUP_SETTINGS, key, policy), origin: gatewayOrigin(full, place) };
    }),
    ...[...policies.resolved].map(([key, policy]): Explained => {
      const value = policyText(POLICY_SETTINGS, key, policy);
      return { key, value, origin: policyOrigin(key, policy, policies.group, place) };
    }),
    ...[...parts.stepConfigs].map(([key, value]) => own(key, value)),
    {
      key: "limits.response_bytes",
      value: String(place.defaults.maxResponseBytes),
      origin: gatewayOrigin("limits.response_bytes", place),
    },
  ];
}

/** The toolsets it is in: what each is for, with the line that says so. */
function toolsetEntries({ placed: { toolsets = [], exposed } }: ResolvedAccess, place: OriginParts): Explained[] {
  const entries = toolsets.map((name): Explained => {
    const key = `toolsets.${name}`;
    const known = place.defaults.toolsets?.named(name);
    const origin = known === undefined ? declaredOrigin("toolset", place) : gatewayOrigin(key, place);
    return { key, value: yamlText(known?.description ?? ""), origin };
  });
  if (exposed !== false) return entries;
  return [
    { key: "expose", value: "toolsets: it is in none, so no caller sees it", origin: gatewayOrigin("expose", place) },
  ];
}

/** Who may see and call the tool, where anybody says. */
function accessEntries({ rules }: ResolvedAccess, group: string | undefined, place: OriginParts): Explained[] {
  return rules.flatMap(({ level, toolset, values }) =>
    [...values].map(([key, value]): Explained => {
      const full = `toolsets.${toolset ?? ""}.${key}`;
      if (level === "toolset") return { key: full, value: yamlText(value), origin: gatewayOrigin(full, place) };
      return { key, value: yamlText(value), origin: policyOrigin(key, { value, level }, group, place) };
    }),
  );
}

/** Hints that are known, under their names in a declaration. */
function hintEntries({ hints }: DeclaredTool): (readonly [key: string, value: boolean])[] {
  const entries: (readonly [string, boolean | undefined])[] = [
    ["read_only", hints.readOnly],
    ["destructive", hints.destructive],
    ["idempotent", hints.idempotent],
    ["open_world", hints.openWorld],
  ];
  return entries.flatMap(([key, value]) => (value === undefined ? [] : [[key, value] as const]));
}

/** The line a dotted key stands on; `default` where it stands nowhere. */
function declaredOrigin(key: string, place: OriginParts): string {
  return originOf(keySteps(key, place.document.value), place);
}

/** The line that what is under these keys stands on. */
export function originOf(steps: readonly string[], place: OriginParts): string {
  const { document, source, layers = [""], otherwise = "default" } = place;
  const below = jsonPointer(steps);
  const layer = layers.find((each) => document.has(each + below));
  if (layer === undefined) return otherwise;
  return source.startsWith("api:") ? "api" : `${source}:${document.position(layer + below).line}`;
}

/** What an adapter has a standard for may stand under `defaults` in gateway.yaml. */
function adapterOrigin(key: string, place: OriginParts): string {
  const declared = declaredOrigin(key, place);
  return declared === "default" ? gatewayOrigin(`defaults.${key}`, place) : declared;
}

/** No name below `result` is the author's, so each dot is a step. */
function resultOrigin(key: string, place: OriginParts): string {
  const declared = originOf(key.split("."), place);
  return declared === "default" ? gatewayOrigin(`defaults.${key}`, place) : declared;
}

function gatewayOrigin(key: string | undefined, { origins }: OriginParts): string {
  return (key === undefined ? undefined : origins.get(key)) ?? "default";
}

function policyText(settings: Readonly<Record<string, Setting>>, key: string, { value }: ResolvedPolicy): string {
  return settings[key]?.quantity === "duration" ? formatDuration(Number(value)) : yamlText(value);
}

function policyOrigin(key: string, { level }: ResolvedPolicy, group: string | undefined, place: OriginParts): string {
  if (level === "declaration") return declaredOrigin(key, place);
  if (level === "group") return gatewayOrigin(`groups.${group ?? ""}.${key}`, place);
  return level === "defaults" ? gatewayOrigin(`defaults.${key}`, place) : "default";
}

/** Names of labels, headers and queries may hold dots: what follows the first is one name. */
function keySteps(key: string, document: JsonObject): string[] {
  const dot = key.indexOf(".");
  return dot < 0 || ownValue(document, key) !== undefined ? [key] : [key.slice(0, dot), key.slice(dot + 1)];
}
