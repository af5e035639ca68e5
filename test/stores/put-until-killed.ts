import { createFileRegistrations } from "../../src/stores/file-registrations.ts";
import { sampleRegistration } from "../conformance/registration-sample.ts";

// Puts registrations without end and says which are kept: `name version` for each. Ends by being killed.
const [folder = "", round = "0"] = process.argv.slice(2);
const store = createFileRegistrations(folder);

async function putOn(worker: number): Promise<never> {
  for (let version = 0; ; version++) {
    const name = `r${round}-w${worker}-${version % 5}`;
    await store.put(sampleRegistration(name, { text: `${version} `.repeat(2_000), updateTimeMs: version }));
    process.stdout.write(`${name} ${version}\n`);
  }
}

await Promise.all([0, 1, 2, 3].map(putOn));
