import type { SecretSource } from "../../core/secrets.ts";
import type { Launcher } from "../shared/launcher/launcher.ts";
import { secretValue, unusableSecret } from "../shared/secret-value.ts";
import { filledValue } from "../shared/value-template.ts";
import type { ProgramTarget } from "./mcp-config.ts";
import type { Noise } from "./noise.ts";
import type { ServerProgram } from "./program-link.ts";

/** What programs of one server are started with. */
export interface ProgramSource {
  readonly launcher: Launcher;
  readonly noise: Noise;
  /** Hides the secrets that the programs got. */
  mask(text: string): string;
}

/** The program of a server, with its secrets as they are now. @throws GatewayError SECRET_MISSING. */
export function serverProgram(server: string, target: ProgramTarget, secrets: SecretSource): ServerProgram {
  const secret = (reference: string): string => {
    const value = secretValue(server, reference, secrets);
    if (value.includes("\0")) throw unusableSecret(server, reference, "holds a NUL, which no variable can");
    return value;
  };
  const env = Object.fromEntries(target.env.map(({ name, value }) => [name, filledValue(value, secret)]));
  return { file: target.command, args: target.args, cwd: target.cwd, env };
}

/** Shortest secret that is looked for by itself in what a server prints. */
const MIN_SECRET = 4;

/** Hides the values that the references have now. */
export function secretMask(references: readonly string[], secrets: SecretSource): (text: string) => string {
  return (text) => {
    let masked = text;
    for (const reference of references) {
      const value = secrets.peek(reference) ?? "";
      if (value.length >= MIN_SECRET) masked = masked.replaceAll(value, "***");
    }
    return masked;
  };
}
