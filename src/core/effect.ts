/** What a call changed: surely nothing, confirmed by the upstream, or unknown because the answer was lost. */
export type Effect = "none" | "committed" | "unknown";
