import type { Redactor } from "../core/secrets.ts";

/** Masks what each of the redactors masks, one after the other. */
export function chainRedactors(first: Redactor, second: Redactor): Redactor {
  return {
    text: (value) => second.text(first.text(value)),
    stream() {
      const [before, after] = [first.stream(), second.stream()];
      return {
        push: (piece) => after.push(before.push(piece)),
        end: () => after.push(before.end()) + after.end(),
      };
    },
  };
}
