import type { UniversalServerResponse } from "@connectrpc/connect/protocol";

/** What stands as it is in `grpc-message`: visible ASCII and space, but `%`. Source: gRPC over HTTP/2, "Status-Message". */
const TO_ESCAPE = /[^\x20-\x24\x26-\x7e]+/g;

/**
 * The answer with `grpc-message` escaped no further than gRPC asks. Connect escapes `:`, `/`, `,` and `;` as well, and
 * grpc-js, which reads the field with `decodeURI`, leaves those escapes in the text that people see.
 */
export function plainGrpcMessage(answer: UniversalServerResponse): UniversalServerResponse {
  const { trailer } = answer;
  if (trailer === undefined) return answer;
  return {
    ...answer,
    // Connect fills it in while the body is read.
    get trailer() {
      const message = trailer.get("grpc-message");
      if (message !== null) trailer.set("grpc-message", escapeGrpcMessage(decodeURIComponent(message)));
      return trailer;
    },
  };
}

/** A text as the value of `grpc-message`. */
export function escapeGrpcMessage(text: string): string {
  return text.replace(TO_ESCAPE, encodeURIComponent);
}
