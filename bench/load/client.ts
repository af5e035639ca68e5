/** One way to call a server. */
export interface LoadClient extends AsyncDisposable {
  /** One unary call; resolves with the bytes of the answer's message. @throws for any answer but success. */
  call(): Promise<Uint8Array>;
  /** Opens a stream and reads it to its end, or until the signal aborts. @throws where the stream fails. */
  stream(onMessage: (bytes: Uint8Array) => void, signal: AbortSignal): Promise<void>;
}
