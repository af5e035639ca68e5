import type { DescService } from "@bufbuild/protobuf";
import type { HandlerContext, MethodImpl } from "@connectrpc/connect";

/** What a handler is given beside its message, by every front. */
export type RpcContext = Pick<HandlerContext, "values">;

type Handler<F> = F extends (request: infer Request, context: HandlerContext) => infer Answer
  ? (request: Request, context: RpcContext) => Answer
  : never;

/** Handlers of a service's methods, whatever front they are called through. */
export type Service<T extends DescService> = { [P in keyof T["method"]]: Handler<MethodImpl<T["method"][P]>> };

/** Takes services on. */
export interface ServiceRouter {
  service<T extends DescService>(service: T, implementation: Service<T>): void;
}
