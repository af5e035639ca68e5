import { createSocket } from "node:dgram";
import { Resolver } from "node:dns";
import { once } from "node:events";
import type { LookupFunction } from "node:net";

/** A DNS server on loopback whose answers change. */
export interface NameServer extends AsyncDisposable {
  /** Names it was asked for, in turn. */
  readonly asked: readonly string[];
  /** Looks names up there, as the system would. */
  readonly lookup: LookupFunction;
}

/** Answers every question for IPv4 addresses with these lists, one after the other; the last one stays. */
export async function startNameServer(...answers: readonly (readonly string[])[]): Promise<NameServer> {
  const asked: string[] = [];
  const socket = createSocket("udp4");
  socket.on("message", (query, from) => {
    const { name, end } = question(query);
    const addresses = answers[Math.min(asked.length, answers.length - 1)] ?? [];
    asked.push(name);
    socket.send(answer(query.subarray(0, end), addresses), from.port, from.address);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  const resolver = new Resolver();
  resolver.setServers([`127.0.0.1:${socket.address().port}`]);
  return {
    asked,
    lookup: (host, options, found) => {
      resolver.resolve4(host, (error, addresses) => {
        if (error !== null) found(error, []);
        else if (options.all === true)
          found(
            null,
            addresses.map((address) => ({ address, family: 4 })),
          );
        else found(null, addresses[0] ?? "", 4);
      });
    },
    async [Symbol.asyncDispose]() {
      resolver.cancel();
      socket.close();
      await once(socket, "close");
    },
  };
}

/** Source: RFC 1035, section 4.1.2. */
function question(query: Buffer): { readonly name: string; readonly end: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at] ?? 0; length !== 0; length = query[at] ?? 0) {
    labels.push(query.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join("."), end: at + 5 };
}

/** Its time to live is none, so that each connection asks again. Source: RFC 1035, section 4.1.3. */
function answer(query: Buffer, addresses: readonly string[]): Buffer {
  const head = Buffer.from(query);
  head.writeUInt16BE(0x8180, 2);
  head.writeUInt16BE(addresses.length, 6);
  head.writeUInt16BE(0, 8);
  head.writeUInt16BE(0, 10);
  const records = addresses.map((address) =>
    Buffer.from([0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, ...address.split(".").map(Number)]),
  );
  return Buffer.concat([head, ...records]);
}
