import type { Clock } from "../core/clock.ts";
import { GatewayError } from "../core/errors.ts";
import { REQUEST_ID } from "../wire/call-codec.ts";
import { requestInvalid } from "../wire/request-error.ts";

/** How long an answer is remembered. */
const REMEMBERED_MS = 600_000;
/** Most answers remembered; over it the oldest is forgotten first. */
const MAX_REMEMBERED = 1_000;

interface Remembered<T> {
  readonly digest: string;
  readonly answer: Promise<T>;
  readonly sinceMs: number;
}

/** A request that may come more than once. */
export interface IdentifiedRequest {
  readonly principalId: string;
  /** Empty: the request has no id. */
  readonly requestId: string;
  /** Equal for equal requests only. */
  readonly digest: string;
}

/** Gives a request with an id its first answer again, for ten minutes; a duplicate of a running one waits for it. */
export class RequestIds<T> {
  readonly #clock: Clock;
  /** In order of age. */
  readonly #answers = new Map<string, Remembered<T>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * The answer to a request, made by `work` at most once. A failed one is forgotten, so that it can be tried again.
   *
   * @throws GatewayError REQUEST_INVALID, REQUEST_ID_REUSED, and what `work` throws.
   */
  answer({ principalId, requestId, digest }: IdentifiedRequest, work: () => Promise<T>): Promise<T> {
    if (requestId === "") return work();
    if (!REQUEST_ID.test(requestId)) {
      throw requestInvalid("request_id", "MALFORMED", "must be 1 to 64 visible ASCII characters");
    }
    this.#forgetOld();
    const key = JSON.stringify([principalId, requestId]);
    const known = this.#answers.get(key);
    if (known !== undefined) {
      if (known.digest === digest) return known.answer;
      throw new GatewayError(
        "REQUEST_ID_REUSED",
        `\`request_id\` ${requestId} was used for another request before; use a new one`,
        { metadata: { request_id: requestId } },
      );
    }
    const answer = work();
    const remembered = { digest, answer, sinceMs: this.#clock.monotonicMs() };
    this.#answers.set(key, remembered);
    answer.catch(() => {
      if (this.#answers.get(key) === remembered) this.#answers.delete(key);
    });
    return answer;
  }

  #forgetOld(): void {
    const oldest = this.#clock.monotonicMs() - REMEMBERED_MS;
    for (const [key, { sinceMs }] of this.#answers) {
      if (sinceMs > oldest && this.#answers.size < MAX_REMEMBERED) return;
      this.#answers.delete(key);
    }
  }
}
