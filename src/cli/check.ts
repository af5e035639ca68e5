/** One finding of `doctor`. */
export interface Check {
  /** What was looked at. */
  readonly subject: string;
  readonly status: "ok" | "warning" | "failed";
  /** What was found, in one line. */
  readonly message: string;
  /** What to do; empty when ok. */
  readonly mend: string;
}
