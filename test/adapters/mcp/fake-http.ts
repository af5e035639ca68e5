import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text as readText } from "node:stream/consumers";
import { type FakeOptions, FakeServer, type Message } from "./fake-behaviour.ts";

/** How a fake server over HTTP behaves. */
export interface FakeHttpOptions extends FakeOptions {
  /** Answers come as events, or as JSON. Default `sse`. */
  readonly answers?: "sse" | "json";
  /** Whether it gives sessions. Default true. */
  readonly sessions?: boolean;
  /** The first session that it gives is one that it does not know. */
  readonly forgetful?: boolean;
  /** How a session that it does not know is refused. */
  readonly lost?: { readonly status: number; readonly body: string };
  /** What a GET comes to. Default `sse`. */
  readonly get?: "sse" | "close" | "405" | "404" | "406" | "400" | "html" | "json";
  /** Speaks HTTP with SSE alone. */
  readonly older?: boolean;
  /** Status of the answer to `server/discover`, in place of one. */
  readonly discoverStatus?: number;
  /** The value that `authorization` has to have. */
  readonly authorization?: () => string;
  /** Whether a value of it will do. */
  readonly accepts?: (authorization: string) => boolean;
  /** How who lacks it is refused; default: 401. */
  readonly challenge?: () => { readonly status: number; readonly header: string };
  /** JSON documents by path that everybody may read. */
  readonly documents?: (path: string) => object | undefined;
  /** Revisions it takes; another one is refused with 400. */
  readonly versions?: readonly string[];
  /** Requests other than `initialize` need the header of the revision. */
  readonly strict?: boolean;
}

/** A request as it came. */
export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
  readonly message: Message;
}

/** A fake server that runs. */
export interface FakeHttp extends AsyncDisposable {
  readonly url: string;
  readonly requests: readonly SeenRequest[];
  /** Requests whose connection was closed before they were answered. */
  readonly cut: readonly Message[];
  /** Forgets all sessions. */
  forget(): void;
  /** Sends a message to everyone who listens. */
  tell(message: unknown): void;
  /** Closes all connections. */
  cutAll(): void;
  /** Resolves when the condition holds. */
  until(condition: () => boolean): Promise<void>;
}

