import type { KeepOutcome, KeepResult, ResultOrigin, ResultStore, ResultWriter } from "../core/results.ts";

/** Keeps what is too long of one call's result. */
export function createKeep(store: ResultStore, origin: Omit<ResultOrigin, "mediaType">): KeepResult {
  return (mediaType, content) => {
    const writer = store.create({ ...origin, mediaType });
    const bytes = typeof content === "string" ? Buffer.from(content) : content;
    return { handle: writer.handle, done: writeAll(writer, bytes) };
  };
}

/** A result is kept whole or not at all: one without its end would be taken for the whole. */
async function writeAll(writer: ResultWriter, bytes: Uint8Array): Promise<KeepOutcome> {
  await using open = writer;
  // Awaited here: what is returned unsettled would be disposed first.
  if (await open.write(bytes)) return await open.finish(true);
  return { ok: false, problem: "there is no room for it, or the gateway cannot write it to its disk" };
}
