import { ACCESS_SETTINGS, type AccessKey } from "../config/access-settings.ts";
import { settingKeys } from "../config/read-settings.ts";
import type { Access } from "../core/access.ts";
import type { JsonObject, JsonValue } from "../core/json.ts";
import { isJsonArray, ownValue } from "../core/json.ts";
import type { ToolPolicy } from "../core/step.ts";
import type { DeclarationDefaults } from "./declaration.ts";
import type { PolicyLevel } from "./policies.ts";

/** Who may see and call a tool, with where that was said. */
export interface ResolvedAccess {
  readonly policy: Pick<ToolPolicy, "access">;
  /** The level that counts; absent: none says anything. */
  readonly level: PolicyLevel | undefined;
  /** What it says, by key. */
  readonly values: ReadonlyMap<AccessKey, JsonValue>;
}

const NOTHING: ResolvedAccess = { policy: {}, level: undefined, values: new Map() };

/**
 * The rule of the most specific level that says either of roles and subjects. They are one rule: a declaration that
 * names its subjects must not be widened by roles that gateway.yaml gives others.
 */
export function resolveAccess(keys: JsonObject, { policies, groups }: DeclarationDefaults): ResolvedAccess {
  const group = ownValue(keys, "group");
  const shared = typeof group === "string" ? groups?.get(group) : undefined;
  const levels: readonly (readonly [PolicyLevel, (key: AccessKey) => JsonValue | undefined])[] = [
    ["declaration", (key) => ownValue(keys, key)],
    ["group", (key) => shared?.get(key)],
    ["defaults", (key) => policies?.get(key)],
  ];
  for (const [level, valueOf] of levels) {
    const values = new Map<AccessKey, JsonValue>();
    for (const key of settingKeys<AccessKey>(ACCESS_SETTINGS)) {
      const value = valueOf(key);
      if (value !== undefined) values.set(key, value);
    }
    if (values.size > 0) return { policy: { access: accessOf(values) }, level, values };
  }
  return NOTHING;
}

function accessOf(values: ResolvedAccess["values"]): Access {
  const texts = (key: AccessKey): readonly string[] => {
    const list = values.get(key);
    return isJsonArray(list) ? list.filter((text) => typeof text === "string") : [];
  };
  return { roles: texts("allowed_roles"), subjects: texts("allowed_subjects") };
}
