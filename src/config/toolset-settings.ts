import type { Access } from "../core/access.ts";
import type { ConfigIssue } from "../core/adapter.ts";
import { isJsonArray, type JsonObject, type JsonValue, jsonPointer } from "../core/json.ts";
import { didYouMean } from "../core/nearest.ts";
import { includeCycle, type Toolset, Toolsets } from "../core/toolsets.ts";
import { ACCESS_SETTINGS } from "./access-settings.ts";
import { type Setting, settingsSchema } from "./setting.ts";

/** Names of toolsets, as of tools. */
const NAME = "[A-Za-z0-9_.-]{1,64}";

/** Most toolsets; their names stand with each of their tools. */
const MAX_TOOLSETS = 100;

const NAMES = {
  type: "string",
  pattern: `^${NAME}$`,
  patternErrorMessage: "expected a name of letters, digits, `_`, `.` and `-`, at most 64",
} as const;

/** `toolset` of a declaration. */
export const TOOLSET_SCHEMA: JsonObject = {
  type: ["string", "array"],
  items: NAMES,
  minLength: 1,
  minItems: 1,
  maxItems: MAX_TOOLSETS,
  pattern: `^${NAME}$`,
  description:
    "Toolset the tool is in, or a list of them, besides those of gateway.yaml that name it. Where gateway.yaml has `toolsets`, it is one of them.",
  examples: ["weather"],
};

/** What a toolset of gateway.yaml holds. */
export const TOOLSET_SETTINGS = {
  description: { schema: { type: "string", description: "What it is for, for people: `explain` shows it." } },
  tools: {
    schema: {
      type: "array",
      maxItems: 10_000,
      items: { type: "string", minLength: 1, maxLength: 330 },
      description:
        "Names of tools, and patterns of them: `*` stands for any characters, `?` for one, as in `github/*`. A name that no tool has is a note in `tool list` and `doctor`.",
      examples: [["order_status", "github/*"]],
    },
  },
  includes: {
    schema: {
      type: "array",
      maxItems: MAX_TOOLSETS,
      items: { type: "string", minLength: 1 },
      description:
        "Toolsets whose tools are in this one, too; who may see and call them stays as it is. No toolset may include itself, over any number of steps.",
    },
  },
  base: {
    schema: {
      type: "boolean",
      description: "Whether every other toolset has its tools, too; who may see and call them stays as it is.",
    },
  },
  ...ACCESS_SETTINGS,
} as const satisfies Readonly<Record<string, Setting>>;

/** Key of a toolset. */
export type ToolsetKey = keyof typeof TOOLSET_SETTINGS;

/** What gateway.yaml sets of each toolset, by key. */
export type ToolsetValues = ReadonlyMap<string, ReadonlyMap<ToolsetKey, JsonValue>>;

/** Schema of `toolsets`. */
export function toolsetsSchema(): JsonObject {
  const sections = { "": "A toolset: what it is for, which tools are in it, and who may see and call them." };
  return {
    type: "object",
    description: "Named sets of tools: to list a part of the tools, and to say who may see and call them.",
    maxProperties: MAX_TOOLSETS,
    patternProperties: { [`^${NAME}$`]: settingsSchema(TOOLSET_SETTINGS, "", { sections, defaults: false }) },
    additionalProperties: false,
  };
}

/** Whether tools that are in no toolset are there for callers. */
export const EXPOSE: Setting & { readonly standard: string } = {
  schema: {
    enum: ["all", "toolsets"],
    description:
      "Which tools callers can see and call: `all`, or those that are in a toolset; the rest is told to operators alone, by notes and `explain`.",
  },
  standard: "all",
};

/** Makes the toolsets. What is wrong with their `includes` is added to `issues`; then none are made. */
export function readToolsets(values: ToolsetValues, issues: ConfigIssue[]): Toolsets {
  const sets = new Map([...values].map(([name, set]) => [name, toolsetOf(name, set)]));
  const wrong = [...sets.values()].flatMap((set) => unknownIncludes(set, sets));
  const cycle = wrong.length > 0 ? undefined : includeCycle(sets);
  if (cycle !== undefined) {
    const [first = ""] = cycle;
    const message = `\`toolsets.${first}.includes\` comes back to itself: ${cycle.join(" → ")}; remove one of these steps`;
    wrong.push({ pointer: jsonPointer(["toolsets", first, "includes"]), message });
  }
  issues.push(...wrong);
  return wrong.length > 0 ? Toolsets.none : new Toolsets(sets.values());
}

function unknownIncludes({ name, includes }: Toolset, sets: ReadonlyMap<string, Toolset>): ConfigIssue[] {
  return [...includes.entries()].flatMap(([index, other]) => {
    if (sets.has(other)) return [];
    const near = didYouMean(other, sets.keys());
    const mend = near === "" ? "add it under `toolsets`, or take it out" : near;
    const message = `\`toolsets.${name}.includes\`: there is no toolset "${other}"; ${mend}`;
    return [{ pointer: jsonPointer(["toolsets", name, "includes", String(index)]), message }];
  });
}

function toolsetOf(name: string, values: ReadonlyMap<ToolsetKey, JsonValue>): Toolset {
  const description = values.get("description");
  return {
    name,
    description: typeof description === "string" ? description : "",
    tools: textsOf(values.get("tools")),
    includes: textsOf(values.get("includes")),
    base: values.get("base") === true,
    access: accessOf(values),
  };
}

function textsOf(list: JsonValue | undefined): readonly string[] {
  return isJsonArray(list) ? list.filter((text) => typeof text === "string") : [];
}

/** The rule that values of access say; absent: none of the keys is there. */
export function accessOf(values: ReadonlyMap<string, JsonValue>): Access | undefined {
  if (!values.has("allowed_roles") && !values.has("allowed_subjects")) return undefined;
  return { roles: textsOf(values.get("allowed_roles")), subjects: textsOf(values.get("allowed_subjects")) };
}
