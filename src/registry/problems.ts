import { GatewayError } from "../core/errors.ts";
import type { DeclarationProblem } from "../core/registry.ts";
import type { Holder } from "./claims.ts";
import { serverSource } from "./server-report.ts";
import type { Claim } from "./tool-entry.ts";

/** A problem of a whole source. */
export function sourceProblem(source: string, message: string, note = false): DeclarationProblem {
  return { source, line: 0, column: 0, message, lastGoodServing: false, note };
}

/** That a name was taken already when a source declared it. `holder`: who has it. */
export function conflictProblem({ name, source, declaration }: Claim, holder: Holder): DeclarationProblem {
  const place = holder.claim?.declaration.namePlace;
  const at = place === undefined || holder.source.startsWith("api:") ? "" : `:${place.line}:${place.column}`;
  const first = holder.source.startsWith("api:")
    ? "was registered over the wire"
    : `is declared in ${holder.source}${at}`;
  const message =
    `tool "${name}" ${first}, which came first and has the name; ` +
    `the one in ${source} does not serve until one of the two gets another name`;
  return { ...sourceProblem(source, message), ...declaration.namePlace };
}

/** That a tool is declared under the name that models would call a server's tool by. */
export function aliasProblem(
  server: string,
  tool: { readonly name: string; readonly alias: string },
  declared: Claim,
): DeclarationProblem {
  const where = declared.source.startsWith("api:")
    ? "was registered over the wire"
    : `is declared in ${declared.source}`;
  const message =
    `tool "${tool.name}" would be called ${declared.name} by models, which is the name of a tool that ${where}: ` +
    `both serve, and models call this one ${tool.alias} until one of the two gets another name`;
  return sourceProblem(serverSource(server), message);
}

/** That the upstream of a declaration could not be opened; what an adapter throws by mistake stays in the log. */
export function openProblem(error: unknown): string {
  const known = error instanceof GatewayError && error.reason !== "INTERNAL";
  return known
    ? `cannot be opened: ${error.message}`
    : "cannot be opened because of a fault in the gateway; the log line upstream-open-failed has the cause";
}

/** Whether two lists say the same. */
export function sameProblems(a: readonly DeclarationProblem[], b: readonly DeclarationProblem[]): boolean {
  return a.length === b.length && JSON.stringify(a) === JSON.stringify(b);
}
