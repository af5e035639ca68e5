import type { CallerCertificate, CertificateRule } from "../core/identity.ts";
import { type Checked, refused } from "./checked.ts";

/** Whose a certificate is, by the first rule that fits one of its names. */
export function checkCertificate({ problem, names }: CallerCertificate, rules: readonly CertificateRule[]): Checked {
  if (problem !== undefined) return refused(`certificate refused: ${problem}`);
  for (const rule of rules) {
    const found = names.find(({ type, value }) => type === rule.type && matches(rule.name, value));
    if (found !== undefined) {
      return { principal: { id: `cert:${found.value}`, roles: rule.roles, kind: "certificate" } };
    }
  }
  return refused("certificate of nobody", { names: names.map(({ type, value }) => `${type}:${value}`) });
}

/** Whether a name fits a pattern in which `*` stands for any characters. Takes time in proportion to both. */
function matches(pattern: string, name: string): boolean {
  const [first = "", ...rest] = pattern.split("*");
  const last = rest.pop();
  if (last === undefined) return pattern === name;
  if (name.length < first.length + last.length || !name.startsWith(first) || !name.endsWith(last)) return false;
  let at = first.length;
  const end = name.length - last.length;
  for (const part of rest) {
    const found = name.indexOf(part, at);
    if (found < 0 || found + part.length > end) return false;
    at = found + part.length;
  }
  return true;
}
