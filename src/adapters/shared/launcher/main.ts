// The launcher: a small process that starts the programs of script tools for the gateway. fork() copies the page tables
// of the process that calls it, which would hold a large gateway up for tens of milliseconds a call. It also outlives the
// gateway just long enough to end what the gateway left behind, however that ended.
import { Socket } from "node:net";
import { Descriptors } from "./descriptors.ts";
import { type Frame, FrameReader, jsonPayload, type StartRequest, writeFrame } from "./frames.ts";
import { Program } from "./program.ts";

/** The descriptor of the link to the gateway. */
const LINK = 3;

const link = new Socket({ fd: LINK, readable: true, writable: true });
const reader = new FrameReader();
const programs = new Map<number, Program>();
const descriptors = new Descriptors();

// Who stops a whole session or control group means the gateway, which ends the link.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);

link.on("data", (chunk: Buffer) => {
  for (const frame of reader.push(chunk)) take(frame);
});
link.on("error", () => undefined);
link.on("close", () => {
  // The process ends by itself once they are gone.
  for (const program of programs.values()) program.kill();
});

function take({ kind, id, payload }: Frame): void {
  const program = programs.get(id);
  switch (kind) {
    case "start":
      start(id, JSON.parse(payload.toString()) as StartRequest);
      return;
    case "input":
      program?.input(payload);
      return;
    case "input-end":
      program?.inputEnd();
      return;
    case "credit":
      program?.credit(payload.readUInt32BE());
      return;
    case "kill":
      program?.kill();
      return;
    default:
      throw new Error(`the gateway sent "${kind}"`);
  }
}

function start(id: number, request: StartRequest): void {
  if (!descriptors.sufficeFor(programs.size)) {
    writeFrame(link, "refused", id, jsonPayload({ code: "EMFILE" }));
    return;
  }
  let gone = false;
  const program = new Program(
    request,
    (kind, payload) => writeFrame(link, kind, id, payload),
    () => {
      gone = true;
      programs.delete(id);
    },
  );
  if (!gone) programs.set(id, program);
}
