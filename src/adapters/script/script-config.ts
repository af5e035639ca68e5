import type { AdapterSettings } from "../../core/adapter.ts";
import type { JsonObject } from "../../core/json.ts";
import type { DeclaredTool } from "../../core/tool.ts";
import type { BodyTemplate } from "../shared/body-template.ts";
import type { EnvironmentEntry } from "../shared/launcher/inherited-environment.ts";
import type { Reference, TextTemplate } from "../shared/text-template.ts";

/** From TERM to KILL, for a program that is stopped. */
export const KILL_GRACE_MS = 2_000;

/** One entry of the argument list. */
export interface ArgumentTemplate {
  readonly parts: TextTemplate;
  /** A value that begins with a dash could be taken for an option here. */
  readonly bare: boolean;
}

/** Entries that are dropped together where an argument of one is absent. */
export type ArgumentGroup = readonly ArgumentTemplate[];

/** A value that a shell gets as a positional parameter. */
export interface ShellValue extends Reference {
  readonly bare: boolean;
}

/** What is run. */
export type CommandLine =
  | { readonly kind: "program"; readonly file: string; readonly groups: readonly ArgumentGroup[] }
  | { readonly kind: "shell"; readonly text: string; readonly values: readonly ShellValue[] };

/** What the program reads. */
export type InputTemplate =
  | { readonly kind: "arguments" }
  | { readonly kind: "json"; readonly template: BodyTemplate }
  | { readonly kind: "text"; readonly parts: TextTemplate };

/** A pool of programs that keep running. */
export interface WorkerConfig {
  readonly processes: number;
  readonly maxCalls: number;
}

/** A script tool, compiled: a call only fills it in. */
export interface ScriptConfig {
  readonly tool: DeclaredTool;
  readonly settings: AdapterSettings;
  readonly command: CommandLine;
  /** Absolute. */
  readonly cwd: string;
  /** What every program gets of the gateway's environment, and what the declaration sets. */
  readonly env: readonly EnvironmentEntry[];
  readonly input: InputTemplate | undefined;
  /** Parameters whose schema allows null. */
  readonly keepsNull: ReadonlySet<string>;
  /** Parameters whose value may begin with a dash anywhere. */
  readonly allowDash: ReadonlySet<string>;
  /** As the declaration has it; `TextDecoder` knows it. */
  readonly encoding: string;
  readonly successCodes: ReadonlySet<number>;
  /** Streamed output is passed on line by line. */
  readonly lines: boolean;
  readonly worker: WorkerConfig | undefined;
  /** The call changes nothing, by its hints. */
  readonly readOnly: boolean;
  /** The keys as they were declared, for explanations. */
  readonly declared: JsonObject;
}
