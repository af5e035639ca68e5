import { openArguments } from "./arguments.ts";
import { openDeclarations } from "./declarations.ts";
import { openPaths } from "./paths.ts";
import { openScripts } from "./scripts.ts";
import { openSocket } from "./socket.ts";
import type { FuzzTarget } from "./target.ts";
import { openTemplates } from "./templates.ts";

/** What is done with a target, whatever its inputs are. */
export type UseTarget = <Input>(target: FuzzTarget<Input>) => Promise<void>;

/** THE list of fuzzers, by the name on the command line. */
export const TARGETS: Readonly<Record<string, (use: UseTarget) => Promise<void>>> = {
  declarations: (use) => use(openDeclarations()),
  templates: (use) => use(openTemplates()),
  paths: (use) => use(openPaths()),
  scripts: (use) => use(openScripts()),
  arguments: (use) => use(openArguments()),
  socket: async (use) => use(await openSocket()),
};
