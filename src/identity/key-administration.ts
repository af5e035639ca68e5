import { apiKeyFile, changeApiKeys, readApiKeys } from "./api-key-file.ts";
import { createKey, type NewKey, type StoredKey } from "./api-keys.ts";

/** The API keys of a state folder, for who administers them. */
export interface KeyAdministration {
  /** Makes and keeps a key. `key` is told here and never again. @throws GatewayError STORE_FAILED. */
  create(facts: Pick<StoredKey, "name" | "roles" | "createTimeMs" | "expireTimeMs">): Promise<NewKey>;
  /** In the order they were made. @throws GatewayError STORE_FAILED. */
  list(): Promise<readonly StoredKey[]>;
  /** Revokes the key of an id, or all of a name; those that were not revoked before. @throws GatewayError STORE_FAILED. */
  revoke(idOrName: string, timeMs: number): Promise<readonly StoredKey[]>;
}

/**
 * The API keys of a state folder. A gateway that runs there takes over what changes. `note` puts on record what was done,
 * and does not fail.
 */
export function openApiKeys(
  stateFolder: string,
  note: (act: { readonly action: string; readonly facts: object }) => Promise<void> = async () => undefined,
): KeyAdministration {
  const file = apiKeyFile(stateFolder);
  return {
    async create(facts) {
      const made = createKey(facts);
      await changeApiKeys(file, (keys) => [...keys, made.stored]);
      await note({ action: "key-create", facts: factsOf(made.stored) });
      return made;
    },
    list: () => readApiKeys(file),
    async revoke(idOrName, revokeTimeMs) {
      const revoked: StoredKey[] = [];
      await changeApiKeys(file, (keys) =>
        keys.map((key) => {
          if (key.revokeTimeMs !== undefined || (key.id !== idOrName && key.name !== idOrName)) return key;
          const ended = { ...key, revokeTimeMs };
          revoked.push(ended);
          return ended;
        }),
      );
      for (const key of revoked) await note({ action: "key-revoke", facts: factsOf(key) });
      return revoked;
    },
  };
}

function factsOf({ id, name, roles }: StoredKey): object {
  return { id, name, roles };
}
