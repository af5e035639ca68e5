import { News } from "../news.ts";
import type { Frame, FrameKind, ProgramExit, StartRequest } from "./frames.ts";
import { jsonPayload, NO_PAYLOAD, numberPayload } from "./frames.ts";

/** How a program came to its end. */
export type ProgramEnd =
  /** By itself, or by a signal that was not ours. */
  | { readonly kind: "exited"; readonly exit: ProgramExit; readonly errors: Buffer; readonly errorBytes: number }
  /** The system did not start it; an error code such as `ENOENT`. */
  | { readonly kind: "refused"; readonly code: string }
  /** It was killed from here. */
  | { readonly kind: "killed" }
  /** The launcher is gone, and with it the program. */
  | { readonly kind: "lost" };

/** Sends a message about the program to the launcher. */
type Send = (kind: FrameKind, payload: Buffer) => void;

/** A program that runs, seen from the gateway: read as fast as its one reader takes its output. */
export class RunningProgram {
  readonly #send: Send;
  readonly #chunks: Buffer[] = [];
  #errors: Buffer = NO_PAYLOAD;
  #pid: number | undefined;
  #end: ProgramEnd | undefined;
  readonly #news = new News();
  readonly #gone: PromiseWithResolvers<void> = Promise.withResolvers();

  constructor(request: StartRequest, send: Send) {
    this.#send = send;
    send("start", jsonPayload(request));
  }

  /** Known once it runs; the leader of its process group. */
  get pid(): number | undefined {
    return this.#pid;
  }

  /** Known once it is over. */
  get end(): ProgramEnd | undefined {
    return this.#end;
  }

  /** The end of its error output, as far as it was told. */
  get errors(): Buffer {
    return this.#errors.subarray(4);
  }

  /** Resolves when nothing of it is left: no process of its group. */
  get gone(): Promise<void> {
    return this.#gone.promise;
  }

  /** Resolves when it runs, or is over. */
  async started(): Promise<void> {
    while (this.#pid === undefined && this.#end === undefined) await this.#news.next();
  }

  /** The next piece of output; `undefined`: there is none any more, and `end` says why. */
  async read(): Promise<Buffer | undefined> {
    while (true) {
      if (this.#end?.kind === "killed") return undefined;
      const chunk = this.#chunks.shift();
      if (chunk !== undefined) {
        this.#send("credit", numberPayload(chunk.length));
        return chunk;
      }
      if (this.#end !== undefined) return undefined;
      await this.#news.next();
    }
  }

  /** Gives it input; not waited for, so a caller bounds what it gives. */
  write(bytes: Buffer): void {
    this.#send("input", bytes);
  }

  /** Ends its input. */
  endInput(): void {
    this.#send("input-end", NO_PAYLOAD);
  }

  /** Ends it with its whole process group. Output that was not read is dropped. */
  kill(): void {
    this.#send("kill", NO_PAYLOAD);
    this.#over({ kind: "killed" });
  }

  /** A message of the launcher's. */
  take({ kind, payload }: Frame): void {
    switch (kind) {
      case "started":
        this.#pid = payload.readUInt32BE();
        break;
      case "refused":
        this.#over({ kind: "refused", ...(JSON.parse(payload.toString()) as { readonly code: string }) });
        this.#gone.resolve();
        break;
      case "output":
        this.#chunks.push(payload);
        break;
      case "errors":
        this.#errors = payload;
        break;
      case "ended":
        this.#over(this.#exited(JSON.parse(payload.toString()) as ProgramExit));
        break;
      case "gone":
        this.#gone.resolve();
        break;
      default:
        throw new Error(`the launcher sent "${kind}"`);
    }
    this.#news.tell();
  }

  /** The launcher ended. */
  lose(): void {
    this.#over({ kind: "lost" });
    this.#gone.resolve();
  }

  #exited(exit: ProgramExit): ProgramEnd {
    return { kind: "exited", exit, errorBytes: this.#errors.readUInt32BE(), errors: this.#errors.subarray(4) };
  }

  #over(end: ProgramEnd): void {
    this.#end ??= end;
    this.#news.tell();
  }
}
