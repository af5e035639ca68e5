import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { text } from "node:stream/consumers";

/** An upstream whose answers a test chooses: bodies over HTTP, and the same parts as results of an MCP server. */
export interface ContentServers extends AsyncDisposable {
  readonly origin: string;
  /** Resolves when an answer in pieces has begun; its rest is sent by {@link goOn}. */
  begun(): Promise<void>;
  goOn(): void;
}

/** One answer: a body with its media type, and the parts of an MCP result. */
export interface Answer {
  readonly mimeType: string;
  readonly body: Buffer;
  readonly content: readonly object[];
  /** Whether it stops in its middle until it is told to go on. */
  readonly halts?: boolean;
}

interface Message {
  readonly id?: number | string;
  readonly method: string;
  readonly params?: {
    readonly protocolVersion?: string;
    readonly name?: string;
    readonly _meta?: { readonly progressToken?: string | number };
  };
}

/** Serves `/NAME` as a body and `/mcp` as an MCP server with a tool for each name. */
export async function startContentServers(answers: Readonly<Record<string, Answer>>): Promise<ContentServers> {
  const begun = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  const halt = (): Promise<void> => {
    begun.resolve();
    return gate.promise;
  };
  const server = createServer((request, response) => {
    const name = (request.url ?? "").slice(1);
    const serving =
      name === "mcp" ? serveMcp(request, response, halt, answers) : serveBody(response, halt, answers[name]);
    serving.catch(() => response.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  return {
    origin: `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`,
    begun: () => begun.promise,
    goOn: () => gate.resolve(),
    async [Symbol.asyncDispose]() {
      gate.resolve();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function serveBody(
  response: ServerResponse,
  halt: () => Promise<void>,
  answer: Answer | undefined,
): Promise<void> {
  if (answer === undefined) return void response.writeHead(404).end();
  response.setHeader("content-type", answer.mimeType);
  await sendInTwo(response, answer.body, answer.halts === true ? halt : undefined);
}

async function serveMcp(
  request: IncomingMessage,
  response: ServerResponse,
  halt: () => Promise<void>,
  answers: Readonly<Record<string, Answer>>,
): Promise<void> {
  const message = request.method === "POST" ? (JSON.parse(await text(request)) as Message) : undefined;
  if (message?.id === undefined) return void response.writeHead(message === undefined ? 405 : 202).end();
  const answer = message.method === "tools/call" ? answers[message.params?.name ?? ""] : undefined;
  response.setHeader("content-type", "text/event-stream");
  if (answer?.halts === true) tellProgress(message, response);
  const result = resultOf(message, answer, answers);
  await sendInTwo(
    response,
    Buffer.from(eventOf({ jsonrpc: "2.0", id: message.id, result })),
    answer?.halts === true ? halt : undefined,
  );
}

function tellProgress({ params: asked }: Message, response: ServerResponse): void {
  const progressToken = asked?._meta?.progressToken;
  if (progressToken === undefined) return;
  const params = { progressToken, progress: 1, total: 2, message: "half of it" };
  response.write(eventOf({ jsonrpc: "2.0", method: "notifications/progress", params }));
}

function resultOf(
  { method, params }: Message,
  answer: Answer | undefined,
  answers: Readonly<Record<string, Answer>>,
): object {
  if (method === "initialize") {
    const serverInfo = { name: "content", version: "1" };
    return { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo };
  }
  const tools = Object.keys(answers).map((name) => ({ name, description: name, inputSchema: { type: "object" } }));
  return answer === undefined ? { tools } : { content: answer.content };
}

function eventOf(message: object): string {
  return `data: ${JSON.stringify(message)}\n\n`;
}

async function sendInTwo(
  response: ServerResponse,
  bytes: Buffer,
  halt: (() => Promise<void>) | undefined,
): Promise<void> {
  const half = Math.floor(bytes.length / 2);
  response.write(bytes.subarray(0, half));
  await halt?.();
  response.end(bytes.subarray(half));
}
