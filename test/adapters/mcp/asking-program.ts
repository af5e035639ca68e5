// A fake MCP server over its standard streams whose tools ask their callers. Argument: the revision it speaks,
// `2025-11-25` or `2026-07-28`. What it is told goes to its error output's place, a file, line by line.
import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";

interface Message {
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: {
    readonly name?: string;
    readonly arguments?: object;
    readonly inputResponses?: object;
    readonly requestState?: string;
    readonly _meta?: { readonly progressToken?: string };
  };
  readonly result?: object;
  readonly error?: object;
}

const [, , revision = "2025-11-25", file = "/dev/null"] = process.argv;
const isModern = revision === "2026-07-28";
const META = { resultType: "complete", ttlMs: 0, cacheScope: "private" };
const FORM = {
  method: "elicitation/create",
  params: {
    message: "Which size?",
    requestedSchema: { type: "object", properties: { size: { type: "integer" } }, required: ["size"] },
  },
};
const SAMPLE = { method: "sampling/createMessage", params: { messages: [], maxTokens: 10 } };
const TOOLS = ["ask", "ask_named", "sample", "plain", "wait", "release"].map((name) => ({
  name,
  inputSchema: { type: "object" },
}));

/** Calls that wait for another one. */
const held: Message["id"][] = [];
/** The calls that wait for an answer, by the id of what they asked. */
const asking = new Map<string, Message["id"]>();
let questions = 0;

function send(message: object): void {
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
}

function say(id: Message["id"], words: unknown): void {
  const text = JSON.stringify(words);
  send({ id, result: { ...(isModern ? META : {}), content: [{ type: "text", text }] } });
}

function call(message: Message): void {
  const { id, params } = message;
  const { name } = params ?? {};
  if (name === "plain") say(id, "plain");
  else if (name === "wait") held.push(id);
  else if (name === "release") for (const each of [...held.splice(0), id]) say(each, "released");
  else if (isModern) askModern(message);
  else {
    questions += 1;
    asking.set(`q${questions}`, id);
    const { progressToken } = params?._meta ?? {};
    const named = { ...FORM, params: { ...FORM.params, _meta: { progressToken } } };
    send({ id: `q${questions}`, ...(name === "sample" ? SAMPLE : name === "ask" ? FORM : named) });
  }
}

function askModern({ id, params }: Message): void {
  const { name, inputResponses, requestState } = params ?? {};
  if (inputResponses === undefined) {
    const inputRequests = { q1: name === "ask" ? FORM : SAMPLE };
    send({ id, result: { resultType: "input_required", inputRequests, requestState: `state of ${String(id)}` } });
  } else say(id, { inputResponses, requestState, arguments: params?.arguments });
}

const INFO = { capabilities: { tools: {} }, serverInfo: { name: "asking", version: "1" } };

createInterface({ input: process.stdin }).on("line", (line) => {
  appendFileSync(file, `${line}\n`);
  const message = JSON.parse(line) as Message;
  const { id, method } = message;
  if (method === "initialize") send({ id, result: { protocolVersion: "2025-11-25", ...INFO } });
  else if (method === "server/discover" && isModern) {
    send({ id, result: { ...META, supportedVersions: [revision], ...INFO } });
  } else if (method === "tools/list") send({ id, result: { ...(isModern ? META : {}), tools: TOOLS } });
  else if (method === "tools/call") call(message);
  else if (method === undefined && typeof id === "string") {
    say(asking.get(id), message.result ?? message.error);
    asking.delete(id);
  } else if (method !== undefined && id !== undefined) {
    send({ id, error: { code: -32_601, message: "Method not found" } });
  }
});
