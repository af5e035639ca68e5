import { createMemoryLedger } from "../../src/stores/memory-ledger.ts";
import { LEDGER_LIMITS, ledgerStoreConformance } from "../conformance/ledger-store.ts";
import { createFakeClock } from "../core/fake-clock.ts";

ledgerStoreConformance(async () => {
  const clock = createFakeClock();
  return { clock, store: createMemoryLedger({ clock, ...LEDGER_LIMITS }) };
});
