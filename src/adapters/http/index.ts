import type { Adapter, ExplainedSetting } from "../../core/adapter.ts";
import { isJsonObject, type JsonValue, ownValue, stringifyJson } from "../../core/json.ts";
import { HTTP_CONFIG_SCHEMA } from "./config-schema.ts";
import { configureHttp } from "./configure.ts";
import type { HttpConfig } from "./http-config.ts";
import { HttpUpstream } from "./http-upstream.ts";

/** Tools behind HTTP/1.1 APIs. */
export const httpAdapter: Adapter<HttpConfig> = {
  kind: "http",
  configSchema: HTTP_CONFIG_SCHEMA,
  configure: configureHttp,
  explain: explainHttp,
  open: (config, deps) => Promise.resolve(new HttpUpstream(config, deps)),
};

/** Where arguments go that no template names, in words for people. */
const UNNAMED_ARGUMENTS = { query: "query", body: "JSON body", nowhere: "refused" } as const;

/** Values are shown as declared, but for those of headers: someone may have put a credential there. */
function explainHttp(config: HttpConfig): readonly ExplainedSetting[] {
  const { declared, auth } = config;
  const settings: ExplainedSetting[] = [
    { key: "method", value: config.method },
    { key: "endpoint", value: shown(ownValue(declared, "endpoint")) },
  ];
  for (const [name, value] of entriesOf(ownValue(declared, "query")))
    settings.push({ key: `query.${name}`, value: shown(value) });
  for (const [name] of entriesOf(ownValue(declared, "headers")))
    settings.push({ key: `headers.${name}`, value: "***" });
  for (const key of ["body", "request_body"]) {
    const body = ownValue(declared, key);
    if (body !== undefined) settings.push({ key, value: shown(body) });
  }
  if (auth !== undefined) {
    settings.push(
      { key: "auth.header_name", value: auth.headerName },
      { key: "auth.secret_ref", value: auth.secretRef },
    );
    if (auth.prefix !== "") settings.push({ key: "auth.prefix", value: auth.prefix.trimEnd() });
  }
  settings.push({ key: "unnamed_arguments", value: UNNAMED_ARGUMENTS[config.rest] });
  return settings;
}

function entriesOf(map: JsonValue | undefined): [string, JsonValue][] {
  return isJsonObject(map) ? Object.entries(map) : [];
}

function shown(value: JsonValue | undefined): string {
  return typeof value === "string" ? value : stringifyJson(value ?? null);
}
