import type { RunHelper } from "../../../core/secrets.ts";
import { raceSignal } from "../../../core/signal.ts";
import { inheritedEntries } from "./inherited-environment.ts";
import { Launcher } from "./launcher.ts";

/** From TERM to KILL. */
const KILL_GRACE_MS = 1_000;

/** What programs are run with. */
export interface RunHelperOptions {
  /** All of it is the program's too. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
}

/**
 * Runs programs to their end, each by the launcher process, which is there while one runs. Its error output is nobody's
 * business: it may hold a secret. What is over the limit is a problem, and ends it.
 */
export function createRunHelper({ environment, cwd }: RunHelperOptions): RunHelper {
  const launcher = new Launcher(environment);
  const entries = inheritedEntries(environment, Object.keys(environment));
  const env = Object.fromEntries(entries.flatMap((entry) => ("value" in entry ? [[entry.name, entry.value]] : [])));
  return async ({ file, args, maxBytes }, signal) => {
    signal.throwIfAborted();
    launcher.retain();
    const limits = { graceMs: KILL_GRACE_MS, windowBytes: maxBytes };
    const program = launcher.start({ file, args, cwd, env, input: false, ...limits });
    try {
      const pieces: Buffer[] = [];
      let bytes = 0;
      for (let piece = await raceSignal(program.read(), signal); piece !== undefined; ) {
        pieces.push(piece);
        bytes += piece.length;
        if (bytes > maxBytes) return { problem: `it printed more than ${maxBytes} bytes` };
        piece = await raceSignal(program.read(), signal);
      }
      const problem = problemOf(program.end);
      return problem === undefined ? { output: Buffer.concat(pieces) } : { problem };
    } finally {
      if (program.end === undefined) program.kill();
      void program.gone.then(() => launcher.release());
    }
  };
}

function problemOf(end: ReturnType<Launcher["start"]>["end"]): string | undefined {
  if (end?.kind === "refused") return `it cannot be started (${end.code})`;
  if (end?.kind !== "exited") return "it was ended";
  const { code, signal } = end.exit;
  if (code === 0) return undefined;
  return code === null ? `it died of ${signal ?? "a signal"}` : `it ended with exit code ${code}`;
}
