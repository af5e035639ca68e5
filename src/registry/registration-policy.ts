import { GatewayError } from "../core/errors.ts";
import { OPERATOR_ROLE, type Principal } from "../core/principal.ts";
import type { Declaration, DeclarationOutcome } from "./declaration.ts";
import type { ParseDeclaration } from "./declaration-source.ts";
import { sourceProblem } from "./problems.ts";

/** What can be registered over the wire, whoever does it. */
export interface RegistrationPolicy {
  /** What runs programs of the gateway's machine. */
  readonly scripts: boolean;
  /** References of secrets; a `*` at the end of one stands for any rest. */
  readonly secrets: readonly string[];
}

/** Roles of which a caller needs one to register what is more than a tool of a host that is known. */
export interface RegistrarRoles {
  /** What runs programs of the gateway's machine. */
  readonly code: readonly string[];
  /** What reaches a host that no tool of the watched folder reaches. */
  readonly hosts: readonly string[];
}

/** The same, with what must not come over the wire refused there; files of the watched folder are the operator's. */
export function restrictRegistrations(policy: RegistrationPolicy, parse: ParseDeclaration): ParseDeclaration {
  return (text, options) => {
    const outcome = parse(text, options);
    return options.source === "api" ? restricted(outcome, policy) : outcome;
  };
}

function restricted(outcome: DeclarationOutcome, policy: RegistrationPolicy): DeclarationOutcome {
  if (!outcome.ok) return outcome;
  const { source, tool } = outcome.declaration;
  const problems = [programProblem(outcome.declaration, policy), secretProblem(outcome.declaration, policy)].flatMap(
    (message) => (message === undefined ? [] : [sourceProblem(source, message)]),
  );
  return problems.length === 0 ? outcome : { ok: false, name: tool.name, problems };
}

/** Who may register one runs any program on the gateway's machine. */
function programProblem({ runsProgram }: Declaration, { scripts }: RegistrationPolicy): string | undefined {
  if (scripts || runsProgram === undefined) return undefined;
  return `${runsProgram} runs a program on the gateway's machine, so it is not registered over the wire: declare it in a file of the watched folder, or set \`registration.scripts: allow\` in gateway.yaml`;
}

/** Who may name any secret has each sent to a host of its own. */
function secretProblem(declaration: Declaration, { secrets }: RegistrationPolicy): string | undefined {
  const { secretRefs = [], inheritedEnv = [] } = declaration;
  // A variable of the gateway's environment is where secrets come from, by whatever key it is asked for.
  const refused = [...new Set([...secretRefs, ...inheritedEnv])].filter(
    (reference) => !secrets.some((pattern) => fits(pattern, reference)),
  );
  if (refused.length === 0) return undefined;
  const names = refused.map((reference) => `\`${reference}\``).join(", ");
  return `a registration over the wire may not use the secret ${names}: declare the tool in a file of the watched folder, or name the secret under \`registration.secrets\` in gateway.yaml`;
}

function fits(pattern: string, reference: string): boolean {
  return pattern.endsWith("*") ? reference.startsWith(pattern.slice(0, -1)) : reference === pattern;
}

/**
 * Makes sure that a caller may register what it sends.
 *
 * @param isKnown whether a tool of the watched folder reaches the same; as an upstream, where it is to be one.
 * @throws GatewayError PERMISSION_DENIED.
 */
export function refuseRegistrar(
  { tool, runsProgram, policy, alsoReaches = [] }: Declaration,
  { roles }: Principal,
  { code, hosts }: RegistrarRoles,
  isKnown: (reached: string, as: "upstream" | "other") => boolean,
): void {
  const refuse = (needed: readonly string[], what: string): void => {
    if (needed.some((role) => roles.includes(role))) return;
    const words = needed.map((role) => `\`${role}\``).join(" or ");
    throw new GatewayError(
      "PERMISSION_DENIED",
      `only the role ${words} may register ${what}, as tool "${tool.name}" does`,
      {
        metadata: { role: needed.join(","), tool: tool.name },
      },
    );
  };
  if (runsProgram !== undefined) refuse(code, "what runs a program of the gateway's machine");
  else if (!isKnown(policy.upstream, "upstream") || !alsoReaches.every((other) => isKnown(other, "other"))) {
    refuse(hosts, "what reaches a host that no declared tool reaches");
  }
}

/** Makes sure that what was registered by another is an operator's to change. @throws GatewayError PERMISSION_DENIED. */
export function refuseOthers(name: string, owner: string | undefined, { id, roles }: Principal): void {
  if (owner === undefined || owner === id || roles.includes(OPERATOR_ROLE)) return;
  const text = `tool "${name}" was registered by another caller, and only the role \`${OPERATOR_ROLE}\` may change it`;
  throw new GatewayError("PERMISSION_DENIED", text, { metadata: { tool: name, role: OPERATOR_ROLE } });
}
