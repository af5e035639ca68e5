import { PassThrough, Readable, Writable } from "node:stream";
import type { Host, ServerParts, StopSignal } from "../../src/cli/host.ts";
import { runCli } from "../../src/cli/run.ts";
import { openApiKeys } from "../../src/identity/key-administration.ts";
import { openLogins } from "../../src/logins.ts";

/** What a command line left behind. */
export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** How a command line is run in a test. */
export interface RunSetup {
  readonly stdin?: string;
  /** Columns of a terminal; absent: a pipe. */
  readonly columns?: number;
  readonly env?: NodeJS.ProcessEnv;
  readonly home?: string;
  readonly cwd?: string;
  readonly server?: ServerParts;
  /** Opens addresses. */
  readonly browser?: (address: string) => void;
}

/** A command line that is running. */
export interface Running {
  readonly ended: Promise<Ran>;
  readonly stdout: TestOutput;
  readonly stderr: TestOutput;
  /** Where nothing was given beforehand. */
  readonly stdin: PassThrough;
  signal(name: StopSignal): void;
  /** As SIGHUP does. */
  reload(): void;
  /** As if nothing had caught this error. */
  uncaught(error: unknown): void;
  /** Codes the process was ended with at once. */
  readonly exits: readonly number[];
}

/** A stream that keeps what is written and tells when a text has come. */
export class TestOutput extends Writable {
  text = "";
  readonly isTTY: boolean;
  readonly columns: number | undefined;
  readonly #waiting: { text: string; resolve: () => void }[] = [];

  constructor(columns: number | undefined) {
    super({ decodeStrings: false });
    this.isTTY = columns !== undefined;
    this.columns = columns;
  }

  override _write(chunk: string, _encoding: string, done: () => void): void {
    this.text += chunk;
    for (const { text, resolve } of this.#waiting) if (this.text.includes(text)) resolve();
    done();
  }

  /** Resolves when the text was written. */
  has(text: string): Promise<void> {
    if (this.text.includes(text)) return Promise.resolve();
    return new Promise((resolve) => this.#waiting.push({ text, resolve }));
  }
}

/** Starts a command line in this process. */
export function startCli(argv: readonly string[], setup: RunSetup = {}): Running {
  const stdout = new TestOutput(setup.columns);
  const stderr = new TestOutput(setup.columns);
  const stdin = new PassThrough();
  const listeners = new Set<(signal: StopSignal) => void>();
  const uncaught = new Set<(error: unknown) => void>();
  const reloads = new Set<() => void>();
  const exits: number[] = [];
  const host: Host = {
    stdin: setup.stdin === undefined ? stdin : Readable.from([setup.stdin]),
    stdout,
    stderr,
    loadApiKeys: ({ state }) => Promise.resolve(openApiKeys(state.folder)),
    loadLogins: (config) => openLogins({ config, environment: setup.env ?? {} }),
    openAddress: (address) => setup.browser?.(address),
    version: "9.9.9",
    surroundings: {
      env: setup.env ?? {},
      cwd: setup.cwd ?? "/nowhere",
      home: setup.home ?? "/nowhere",
      runtime: "24.21.0",
    },
    onSignal(listener) {
      listeners.add(listener);
      return { [Symbol.dispose]: () => listeners.delete(listener) };
    },
    onReload(listener) {
      reloads.add(listener);
      return { [Symbol.dispose]: () => reloads.delete(listener) };
    },
    onUncaught(listener) {
      uncaught.add(listener);
      return { [Symbol.dispose]: () => uncaught.delete(listener) };
    },
    exit: (code) => exits.push(code),
    loadServer: async () => {
      if (setup.server === undefined) throw new Error("this test has no server");
      return setup.server;
    },
  };
  const ended = runCli(argv, host).then((code) => ({ code, stdout: stdout.text, stderr: stderr.text }));
  return {
    ended,
    stdin,
    stdout,
    stderr,
    exits,
    signal: (name) => {
      for (const listener of listeners) listener(name);
    },
    reload: () => {
      for (const listener of reloads) listener();
    },
    uncaught: (error) => {
      for (const listener of uncaught) listener(error);
    },
  };
}

/** Runs a command line to its end. */
export function runInProcess(argv: readonly string[], setup: RunSetup = {}): Promise<Ran> {
  return startCli(argv, setup).ended;
}
