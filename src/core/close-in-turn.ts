/** Closes what is there, each when the one before is closed. */
export async function closeInTurn(
  parts: readonly (Partial<AsyncDisposable & Disposable> | undefined)[],
): Promise<void> {
  for (const part of parts) {
    await part?.[Symbol.asyncDispose]?.();
    part?.[Symbol.dispose]?.();
  }
}
