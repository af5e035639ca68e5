import { randomFillSync } from "node:crypto";
import { v7 } from "uuid";

/** Random bytes one id takes. */
const BYTES = 16;
/** Ids made of one filling: asking the system for each costs several times the rest of an id. */
const IDS = 256;

/** A source of UUIDv7, whose order is that of their milliseconds. Source: RFC 9562, 5.7. */
export function createCallIds(): () => string {
  const pool = Buffer.alloc(BYTES * IDS);
  let next = pool.length;
  return () => {
    if (next === pool.length) {
      randomFillSync(pool);
      next = 0;
    }
    next += BYTES;
    return v7({ random: pool.subarray(next - BYTES, next) });
  };
}
