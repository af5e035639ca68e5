/** The upstream answered, and the answer cannot be read: a failure of the tool, not an error of the call. */
export class UnreadableAnswer extends Error {
  /** `message` goes on after "the upstream's answer cannot be read: ". */
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "UnreadableAnswer";
  }
}
