import { createMemoryRegistrations } from "../../src/stores/memory-registrations.ts";
import { storeConformance } from "../conformance/store.ts";

storeConformance(async () => {
  const store = createMemoryRegistrations();
  return { store, reopen: async () => createMemoryRegistrations(await store.load(() => undefined)) };
});
