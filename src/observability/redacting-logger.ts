import type { CallContext } from "../core/call.ts";
import type { LogFields, Logger } from "../core/logger.ts";
import type { Redactor } from "../core/secrets.ts";
import { cleanFields } from "./log-fields.ts";

/**
 * A logger that masks secrets in every text of the fields and turns errors into plain data first. What a child's
 * fields hold is masked when the child is made.
 */
export function withRedaction(logger: Logger, redactor: Redactor): Logger {
  const clean = (fields: LogFields | undefined): LogFields | undefined =>
    fields === undefined ? undefined : cleanFields(fields, redactor);
  return {
    debug: (message, fields) => logger.debug(message, clean(fields)),
    info: (message, fields) => logger.info(message, clean(fields)),
    warn: (message, fields) => logger.warn(message, clean(fields)),
    error: (message, fields) => logger.error(message, clean(fields)),
    child: (fields) => withRedaction(logger.child(cleanFields(fields, redactor)), redactor),
  };
}

/** Has the log lines of calls masked by a redactor besides; undefined: they stay as they are. */
export function withMaskedLog(redactor: Redactor | undefined): (context: CallContext) => CallContext {
  if (redactor === undefined) return (context) => context;
  return (context) => ({ ...context, logger: withRedaction(context.logger, redactor) });
}
