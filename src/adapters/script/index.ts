import type { Adapter, ExplainedSetting } from "../../core/adapter.ts";
import { isJsonObject, type JsonValue, stringifyJson } from "../../core/json.ts";
import { raceSignal } from "../../core/signal.ts";
import { findProgramProblem } from "../shared/launcher/examine.ts";
import { Launcher } from "../shared/launcher/launcher.ts";
import { SCRIPT_CONFIG_SCHEMA } from "./config-schema.ts";
import { configureScript, type ScriptOptions } from "./configure.ts";
import { startedProgram } from "./environment.ts";
import type { ScriptConfig } from "./script-config.ts";
import { ScriptUpstream } from "./script-upstream.ts";

/** The adapter for tools that are programs of this machine. Its tools share one launcher process. */
export function createScriptAdapter(options: ScriptOptions): Adapter<ScriptConfig> {
  const launcher = new Launcher(options.environment);
  return {
    kind: "script",
    configSchema: SCRIPT_CONFIG_SCHEMA,
    configure: (keys, tool, settings) => configureScript(keys, tool, settings, options),
    explain: explainScript,
    programs: () => launcher.size,
    async open(config, deps, signal) {
      const problem = await raceSignal(findProgramProblem(startedProgram(config)), signal);
      return new ScriptUpstream(config, deps, launcher, problem);
    },
  };
}

/** Values are shown as declared; secrets by reference. */
function explainScript({ declared, cwd }: ScriptConfig): readonly ExplainedSetting[] {
  const settings: ExplainedSetting[] = [];
  for (const [key, value] of Object.entries(declared)) {
    if ((key === "env" || key === "worker") && isJsonObject(value)) {
      for (const [name, entry] of Object.entries(value)) {
        settings.push({ key: `${key}.${name}`, value: shown(entry) });
      }
    } else if (key !== "cwd") settings.push({ key, value: shown(value) });
  }
  return [...settings, { key: "cwd", value: cwd }];
}

function shown(value: JsonValue): string {
  return typeof value === "string" ? value : stringifyJson(value);
}
