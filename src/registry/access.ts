import { ACCESS_SETTINGS, type AccessKey } from "../config/access-settings.ts";
import { settingKeys } from "../config/read-settings.ts";
import { accessOf } from "../config/toolset-settings.ts";
import type { Access } from "../core/access.ts";
import type { ConfigIssue } from "../core/adapter.ts";
import type { JsonObject, JsonValue } from "../core/json.ts";
import { isJsonArray, ownValue } from "../core/json.ts";
import { didYouMean } from "../core/nearest.ts";
import type { ToolPolicy } from "../core/step.ts";
import { type Toolset, Toolsets } from "../core/toolsets.ts";
import type { Declaration, DeclarationDefaults } from "./declaration.ts";
import type { PolicyLevel } from "./policies.ts";

/** A rule of who may see and call a tool, with where it was said. */
export interface AccessRule {
  /** `declaration`: the tool's own, or its server's. */
  readonly level: Exclude<PolicyLevel, "built-in"> | "toolset";
  /** Name of the toolset. */
  readonly toolset?: string;
  /** What it says, by key. */
  readonly values: ReadonlyMap<AccessKey, JsonValue>;
}

/** Who may see and call a tool, and the toolsets that have a part in it. */
export interface ResolvedAccess {
  readonly policy: Pick<ToolPolicy, "access">;
  /** The rules that count: a caller needs all of them to let it through. None: everybody may. */
  readonly rules: readonly AccessRule[];
  /** What a declaration has of it. */
  readonly placed: Pick<Declaration, "toolsets" | "exposed">;
  readonly issues: readonly ConfigIssue[];
  readonly notes: readonly ConfigIssue[];
}

/** Whose access is settled. */
export interface AccessSubject {
  /** Name of the tool; absent: it is a server, which is in no toolset. */
  readonly tool?: string;
  /** Whether what `keys` say of access is said of all tools of a server, and not of this one. Default false. */
  readonly ofServer?: boolean;
}

/** Most declarations are in no toolset, and share this. */
const NOWHERE: ResolvedAccess["placed"] = {};

/**
 * Settles who may see and call a tool. What is said of the tool alone counts alone. Else all that is said of several
 * tools by name holds at once, its toolsets and its server: a tool that is put into another set never becomes visible
 * to more callers by it. Else its group counts, else the defaults.
 *
 * Roles and subjects are one rule: one that names its subjects must not be widened by roles that another names.
 */
export function resolveAccess(keys: JsonObject, defaults: DeclarationDefaults, subject: AccessSubject): ResolvedAccess {
  const { toolsets = Toolsets.none, needsToolset = false } = defaults;
  const own = ruleOf("declaration", (key) => ownValue(keys, key));
  const declared = declaredToolsets(keys);
  const issues = toolsetIssues(keys, defaults);
  if (subject.tool === undefined)
    return { ...resolved(own.length > 0 ? own : beneath(keys, defaults), NOWHERE), issues };
  const { names, sets } = toolsets.of(subject.tool, declared);
  const exposed = !needsToolset || names.length > 0;
  const placed = names.length === 0 && exposed ? NOWHERE : { toolsets: names, exposed };
  const shared = [...sets.flatMap(ruleOfToolset), ...(subject.ofServer === true ? own : [])];
  const alone = subject.ofServer === true ? [] : own;
  const rules = [alone, shared, beneath(keys, defaults)].find((level) => level.length > 0) ?? [];
  return {
    ...resolved(rules, placed),
    issues,
    notes: exposed ? [] : [HIDDEN],
  };
}

const HIDDEN: ConfigIssue = {
  pointer: "",
  message:
    "it is in no toolset, and gateway.yaml says `expose: toolsets`, so no caller can see it: name it in a toolset there, or set `toolset` here",
};

function resolved(rules: readonly AccessRule[], placed: ResolvedAccess["placed"]): ResolvedAccess {
  const [first, ...also] = rules.flatMap(({ values }): Access[] => {
    const access = accessOf(values);
    return access === undefined ? [] : [access];
  });
  const access = first === undefined || also.length === 0 ? first : { ...first, also };
  return { policy: access === undefined ? {} : { access }, rules, placed, issues: [], notes: [] };
}

/** The rule of the group, or else of the defaults. */
function beneath(keys: JsonObject, { policies, groups }: DeclarationDefaults): readonly AccessRule[] {
  const group = ownValue(keys, "group");
  const shared = typeof group === "string" ? groups?.get(group) : undefined;
  const ofGroup = ruleOf("group", (key) => shared?.get(key));
  return ofGroup.length > 0 ? ofGroup : ruleOf("defaults", (key) => policies?.get(key));
}

function ruleOf(level: AccessRule["level"], valueOf: (key: AccessKey) => JsonValue | undefined): readonly AccessRule[] {
  const values = new Map<AccessKey, JsonValue>();
  for (const key of settingKeys<AccessKey>(ACCESS_SETTINGS)) {
    const value = valueOf(key);
    if (value !== undefined) values.set(key, value);
  }
  return values.size === 0 ? [] : [{ level, values }];
}

function ruleOfToolset({ name, access }: Toolset): readonly AccessRule[] {
  if (access === undefined) return [];
  const { roles, subjects } = access;
  const lists = { allowed_roles: roles, allowed_subjects: subjects };
  const rules = ruleOf("toolset", (key) => (lists[key].length === 0 ? undefined : lists[key]));
  return rules.map((rule) => ({ ...rule, toolset: name }));
}

function declaredToolsets(keys: JsonObject): readonly string[] {
  const value = ownValue(keys, "toolset");
  const list = isJsonArray(value) ? value : [value];
  return list.filter((name) => typeof name === "string");
}

/** Toolsets that keys name and gateway.yaml, which has some, does not know. */
export function toolsetIssues(keys: JsonObject, { toolsets }: DeclarationDefaults): readonly ConfigIssue[] {
  if (toolsets === undefined || toolsets.size === 0) return NO_ISSUES;
  return declaredToolsets(keys).flatMap((name) => unknownToolset(name, toolsets));
}

const NO_ISSUES: readonly ConfigIssue[] = [];

function unknownToolset(name: string, toolsets: Toolsets): ConfigIssue[] {
  if (toolsets.named(name) !== undefined) return [];
  const near = didYouMean(name, toolsets.names);
  const mend = near === "" ? "add it under `toolsets` there, or leave it out" : near;
  return [{ pointer: "/toolset", message: `\`toolset\`: gateway.yaml has no toolset "${name}"; ${mend}` }];
}
