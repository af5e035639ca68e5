/** A body that is made while it is sent, since it is large and partly there in another form already. */
export interface StreamedBody {
  /** What says how it is to be read. */
  readonly contentType: string;
  /** In bytes. */
  readonly length: number;
  /** The same bytes each time, in pieces. */
  pieces(): Iterable<Buffer>;
  /** For people: without the bytes of files. */
  readonly shown: string;
}

/** A request's body. */
export type RequestPayload = string | StreamedBody;
