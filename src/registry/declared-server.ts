import { ownList, ownObject } from "../config/own-values.ts";
import { inline, pathText } from "../config/wording.ts";
import type { ConfigIssue } from "../core/adapter.ts";
import { isJsonObject, type JsonObject, jsonPointer, ownValue } from "../core/json.ts";
import { fitsName, isNamePattern } from "../core/name-pattern.ts";
import { didYouMean } from "../core/nearest.ts";
import type { DeclarationProblem } from "../core/registry.ts";
import type { AdaptedTool, DeclaredServer } from "./declaration.ts";
import { adaptOffered } from "./offered-tool.ts";
import { paramIssues } from "./param-overrides.ts";
import type { Override, ServerParts } from "./server-parts.ts";
import { type SettledOverride, settleOverrides } from "./settled-override.ts";

const OVERRIDES = ["tools", "overrides"] as const;

/** Keys of an override that make sense for one tool only. */
const OF_ONE_TOOL = ["name", "pin"] as const;

/** What a declaration says of the tools of its server. */
export interface ReadServer {
  readonly server: DeclaredServer;
  /** The keys that say it. */
  readonly keys: JsonObject;
  readonly issues: readonly ConfigIssue[];
  readonly notes: readonly ConfigIssue[];
}

/** Reads what a declaration says of the tools of its server. */
export function readServer(parts: ServerParts): ReadServer {
  const tools = ownObject(parts.keys, "tools") ?? {};
  const include = patterns(tools, "include");
  const exclude = patterns(tools, "exclude");
  const overrides = readOverrides(tools);
  const settled = new Map<string, SettledOverride>();
  const settle = (matching: readonly Override[]): SettledOverride => {
    const key = matching.map(({ pointer }) => pointer).join(" ");
    const found =
      settled.get(key) ??
      settleOverrides(
        parts.keys,
        matching.map(({ keys }) => keys),
        parts.defaults,
      );
    settled.set(key, found);
    return found;
  };
  const wants = (name: string): boolean =>
    (include === undefined || include.some((pattern) => fitsName(pattern, name))) &&
    exclude?.some((pattern) => fitsName(pattern, name)) !== true;
  return {
    keys: Object.fromEntries(Object.entries(parts.keys).filter(([key]) => key === "tools" || key === "trust_hints")),
    issues: overrides.flatMap((override) => overrideIssues(override, settle([override]).issues)),
    notes: overrides.flatMap((override) => located(override, settle([override]).notes)),
    server: {
      upstreamDigest: parts.upstreamDigest,
      adapt: (offered): AdaptedTool => {
        if (!wants(offered.name)) return { kind: "left-out" };
        const matching = overridesOf(overrides, offered.name);
        return adaptOffered(offered, matching, settle(matching), parts);
      },
      idle: (offered) => idleNotes({ include, exclude, overrides }, offered, parts),
    },
  };
}

function patterns(tools: JsonObject, key: string): readonly string[] | undefined {
  return ownList(tools, key)?.filter((name) => typeof name === "string");
}

function readOverrides(tools: JsonObject): Override[] {
  return Object.entries(ownObject(tools, "overrides") ?? {}).flatMap(([names, keys]): Override[] => {
    return isJsonObject(keys) ? [{ names, keys, pointer: jsonPointer([...OVERRIDES, names]) }] : [];
  });
}

/** Those that concern a tool, the most specific last. */
function overridesOf(overrides: readonly Override[], name: string): readonly Override[] {
  const wide = overrides.filter(({ names }) => isNamePattern(names) && fitsName(names, name));
  const own = overrides.filter(({ names }) => !isNamePattern(names) && names === name);
  return [...wide, ...own];
}

function overrideIssues(override: Override, settled: readonly ConfigIssue[]): ConfigIssue[] {
  const { names, keys, pointer } = override;
  const single = OF_ONE_TOOL.filter((key) => isNamePattern(names) && ownValue(keys, key) !== undefined);
  return [
    ...single.map((key) => {
      const message = `\`${key}\` is for one tool, and "${inline(names)}" is a pattern: write it under the tool's own name`;
      return { pointer: `${pointer}/${key}`, message };
    }),
    ...paramIssues(ownObject(keys, "params") ?? {}, `${pointer}/params`),
    ...located(override, settled),
  ];
}

/** Issues of what is settled, at the place in the override that they come from; those of the server's own are known. */
function located({ keys, pointer }: Override, issues: readonly ConfigIssue[]): ConfigIssue[] {
  return issues.flatMap((issue) => {
    const [, key = "", below] = issue.pointer.split("/");
    const own = ownObject(keys, key);
    const here = own === undefined ? Object.hasOwn(keys, key) : below === undefined || Object.hasOwn(own, below);
    return here ? [{ pointer: pointer + issue.pointer, message: issue.message }] : [];
  });
}

/** What the declaration says of tools that there are none of. */
function idleNotes(
  said: {
    readonly include: readonly string[] | undefined;
    readonly exclude: readonly string[] | undefined;
    readonly overrides: readonly Override[];
  },
  offered: ReadonlySet<string>,
  { document, source, tool }: ServerParts,
): DeclarationProblem[] {
  const all = [...offered];
  const entries: (readonly [pointer: string, names: string])[] = [
    ...(said.include ?? []).map((names, i) => [`/tools/include/${i}`, names] as const),
    ...(said.exclude ?? []).map((names, i) => [`/tools/exclude/${i}`, names] as const),
    ...said.overrides.map(({ pointer, names }) => [pointer, names] as const),
  ];
  return entries.flatMap(([pointer, names]): DeclarationProblem[] => {
    if (isNamePattern(names) ? all.some((name) => fitsName(names, name)) : offered.has(names)) return [];
    const near = isNamePattern(names) ? "" : didYouMean(names, all.slice(0, 1_000));
    const what = `${pathText(pointer)} fits no tool that server "${tool.name}" offers now`;
    const message = `${what}: ${near === "" ? "correct or remove it" : near}`;
    return [{ source, ...document.position(pointer), message, lastGoodServing: false, note: true }];
  });
}
