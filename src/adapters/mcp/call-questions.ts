import type { ResultNotice, UpstreamResult } from "../../core/call.ts";
import type { Continuation, InputRequest } from "../../core/input-request.ts";
import { inputRequired } from "../../core/input-required.ts";
import { type InputReply, inputReply } from "./input.ts";

/** Something a server asks in the middle of a call. */
export interface Question {
  /** The server's own id of it. */
  readonly id: string;
  readonly request: InputRequest;
  /** Answers it; what the server does not take any more is lost. */
  reply(reply: InputReply): void;
}

/** What a server asks in the middle of one call, and what became of it. */
export class CallQuestions {
  readonly #open = new Map<string, Question>();
  readonly #declined: InputRequest[] = [];
  #nobodys = 0;

  /** Whether something waits for an answer. */
  get waiting(): boolean {
    return this.#open.size > 0;
  }

  /** What waits for an answer, by the server's ids. */
  get requests(): ReadonlyMap<string, InputRequest> {
    return new Map([...this.#open].map(([id, { request }]) => [id, request]));
  }

  /** Keeps a question until it is answered. */
  keep(question: Question): void {
    this.#open.set(question.id, question);
  }

  /** Says no for a caller who is not asked. */
  decline(question: Question): void {
    this.#declined.push(question.request);
    question.reply(inputReply(question.request.kind, { action: "decline" }));
  }

  /** A question that may have been this call's was told no. */
  pass(): void {
    this.#nobodys += 1;
  }

  /** Gives the server the answers; one that is missing is a cancelled one. */
  answer(answers: Continuation["answers"]): void {
    for (const [id, { request, reply }] of this.#open) {
      reply(inputReply(request.kind, answers.get(id) ?? { action: "cancel" }));
    }
    this.#open.clear();
  }

  /** The call's result, which is a failure where the server was told no in its caller's name: it went another way then. */
  judged(result: UpstreamResult, name: string): UpstreamResult {
    const noticed =
      this.#nobodys === 0 ? result : { ...result, notices: [...(result.notices ?? []), this.#notice(name)] };
    if (this.#declined.length === 0) return noticed;
    const said = result.failure === undefined ? [] : [{ type: "text", text: result.failure.message } as const];
    return { ...noticed, content: [...said, ...result.content], failure: inputRequired(name, this.#declined) };
  }

  #notice(name: string): ResultNotice {
    const message = `${name}: the server asked for input while several of its calls ran and did not say for which, so that it was told no (${this.#nobodys} times); the result may be another with an answer`;
    return { reason: "QUESTION_DECLINED", message };
  }
}
