import type { Clock } from "../core/clock.ts";
import { GatewayError } from "../core/errors.ts";
import type { Logger } from "../core/logger.ts";
import type { RunHelper, SecretHelper } from "../core/secrets.ts";
import { setValue, withoutLineEnd } from "./secret-provider.ts";

/** References that a helper is asked for: none that it could take for an option or a path to elsewhere. */
const REFERENCE = /^(?!.*\.\.)[A-Za-z0-9_][A-Za-z0-9_./:@-]{0,255}$/;

/** Longest secret. */
const MAX_BYTES = 64 * 1024;

/** References that something is known of at a time. */
const MAX_KNOWN = 1_000;

/** How soon a helper is asked again for what it did not give. */
const FAILURE_MS = 5_000;

/** What a helper works with. */
export interface HelperSecretsOptions extends SecretHelper {
  readonly run: RunHelper;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** What is known of a reference: a value, or why there is none. It is forgotten when its time is over. */
interface Known {
  readonly value: string | undefined;
  readonly problem: string;
  readonly expiry: Disposable;
}

/** Secrets that a program gives, one run for each reference at a time. */
export class HelperSecrets implements AsyncDisposable {
  readonly #options: HelperSecretsOptions;
  readonly #known = new Map<string, Known>();
  /** What the helper said last, without the value. */
  readonly #verdicts = new Map<string, string>();
  readonly #asking = new Map<string, Promise<void>>();
  readonly #closed = new AbortController();

  constructor(options: HelperSecretsOptions) {
    this.#options = options;
  }

  mend(reference: string): string {
    return `see why \`${this.#options.command.join(" ")} ${reference}\` does not print it`;
  }

  /** The value, where it is at hand. */
  read(reference: string): string | undefined {
    return this.#known.get(reference)?.value;
  }

  /** Why it gave none when it was asked last. */
  problem(reference: string): string | undefined {
    return this.#verdicts.get(reference);
  }

  /** Asks where nothing is known; whether nothing says that there is no such secret. */
  begin(reference: string): boolean {
    void this.ask(reference);
    return !this.#verdicts.has(reference);
  }

  /** Asks for a secret, unless what was said of it is still good. Never rejects. */
  ask(reference: string): Promise<void> | undefined {
    if (this.#known.has(reference) || this.#closed.signal.aborted) return undefined;
    if (!REFERENCE.test(reference)) {
      this.#verdict(reference, "its reference has characters that are not passed on");
      return undefined;
    }
    const asking = this.#asking.get(reference) ?? this.#run(reference).finally(() => this.#asking.delete(reference));
    this.#asking.set(reference, asking);
    return asking;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed.abort(new GatewayError("GATEWAY_STOPPING", "the helper for secrets was closed"));
    for (const { expiry } of this.#known.values()) expiry[Symbol.dispose]();
    this.#known.clear();
    await Promise.all(this.#asking.values());
  }

  async #run(reference: string): Promise<void> {
    const { run, command, timeoutMs, cacheMs, clock, logger } = this.#options;
    const [file = "", ...args] = command;
    const limit = new AbortController();
    const onClose = (): void => limit.abort(this.#closed.signal.reason);
    this.#closed.signal.addEventListener("abort", onClose, { once: true });
    using _timer = clock.after(timeoutMs, () => limit.abort(new GatewayError("UPSTREAM_TIMEOUT", "helper")));
    let found: { readonly value: string } | { readonly problem: string };
    try {
      found = valueOf(await run({ file, args: [...args, reference], maxBytes: MAX_BYTES }, limit.signal));
    } catch {
      // Only the limit of time and the end of the gateway end it; its own words may hold a secret.
      found = { problem: `no end within ${timeoutMs} ms` };
    } finally {
      this.#closed.signal.removeEventListener("abort", onClose);
    }
    if (this.#closed.signal.aborted) return;
    const value = "value" in found ? found.value : undefined;
    const problem = "problem" in found ? found.problem : "";
    if (value === undefined) logger.warn("secret-helper-failed", { secret: reference, problem });
    this.#verdict(reference, value === undefined ? problem : undefined);
    this.#keep(reference, { value, problem }, value === undefined ? FAILURE_MS : cacheMs);
  }

  #keep(reference: string, what: Pick<Known, "value" | "problem">, lifeMs: number): void {
    const expiry = this.#options.clock.after(lifeMs, () => this.#known.delete(reference));
    this.#known.set(reference, { ...what, expiry });
    for (const [oldest, { expiry: its }] of this.#known) {
      if (this.#known.size <= MAX_KNOWN) break;
      its[Symbol.dispose]();
      this.#known.delete(oldest);
    }
  }

  #verdict(reference: string, problem: string | undefined): void {
    this.#verdicts.delete(reference);
    if (problem !== undefined) this.#verdicts.set(reference, problem);
    for (const oldest of this.#verdicts.keys()) {
      if (this.#verdicts.size <= MAX_KNOWN) break;
      this.#verdicts.delete(oldest);
    }
  }
}

function valueOf(ran: Awaited<ReturnType<RunHelper>>): { readonly value: string } | { readonly problem: string } {
  if ("problem" in ran) return ran;
  const value = setValue(withoutLineEnd(ran.output.toString("utf8")));
  return value === undefined ? { problem: "it printed nothing" } : { value };
}
