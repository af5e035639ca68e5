/** Begins a line that says how much CPU time the longest turn of the event loop took, in milliseconds. */
export const LONGEST_TURN = "longest-turn-ms";
