/** Messages below this are not worth the time of compressing them. */
export const COMPRESS_MIN_BYTES = 8 * 1024;

/**
 * Largest answer message. Results are kept below the 4 MiB that gRPC clients take by default where they are made; this
 * is what that may grow to as JSON with every character escaped.
 */
export const MAX_ANSWER_BYTES = 32 * 1024 * 1024;
