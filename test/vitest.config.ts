import { defineConfig } from "vitest/config";

/** `unit` is quick and starts no gateway; `e2e` starts whole gateways; `soak` runs for minutes and is not part of `npm test`. */
export default defineConfig({
  test: {
    projects: [
      { test: { name: "unit", root: ".", include: ["test/**/*.test.ts"], exclude: ["test/e2e/**", "test/soak/**"] } },
      { test: { name: "e2e", root: ".", include: ["test/e2e/**/*.test.ts"], testTimeout: 20_000, hookTimeout: 20_000 } },
      { test: { name: "soak", root: ".", include: ["test/soak/**/*.test.ts"], testTimeout: 600_000, hookTimeout: 60_000 } },
    ],
  },
});
