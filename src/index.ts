export { type GatewayConfig, type GatewayConfigOutcome, parseGatewayConfig } from "./config/gateway-config.ts";
export type { Reconfigured } from "./config/live-settings.ts";
export { type Clock, systemClock } from "./core/clock.ts";
export {
  ERROR_CATALOGUE,
  type ErrorReason,
  GatewayError,
} from "./core/errors.ts";
export { FAILURE_REASONS, type FailureReason, NOTICE_REASONS, type NoticeReason } from "./core/failures.ts";
export { type LogFields, type Logger, silentLogger } from "./core/logger.ts";
export { VERSION } from "./core/version.ts";
export { createGateway, type Gateway, type GatewayOptions } from "./gateway.ts";
export { createPinoLogger, type PinoLogger, type PinoLoggerOptions } from "./observability/pino-logger.ts";
export { withRedaction } from "./observability/redacting-logger.ts";
export { createSecrets, type Secrets } from "./secrets/secrets.ts";
