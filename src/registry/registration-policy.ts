import type { DeclarationOutcome } from "./declaration.ts";
import type { ParseDeclaration } from "./declaration-source.ts";
import { sourceProblem } from "./problems.ts";

/** What can be registered over the wire. */
export interface RegistrationPolicy {
  /** What runs programs of the gateway's machine. */
  readonly scripts: boolean;
}

/** The same, with what must not come over the wire refused there; files of the watched folder are the operator's. */
export function restrictRegistrations(policy: RegistrationPolicy, parse: ParseDeclaration): ParseDeclaration {
  if (policy.scripts) return parse;
  return (text, options) => {
    const outcome = parse(text, options);
    return options.source === "api" ? withoutPrograms(outcome) : outcome;
  };
}

/** Who may register one runs any program on the gateway's machine. */
function withoutPrograms(outcome: DeclarationOutcome): DeclarationOutcome {
  if (!outcome.ok || outcome.declaration.runsProgram === undefined) return outcome;
  const { source, tool, runsProgram } = outcome.declaration;
  const message = `${runsProgram} runs a program on the gateway's machine, so it is not registered over the wire: declare it in a file of the watched folder, or set \`registration.scripts: allow\` in gateway.yaml`;
  return { ok: false, name: tool.name, problems: [sourceProblem(source, message)] };
}
