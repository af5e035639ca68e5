import { WIRE_CLIENT_NAMES, WIRE_CLIENTS } from "./wire-clients.ts";

// A client in a process of its own, to be killed: caller.ts CLIENT PORT TOOL. Sends `output` at the first output.
const [name, port, tool] = process.argv.slice(2);
const client = WIRE_CLIENT_NAMES.find((candidate) => candidate === name);
if (client === undefined || tool === undefined) throw new Error("caller.ts CLIENT PORT TOOL");

const caller = WIRE_CLIENTS[client](Number(port));
if (tool === "drip") {
  for await (const message of caller.callStream({ name: tool })) {
    if (message.event.case === "output") process.send?.("output");
  }
} else {
  await caller.call({ name: tool });
}
