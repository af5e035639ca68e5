import { headerProblem } from "../shared/header-rules.ts";
import { TemplateChecker } from "../shared/template-checker.ts";
import type { ParsedTemplate, TextTemplate } from "../shared/text-template.ts";

/** Reads the keys of one HTTP declaration, and keeps what is wrong with them and which parameters they name. */
export class DeclarationChecker extends TemplateChecker {
  /** Headers the declaration sets, in lower case. */
  readonly headerNames = new Set<string>();

  /** Notes that the declaration sets a header, and that it may, with this literal text. */
  claimHeader(pointer: string, name: string, text: string): void {
    const problem = headerProblem(name, text);
    if (problem !== undefined) this.issue(pointer, problem);
    if (this.headerNames.has(name.toLowerCase()))
      this.issue(pointer, `header \`${name}\` is set twice; names do not differ by case`);
    this.headerNames.add(name.toLowerCase());
  }

  /** The parts of a `{param}` template that was written as `text`; none where it is no template. */
  template(parsed: ParsedTemplate, text: string, pointer: string): TextTemplate {
    if (!parsed.ok) {
      this.issue(pointer, parsed.problem);
      return [];
    }
    this.refer(parsed.parts, pointer);
    if (!text.includes("$")) return parsed.parts;
    for (const [mark, name = ""] of text.matchAll(/\$([\p{L}_][\p{L}\p{N}_]*)/gu)) {
      if (!Object.hasOwn(this.params, name)) continue;
      const message = `\`${mark}\` is sent as it stands: \`$\` has a meaning in bodies only; write \`{${name}}\``;
      this.warn(pointer, message);
    }
    return parsed.parts;
  }

  /** A list can stand alone in a query value or form field, and nowhere else in it. `place` is `query` or `form`. */
  checkPair(parts: TextTemplate, pointer: string, place: string): void {
    const alone = parts.length === 1;
    this.checkScalars(parts, pointer, alone ? `the ${place}` : `text in the ${place}`, alone);
  }

  protected override aboutVariables(): string {
    return "environment variables are never read here: a secret goes into `auth.secret_ref`, a dollar sign in a body is `$$`";
  }
}
