import { type ExportResult, ExportResultCode } from "@opentelemetry/core";
import type { Logger } from "../core/logger.ts";

type Exporting = (items: never, done: (result: ExportResult) => void) => void;

/** Makes exporters ones that log when what they send is no longer taken, once, and when it is again. */
export function watchedExporter(logger: Logger): <E extends { export: unknown }>(exporter: E, what: string) => E {
  return (exporter, what) => {
    let failing = false;
    const told = ({ code, error }: ExportResult): void => {
      const failed = code !== ExportResultCode.SUCCESS;
      if (failed && !failing) logger.warn("telemetry-not-sent", { what, error });
      if (!failed && failing) logger.info("telemetry-sent-again", { what });
      failing = failed;
    };
    // What an exporter exports differs, what it is told by does not.
    const send = (exporter.export as Exporting).bind(exporter);
    exporter.export = ((items: never, done: (result: ExportResult) => void) =>
      send(items, (result) => {
        told(result);
        done(result);
      })) satisfies Exporting;
    return exporter;
  };
}
