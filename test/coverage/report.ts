import { existsSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { readModules } from "../architecture/source-tree.ts";
import type { Behaviour, Group } from "./behaviour.ts";
import { type Citation, readCitations } from "./citations.ts";
import { MANIFEST } from "./manifest.ts";

/** Derived, never written by hand. `partly`: tests cite it and show all but what its entry names. */
export type Status = "covered" | "partly" | "planned" | "document";

/** An id with what follows from its entry and the titles of tests. */
export interface Standing {
  readonly id: string;
  readonly behaviour: Behaviour;
  readonly status: Status;
  /** Files whose tests cite it, sorted, with how many of their tests do. */
  readonly files: ReadonlyMap<string, number>;
}

/** The whole manifest as it stands. */
export interface Coverage {
  readonly groups: readonly { readonly group: Group; readonly standings: readonly Standing[] }[];
  /** One line each; empty where manifest and tests agree. */
  readonly problems: readonly string[];
}

/** Reads every test and holds it against the manifest. */
export function readCoverage(): Coverage {
  const modules = readModules("test").filter(({ path }) => !path.startsWith("test/coverage/"));
  const { citations, problems } = readCitations(modules);
  const compared = compare(MANIFEST, citations);
  return { groups: compared.groups, problems: [...problems, ...compared.problems] };
}

/** Holds citations against groups of behaviours. Reads only the documents that the groups name. */
export function compare(groups: readonly Group[], citations: readonly Citation[]): Coverage {
  const cited = new Map<string, Map<string, number>>();
  for (const { id, path } of citations) {
    const files = cited.get(id) ?? new Map<string, number>();
    cited.set(id, files.set(path, (files.get(path) ?? 0) + 1));
  }
  const problems: string[] = [];
  const known = new Set<string>();
  const standings = groups.map((group) => ({
    group,
    standings: Object.entries(group.behaviours).map(([id, behaviour]): Standing => {
      if (!id.startsWith(group.prefix) || known.has(id)) problems.push(`${id}: stands in the wrong group, or twice`);
      known.add(id);
      const files = new Map([...(cited.get(id) ?? [])].toSorted(([a], [b]) => (a < b ? -1 : 1)));
      const problem = problemOf(behaviour, files.size > 0);
      if (problem !== undefined) problems.push(`${id}: ${problem}`);
      return { id, behaviour, status: statusOf(behaviour, files.size > 0), files };
    }),
  }));
  for (const [id, files] of cited) {
    if (!known.has(id)) problems.push(`${id}: cited by ${[...files.keys()].join(", ")} and not in the manifest`);
  }
  return { groups: standings, problems };
}

function statusOf(behaviour: Behaviour, isCited: boolean): Status {
  if (behaviour.document !== undefined) return "document";
  if (!isCited) return "planned";
  return behaviour.rest === undefined ? "covered" : "partly";
}

function problemOf({ waits, rest, document }: Behaviour, isCited: boolean): string | undefined {
  if (document !== undefined) return documentProblem(document.file, document.phrase);
  if (isCited && waits !== undefined && rest === undefined) {
    return `waits for ${waits.join(", ")}, and a test cites it: delete \`waits\`, or say in \`rest\` what is not shown`;
  }
  if (!isCited && rest !== undefined) return "names the rest of what tests show, and no test cites it";
  if (!isCited && waits === undefined) return "no test cites it, it waits for nothing, and no document promises it";
  return undefined;
}

function documentProblem(file: string, phrase: string): string | undefined {
  return existsSync(file) && readFileSync(file, "utf8").includes(phrase) ? undefined : `${file} does not say it`;
}

/** Text of docs/coverage.md. Reads the tests; run from the repository's root. */
export function coveragePage(): string {
  const { groups } = readCoverage();
  const count = (standings: readonly Standing[], status: Status): string =>
    String(standings.filter((standing) => standing.status === status).length);
  const counts = [...groups, { group: { title: "all" }, standings: groups.flatMap(({ standings }) => standings) }].map(
    ({ group, standings }) => [
      group.title,
      String(standings.length),
      ...(["covered", "partly", "document", "planned"] as const).map((status) => count(standings, status)),
    ],
  );
  const sections = groups.map(
    ({ group, standings }) => `## ${group.title}

${table(["Id", "Behaviour", "Shown by"], standings.map(row))}
`,
  );
  return `<!-- Generated from test/coverage and the titles of the tests by \`npm run gen\`; do not edit. -->

# Coverage

What the gateway promises, and what went wrong with gateways in the field, each with the tests that show it. A test cites
an id in brackets at the end of its title, and only where it shows what the id says, alone or together with the others
that cite it.

- **covered**: tests show it.
- **partly**: tests show it but for what stands after "not".
- **document**: a promise about the documents, and a test looks for its words.
- **planned**: it waits for the features named.

${table(["Group", "Ids", "Covered", "Partly", "Document", "Planned"], counts)}

${sections.join("\n")}`;
}

function row({ id, behaviour, status, files }: Standing): string[] {
  const { document, rest, waits } = behaviour;
  if (status === "planned") return [id, behaviour.text, `_planned: ${(waits ?? []).join(", ")}_`];
  if (document !== undefined) return [id, behaviour.text, `[${document.file}](${fromDocs(document.file)})`];
  const tests = [...files].map(([path, count]) => {
    const name = path.replace(/^test\//, "").replace(/\.test\.ts$/, "");
    return `[${name}](../${path})${count > 1 ? ` ×${count}` : ""}`;
  });
  const missing = rest === undefined ? [] : [`_not ${rest}_`];
  return [id, behaviour.text, [...tests, ...missing].join(", ")];
}

function fromDocs(file: string): string {
  return file.startsWith("docs/") ? basename(file) : `../${file}`;
}

function table(header: readonly string[], rows: readonly (readonly string[])[]): string {
  return [header, header.map(() => "---"), ...rows]
    .map((cells) => `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`)
    .join("\n");
}
