/** Bytes before each message: a flag and its length. Source: gRPC over HTTP/2 protocol, "Length-Prefixed-Message". */
export const FRAME_HEAD_BYTES = 5;

const COMPRESSED = 1;

/** A message as it goes over the wire. */
export function frameOf(bytes: Uint8Array, compressed = false): Buffer {
  const frame = Buffer.allocUnsafe(FRAME_HEAD_BYTES + bytes.byteLength);
  frame[0] = compressed ? COMPRESSED : 0;
  frame.writeUInt32BE(bytes.byteLength, 1);
  frame.set(bytes, FRAME_HEAD_BYTES);
  return frame;
}

/** Whether the message of a frame is compressed. */
export function isCompressed(frame: Buffer): boolean {
  return (frame.readUInt8(0) & COMPRESSED) !== 0;
}
