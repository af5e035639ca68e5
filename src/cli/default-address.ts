/** Where the gateway listens unless something else is said. */
export const DEFAULT_ADDRESS = "127.0.0.1:7433";