/** Starts a fake server on loopback. */
export async function startFakeHttp(options: FakeHttpOptions = {}): Promise<FakeHttp> {
  const state = new FakeState(options);
  const server = createServer((request, response) => void state.serve(request, response));
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    requests: state.requests,
    cut: state.cut,
    forget: () => state.sessions.clear(),
    tell: (message) => {
      for (const listener of state.listeners) event(listener, message);
    },
    cutAll: () => server.closeAllConnections(),
    async until(condition) {
      while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
    },
    [Symbol.asyncDispose]: () =>
      new Promise((resolve) => {
        state.behaviour.close();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

interface Refusal {
  readonly status: number;
  readonly body: string;
}

class FakeState {
  readonly behaviour: FakeServer;
  readonly requests: SeenRequest[] = [];
  readonly cut: Message[] = [];
  readonly sessions = new Set<string>();
  readonly listeners = new Set<ServerResponse>();
  readonly #options: FakeHttpOptions;
  #given = 0;

  constructor(options: FakeHttpOptions) {
    this.#options = options;
    this.behaviour = new FakeServer(options);
  }

  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readText(request);
    const message = (request.method === "POST" && body.startsWith("{") ? JSON.parse(body) : {}) as Message;
    const { method = "", url: path = "", headers } = request;
    this.requests.push({ method, path, headers, message });
    if (this.#told(path, response)) return;
    if (!this.#knows(headers.authorization ?? "")) this.#challenge(response);
    else if (this.#options.older === true) this.#older(method, path, message, response);
    else if (method === "GET") this.#get(response);
    else if (method === "DELETE") refuse(response, 204, "");
    else this.#post(message, headers, response);
  }

  #knows(credential: string): boolean {
    const { authorization, accepts } = this.#options;
    return (authorization === undefined || authorization() === credential) && (accepts?.(credential) ?? true);
  }

  /** Whether it was a request for metadata. */
  #told(path: string, response: ServerResponse): boolean {
    const document = this.#options.documents?.(path);
    if (document === undefined && !path.startsWith("/.well-known/")) return false;
    refuse(response, document === undefined ? 404 : 200, JSON.stringify(document ?? {}));
    return true;
  }

  #challenge(response: ServerResponse): void {
    const { status, header } = this.#options.challenge?.() ?? { status: 401, header: "" };
    if (header !== "") response.setHeader("www-authenticate", header);
    refuse(response, status, "");
  }

  #post(message: Message, headers: IncomingMessage["headers"], response: ServerResponse): void {
    const problem = this.#problem(message, headers);
    if (problem !== undefined) {
      refuse(response, problem.status, problem.body);
      return;
    }
    if (message.id === undefined) {
      this.behaviour.take(message, { send: () => undefined, raw: () => undefined, die: () => undefined });
      refuse(response, 202, "");
      return;
    }
    const session = message.method === "initialize" && this.#options.sessions !== false ? randomUUID() : undefined;
    if (session !== undefined && (this.#options.forgetful !== true || this.#given > 0)) this.sessions.add(session);
    this.#given += session === undefined ? 0 : 1;
    const extra = session === undefined ? {} : { "mcp-session-id": session };
    response.on("close", () => {
      if (!response.writableFinished) this.cut.push(message);
    });
    this.behaviour.take(
      message,
      this.#options.answers === "json" ? jsonOutput(response, extra) : sseOutput(response, extra, message),
    );
  }

  /** Why a message is refused. */
  #problem(message: Message, headers: IncomingMessage["headers"]): Refusal | undefined {
    const { discoverStatus, strict } = this.#options;
    if (message.method === "server/discover") {
      return discoverStatus === undefined ? undefined : { status: discoverStatus, body: "" };
    }
    if (message.method === "initialize") return this.#versionProblem(message);
    if (strict === true && headers["mcp-protocol-version"] === undefined) return { status: 400, body: "no version" };
    return this.#sessionProblem(headers);
  }

  #versionProblem({ params }: Message): Refusal | undefined {
    const { versions } = this.#options;
    if (versions === undefined || versions.includes(String(params?.["protocolVersion"]))) return undefined;
    return { status: 400, body: `Unsupported protocol version (supported: ${versions.join(", ")})` };
  }

  #sessionProblem(headers: IncomingMessage["headers"]): Refusal | undefined {
    const { sessions = true, lost = { status: 404, body: "Session not found" } } = this.#options;
    const modern = headers["mcp-method"] !== undefined;
    return modern || !sessions || this.sessions.has(String(headers["mcp-session-id"])) ? undefined : lost;
  }

  #get(response: ServerResponse): void {
    const { get = "sse" } = this.#options;
    if (get === "sse") {
      response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
      this.listeners.add(response);
      response.on("close", () => this.listeners.delete(response));
    } else if (get === "close") response.writeHead(200, { "content-type": "text/event-stream" }).end();
    else if (get === "html") response.writeHead(200, { "content-type": "text/html" }).end("<html>hello</html>");
    else if (get === "json") response.writeHead(200, { "content-type": "application/json" }).end("{}");
    else refuse(response, Number(get), "no stream here");
  }

  /** HTTP with SSE, as it was before. */
  #older(method: string, path: string, message: Message, response: ServerResponse): void {
    if (method === "GET") {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write("event: endpoint\ndata: messages?session=7\n\n");
      this.listeners.add(response);
    } else if (path !== "/messages?session=7") refuse(response, 405, "Method Not Allowed");
    else {
      refuse(response, 202, "Accepted");
      const [listener] = this.listeners;
      if (listener === undefined) return;
      const send = (each: unknown): void => event(listener, each);
      this.behaviour.take(message, { send, raw: (text) => lines(text).forEach(send), die: () => listener.destroy() });
    }
  }
}

function refuse(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, { "content-type": body.startsWith("{") ? "application/json" : "text/plain" }).end(body);
}

function event(response: ServerResponse, message: unknown): void {
  response.write(`event: message\ndata: ${typeof message === "string" ? message : JSON.stringify(message)}\n\n`);
}

function lines(text: string): string[] {
  return text.split("\n").filter((line) => line !== "");
}

function jsonOutput(response: ServerResponse, headers: object) {
  const send = (message: unknown): void => {
    if (typeof message === "object" && message !== null && "method" in message) return;
    response.writeHead(200, { "content-type": "application/json", ...headers });
    response.end(typeof message === "string" ? message : JSON.stringify(message));
  };
  return { send, raw: (text: string) => send(lines(text).at(-1)), die: () => response.destroy() };
}

function sseOutput(response: ServerResponse, headers: object, { id }: Message) {
  response.writeHead(200, { "content-type": "text/event-stream", ...headers });
  const isAnswer = (each: unknown): boolean =>
    typeof each === "object" && each !== null && "id" in each && String(each.id) === String(id);
  const send = (message: unknown): void => {
    event(response, message);
    if ([message].flat().some(isAnswer)) response.end();
  };
  return {
    send,
    raw(text: string) {
      response.end(
        lines(text)
          .map((line) => `data: ${line}\n\n`)
          .join(""),
      );
    },
    die: () => response.destroy(),
  };
}
