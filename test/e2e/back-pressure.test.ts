import { expect, test } from "vitest";
import { readSlowly, SLOW_READERS } from "./slow-reader.ts";
import { START_TIMEOUT_MS } from "./spawned.ts";

/**
 * For four readers together. In so short a run the garbage of the start counts too; the long run under test/soak holds
 * them to 32 MiB.
 */
const MAX_GROWN_BYTES = 64 * 2 ** 20;

test.skipIf(process.platform !== "linux").each(["dense", "sparse"] as const)(
  "a slow reader of %s text slows the upstream down instead of filling the gateway [G-D08]",
  { timeout: 2 * START_TIMEOUT_MS },
  async (text) => {
    const figures = await readSlowly(SLOW_READERS, 5_000, text);
    expect(figures.grownBytes).toBeLessThan(MAX_GROWN_BYTES);
    for (const reader of figures.readers) {
      expect(reader.readBytes).toBeGreaterThan(0);
      expect(reader.upstreamBytes).toBeLessThan(16 * 2 ** 20);
    }
  },
);
