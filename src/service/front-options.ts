import type { Logger } from "../core/logger.ts";
import type { Authenticate } from "./authenticate.ts";
import type { ShownCertificates } from "./peer.ts";
import type { RpcDeps } from "./rpc.ts";
import type { UnreadAnswers } from "./unread-answers.ts";

/** What the fronts of one gateway share. */
export interface FrontOptions {
  readonly authenticate: Authenticate;
  readonly logger: Logger;
  readonly rpcs: RpcDeps;
  /** Largest request message. */
  readonly requestBytes: number;
  /** Answers that peers have not taken. */
  readonly unread: UnreadAnswers;
  readonly shown: ShownCertificates;
}
