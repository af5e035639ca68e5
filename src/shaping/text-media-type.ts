import { KEPT_JSON, KEPT_TEXT } from "../core/results.ts";
import { detect } from "./summary/detect.ts";

/** Media type of a text by how it looks. */
export function mediaTypeOf(text: string): string {
  const detected = detect(text);
  switch (detected.type) {
    case "json":
      return KEPT_JSON;
    case "ndjson":
      return "application/x-ndjson";
    case "delimited":
      return detected.delimiter === "\t" ? "text/tab-separated-values" : "text/csv";
    case "html":
    case "markdown":
      return `text/${detected.type}`;
    case "log":
    case "text":
    case "binary":
      return KEPT_TEXT;
  }
}
