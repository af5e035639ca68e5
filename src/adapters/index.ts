import type { Adapter } from "../core/adapter.ts";
import { httpAdapter } from "./http/index.ts";

/** THE list of adapters: a new kind is one line here. */
export const adapters: readonly Adapter[] = [httpAdapter];
