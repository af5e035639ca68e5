import { type Exchange, type Route, sendJson } from "./exchange.ts";

const CELSIUS: ReadonlyMap<string, number> = new Map([
  ["london", 12],
  ["北京", 18],
  ["shanghai", 22],
  ["上海", 22],
]);

/** A weather service that wants a key in the header `X-API-Key`. */
export const weatherRoutes: readonly Route[] = [{ method: "GET", path: /^\/weather$/, handle: currentWeather }];

function currentWeather({ request, response, url }: Exchange): void {
  if ((request.headers["x-api-key"] ?? "") === "") {
    sendJson(response, 401, { error: "X-API-Key is required" });
    return;
  }
  const location = url.searchParams.get("location") ?? "";
  const celsius = CELSIUS.get(location.toLowerCase());
  if (celsius === undefined) {
    sendJson(response, 404, { error: `no station near "${location}"` });
    return;
  }
  const units = url.searchParams.get("units") ?? "metric";
  sendJson(response, 200, { location, temp: units === "imperial" ? celsius * 1.8 + 32 : celsius, units });
}
