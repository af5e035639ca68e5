import type { DeclarationProblem } from "../core/registry.ts";
import type { AliasTable } from "./names.ts";
import { aliasProblem } from "./problems.ts";
import { serverOfSource, serverSource } from "./server-report.ts";
import { ServerTools, type ServerToolsDeps } from "./server-tools.ts";
import type { Snapshot } from "./snapshot.ts";
import type { ToolEntry } from "./tool-entry.ts";

/** What all servers are kept with. */
export interface ServedServersDeps extends ServerToolsDeps {
  readonly aliases: AliasTable;
  snapshot(): Snapshot;
}

/** The servers that serve, with their tools, by name. */
export class ServedServers {
  readonly #deps: ServedServersDeps;
  readonly #byName = new Map<string, ServerTools>();

  constructor(deps: ServedServersDeps) {
    this.#deps = deps;
  }

  /** The server of a name. */
  named(name: string): ServerTools | undefined {
    return this.#byName.get(name);
  }

  /** From now on this serves a name; what is no server has no tools behind it. */
  settled(name: string, entry: ToolEntry | undefined): void {
    const known = this.#byName.get(name);
    if (entry?.isServer === true) {
      const served = { claim: entry.claim, open: entry.open };
      if (known === undefined) this.#byName.set(name, new ServerTools(served, this.#deps));
      else if (known.served.claim !== served.claim || known.served.open !== served.open) known.serve(served);
    } else if (known !== undefined) {
      this.#byName.delete(name);
      known.remove();
    }
  }

  /** Settles when the tools of these servers are in force, as far as they were told of. */
  async idle(names: Iterable<string>): Promise<void> {
    await Promise.all([...names].map(async (name) => this.#byName.get(name)?.idle()));
  }

  /** Aliases of these names may be others: so may be what there is to say of them. */
  renamed(names: Iterable<string>): void {
    const servers = new Set<string>();
    for (const name of names) {
      const server = this.#deps.snapshot().named(name)?.claim.declaration.remote?.server;
      if (server !== undefined) servers.add(server);
    }
    this.#deps.changed([...servers].map((name) => ({ source: serverSource(name) })));
  }

  /** What is wrong with a server, by its source; `undefined`: the source is no server's. */
  problemsOf(source: string): readonly DeclarationProblem[] | undefined {
    const name = serverOfSource(source);
    if (name === undefined) return undefined;
    const server = this.#byName.get(name);
    return server === undefined ? [] : [...server.problems(), ...this.#aliasProblems(server)];
  }

  /** Names of declared tools that are what models would call a server's tool by. */
  #aliasProblems(server: ServerTools): DeclarationProblem[] {
    const { aliases, snapshot } = this.#deps;
    return server.names.flatMap((name) => {
      const plain = aliases.plainAliasOf(name);
      const alias = aliases.aliasOf(name);
      const other = alias === plain ? undefined : snapshot().named(plain);
      return other === undefined ? [] : [aliasProblem(server.name, { name, alias }, other.claim)];
    });
  }
}
