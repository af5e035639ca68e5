import { GatewayError } from "../core/errors.ts";

/** REQUEST_INVALID for one field. `field` is its path as in the .proto files, `description` one line. */
export function requestInvalid(field: string, reason: string, description: string): GatewayError {
  return new GatewayError("REQUEST_INVALID", `\`${field}\` ${description}`, {
    violations: [{ field, reason, description }],
    metadata: { field },
  });
}

/** Text of a field, or `undefined` where it is empty. @throws GatewayError REQUEST_INVALID over `maxLength` UTF-16 units. */
export function optionalText(field: string, value: string, maxLength: number): string | undefined {
  if (value.length > maxLength) {
    throw requestInvalid(field, "TOO_LONG", `may have at most ${maxLength} characters, got ${value.length}`);
  }
  return value === "" ? undefined : value;
}

/** Longest name the service looks up: `server/tool` with 64 characters each, and an alias is shorter. */
const MAX_NAME_LENGTH = 129;

/** The name of a tool. @throws GatewayError REQUEST_INVALID where it is empty or longer than any name can be. */
export function requiredName(field: string, value: string): string {
  const name = optionalText(field, value, MAX_NAME_LENGTH);
  if (name === undefined) throw requestInvalid(field, "MISSING", "must name a tool, got nothing");
  return name;
}
