import type { RegistrationStore, StoredRegistration } from "../core/store.ts";

/** Keeps registrations as long as the process lives; for tests and for gateways that are to forget. */
export function createMemoryRegistrations(initial: readonly StoredRegistration[] = []): RegistrationStore {
  const kept = new Map(initial.map((registration) => [registration.name, registration]));
  return {
    load: async () => [...kept.values()],
    async put(registration) {
      kept.set(registration.name, registration);
    },
    async remove(name) {
      kept.delete(name);
    },
    check: async () => undefined,
    [Symbol.asyncDispose]: async () => undefined,
  };
}
