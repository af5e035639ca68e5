import type { Interceptor } from "@connectrpc/connect";

/** An API key or a token: itself, or what gives the one of now, asked before each request. */
export type Bearer = string | (() => string | Promise<string>);

/** Sends a credential with each request, as `authorization: Bearer …`; none where there is none. */
export function withBearer(bearer: Bearer | undefined): Interceptor[] {
  if (bearer === undefined) return [];
  return [
    (next) => async (request) => {
      request.header.set("authorization", `Bearer ${typeof bearer === "string" ? bearer : await bearer()}`);
      return next(request);
    },
  ];
}
