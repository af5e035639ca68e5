import { type DescMessage, type MessageShape, toBinary } from "@bufbuild/protobuf";

const BYTES = Symbol("binary form");

/** Has `messageBytes` give these bytes for a message, which must be its binary form: nothing is encoded again. */
export function keepMessageBytes(message: object, bytes: Uint8Array): void {
  Object.defineProperty(message, BYTES, { value: bytes });
}

/** A message in binary form. */
export function messageBytes<D extends DescMessage>(schema: D, message: MessageShape<D>): Uint8Array {
  const bytes: unknown = Reflect.get(message, BYTES);
  return bytes instanceof Uint8Array ? bytes : toBinary(schema, message);
}
