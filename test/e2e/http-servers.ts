import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

/** A tool as a server tells of it. */
export interface ToldTool {
  readonly name: string;
  readonly description?: string;
  readonly inputSchema?: Readonly<Record<string, unknown>>;
}

/** MCP servers over streamable HTTP, one for each path of one port, which a test steers. */
export interface HttpServers extends AsyncDisposable {
  /** Address of the server of a name. */
  url(name: string): string;
  /** What a server tells of from now on; one that tells of nothing answers no request at all. */
  readonly tools: Map<string, readonly ToldTool[]>;
  /** Tells the clients of a server that its tools are others now. */
  notify(name: string): void;
  /** How many clients listen to a server. */
  listeners(name: string): number;
}

interface Request {
  readonly id?: number | string;
  readonly method: string;
  readonly params?: { readonly protocolVersion?: string; readonly name?: string; readonly arguments?: unknown };
}

export async function startHttpServers(): Promise<HttpServers> {
  const tools = new Map<string, readonly ToldTool[]>();
  const streams = new Map<string, Set<ServerResponse>>();
  const server = createServer((request, response) => {
    void answer(request, response).catch(() => response.destroy());
  });

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const name = request.url?.split("/")[1] ?? "";
    const told = tools.get(name);
    if (told === undefined) return;
    if (request.method === "GET") {
      const open = streams.get(name) ?? new Set();
      streams.set(name, open.add(response));
      response.once("close", () => open.delete(response));
      response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
      return;
    }
    const message = request.method === "POST" ? (JSON.parse(await text(request)) as Request) : undefined;
    if (message?.id === undefined) {
      response.writeHead(message === undefined ? 200 : 202).end();
      return;
    }
    const body = JSON.stringify({ jsonrpc: "2.0", id: message.id, ...replyTo(message, name, told) });
    response.writeHead(200, { "content-type": "application/json", "mcp-session-id": name }).end(body);
  }

  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    tools,
    url: (name) => `http://127.0.0.1:${port}/${name}`,
    listeners: (name) => streams.get(name)?.size ?? 0,
    notify(name) {
      const message = { jsonrpc: "2.0", method: "notifications/tools/list_changed" };
      for (const stream of streams.get(name) ?? []) stream.write(`data: ${JSON.stringify(message)}\n\n`);
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function replyTo({ method, params }: Request, name: string, tools: readonly ToldTool[]): object {
  if (method === "initialize") {
    const capabilities = { tools: { listChanged: true } };
    return {
      result: { protocolVersion: params?.protocolVersion, capabilities, serverInfo: { name, version: "1" } },
    };
  }
  if (method === "tools/list") {
    return { result: { tools: tools.map((tool) => ({ inputSchema: { type: "object" }, ...tool })) } };
  }
  if (method === "tools/call") {
    const called = { server: name, tool: params?.name, arguments: params?.arguments };
    return { result: { content: [], structuredContent: called } };
  }
  return { error: { code: -32601, message: "unknown method" } };
}
