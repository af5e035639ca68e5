import { GatewayError } from "../core/errors.ts";

/** Why a claim is refused for want of room. */
export function ledgerFull(maxEntries: number): GatewayError {
  return new GatewayError(
    "LEDGER_FULL",
    `${maxEntries} calls with a \`request_id\` are on record, as many as \`ledger.max_entries\` allows; the call was not made`,
    { metadata: { max_entries: String(maxEntries) } },
  );
}
