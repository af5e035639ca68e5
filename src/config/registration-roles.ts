import type { JsonValue } from "../core/json.ts";
import { isJsonArray } from "../core/json.ts";
import { OPERATOR_ROLE } from "../core/principal.ts";
import { ROLES_SCHEMA } from "./access-settings.ts";
import type { Setting } from "./setting.ts";

/** Who may register what, by dotted key. */
export const REGISTRATION_ROLES = {
  "registration.roles": roles(
    "to register tools over the wire, and to unregister its own; what others registered only `operator` may change.",
  ),
  "registration.code_roles": roles(
    "besides, to register what runs programs of this machine, which `registration.scripts` has to allow too.",
  ),
  "registration.host_roles": roles(
    "besides, to register a tool that reaches a host (scheme, name and port) that no tool of the watched folder reaches, or gets its tokens there.",
  ),
} as const satisfies Readonly<Record<string, Setting>>;

/** Who may register over the wire. */
export interface RegistrationRoles {
  readonly roles: readonly string[];
  readonly codeRoles: readonly string[];
  readonly hostRoles: readonly string[];
}

/** Reads who may register what. */
export function readRegistrationRoles(values: ReadonlyMap<string, JsonValue>): RegistrationRoles {
  const texts = (key: keyof typeof REGISTRATION_ROLES): readonly string[] => {
    const list = values.get(key);
    return isJsonArray(list) ? list.filter((text) => typeof text === "string") : [];
  };
  return {
    roles: texts("registration.roles"),
    codeRoles: texts("registration.code_roles"),
    hostRoles: texts("registration.host_roles"),
  };
}

function roles(what: string): Setting & { readonly standard: readonly string[] } {
  const description = `Roles of which a caller needs one ${what}`;
  return { schema: { ...ROLES_SCHEMA, minItems: 1, description }, standard: [OPERATOR_ROLE] };
}
