// Loaded before a server of others: it listens on loopback alone, and finds no other machine.
import dns from "node:dns";
import { Server } from "node:net";

Server.prototype.listen = new Proxy(Server.prototype.listen, {
  apply(listen, server: Server, args: readonly unknown[]) {
    const [first, second] = args;
    const port = typeof first === "object" && first !== null && "port" in first ? first.port : first;
    const host = typeof second === "string" ? second : "127.0.0.1";
    return Reflect.apply(listen, server, [Number(port), host, ...args.filter((arg) => typeof arg === "function")]);
  },
});

dns.lookup = new Proxy(dns.lookup, {
  apply(lookup, dnsModule: unknown, args: readonly unknown[]) {
    const [name] = args;
    if (name === "localhost" || name === "127.0.0.1") return Reflect.apply(lookup, dnsModule, args);
    const told = args.find((arg) => typeof arg === "function");
    const error = Object.assign(new Error(`getaddrinfo ENOTFOUND ${String(name)}`), { code: "ENOTFOUND" });
    if (told !== undefined) process.nextTick(told, error);
    return undefined;
  },
});
