import { expect, test } from "vitest";
import { readSlowly, SLOW_READERS } from "../e2e/slow-reader.ts";

test.skipIf(process.platform !== "linux").each(["dense", "sparse"] as const)(
  "readers that take 10 KB/s of 1 GB of %s text for 30 s keep gateway and upstream within their bounds [G-D08]",
  async (text) => {
    const figures = await readSlowly(SLOW_READERS, 30_000, text);
    expect(figures.grownBytes).toBeLessThan(32 * 2 ** 20);
    for (const reader of figures.readers) {
      expect(reader.readBytes).toBeGreaterThan(0);
      expect(reader.upstreamBytes).toBeLessThan(16 * 2 ** 20);
    }
  },
);
