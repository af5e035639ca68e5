/** A message of JSON-RPC, read without care. */
export interface Message {
  readonly jsonrpc?: string;
  readonly id?: number | string;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: unknown;
}

/** How a fake server behaves. */
export interface FakeOptions {
  /** Revision that `initialize` is answered with; default: the one it was offered. */
  readonly version?: string;
  /** What `server/discover` comes to. Default `unknown`. */
  readonly discover?: "unknown" | "modern" | "silent" | "die";
  /** Definitions in place of the tools it knows. */
  readonly tools?: readonly unknown[];
  /** Tools of one page. */
  readonly pageSize?: number;
  /** What every page after the first does instead. */
  readonly pages?: "same" | "empty-cursor" | "new-cursor" | "error";
  /** Every call is one of this tool. */
  readonly every?: string;
  /** In the stateless era, it tells whoever listens that its tools changed. */
  readonly subscribes?: boolean;
  /** Wait before `initialize` is answered. */
  readonly initializeMs?: number;
}

/** Where a fake server's words go. */
export interface FakeOutput {
  /** One message. */
  send(message: unknown): void;
  /** Text as it stands, in one write. */
  raw(text: string): void;
  /** Ends the process, or breaks the connection. */
  die(words?: string): void;
}

const TOOLS = [
  "quick",
  "silent",
  "endless",
  "failing",
  "burst",
  "text_id",
  "arrays",
  "empty_array",
  "whoami",
  "crash",
  "noise",
  "steps",
  "late",
  "log",
  "huge",
  "digits",
  "change",
  "meta",
  "rpc_error",
];

/** A fake server: answers one message after the other, whatever it is reached by. */
export class FakeServer {
  readonly #options: FakeOptions;
  readonly #endless = new Map<string, NodeJS.Timeout>();
  #tools: unknown[];
  /** Who listens, by the id of that. */
  readonly #listening = new Map<unknown, FakeOutput>();

  constructor(options: FakeOptions) {
    this.#options = options;
    this.#tools = [...(options.tools ?? TOOLS.map((name) => tool(name)))];
  }

  take(message: Message, output: FakeOutput): void {
    const { id, method, params = {} } = message;
    const reply = (result: unknown): void => output.send({ jsonrpc: "2.0", id, result });
    switch (method) {
      case "server/discover":
        this.#discover(message, output);
        return;
      case "initialize":
        setTimeout(() => reply(this.#welcome(params)), this.#options.initializeMs ?? 0);
        return;
      case "tools/list":
        this.#list(message, output);
        return;
      case "tools/call":
        this.#call(message, output);
        return;
      case "subscriptions/listen":
        this.#listening.set(id, output);
        output.send(subscribed(id, "notifications/subscriptions/acknowledged", params["notifications"]));
        return;
      case "notifications/cancelled": {
        this.#listening.delete(params["requestId"]);
        const key = String(params["requestId"]);
        clearInterval(this.#endless.get(key));
        this.#endless.delete(key);
        return;
      }
      default:
        if (id !== undefined && method !== undefined)
          output.send({ jsonrpc: "2.0", id, error: { code: -32601, message: "Method not found" } });
    }
  }

  close(): void {
    for (const timer of this.#endless.values()) clearInterval(timer);
  }

  #welcome(params: Readonly<Record<string, unknown>>): unknown {
    return {
      protocolVersion: this.#options.version ?? params["protocolVersion"],
      capabilities: { tools: { listChanged: true }, logging: {} },
      serverInfo: { name: "fake", version: "1.0.0" },
    };
  }

  #discover({ id }: Message, output: FakeOutput): void {
    switch (this.#options.discover) {
      case "modern":
        output.send({
          jsonrpc: "2.0",
          id,
          result: {
            resultType: "complete",
            supportedVersions: ["2026-07-28"],
            capabilities: { tools: this.#options.subscribes === true ? { listChanged: true } : {} },
            ttlMs: 0,
            cacheScope: "private",
            _meta: { "io.modelcontextprotocol/serverInfo": { name: "fake", version: "2.0.0" } },
          },
        });
        return;
      case "silent":
        return;
      case "die":
        output.die("panicked at an unknown method");
        return;
      default:
        output.send({ jsonrpc: "2.0", id, error: { code: -32601, message: "Method not found" } });
    }
  }

  #list({ id, params = {} }: Message, output: FakeOutput): void {
    const { pageSize = this.#tools.length, pages } = this.#options;
    const cursor = params["cursor"];
    const more = { resultType: "complete", ttlMs: 0, cacheScope: "private" };
    const reply = (result: object): void => output.send({ jsonrpc: "2.0", id, result: { ...more, ...result } });
    if (pages === "same") reply({ tools: this.#tools, nextCursor: "x" });
    else if (pages === "empty-cursor") reply({ tools: this.#tools, nextCursor: "" });
    else if (pages === "new-cursor")
      reply({ tools: this.#tools, nextCursor: `${typeof cursor === "string" ? cursor : ""}n` });
    else if (pages === "error" && cursor !== undefined) {
      output.send({ jsonrpc: "2.0", id, error: { code: -32603, message: "no second page" } });
    } else {
      const from = Number(cursor ?? 0);
      const next = from + pageSize;
      const nextCursor = next < this.#tools.length ? { nextCursor: String(next) } : {};
      reply({ tools: this.#tools.slice(from, next), ...nextCursor });
    }
  }

  #call(message: Message, output: FakeOutput): void {
    const name = this.#options.every ?? String(message.params?.["name"]);
    const answer = Object.hasOwn(ANSWERS, name) ? ANSWERS[name] : undefined;
    const call = new FakeCall(message);
    if (name === "endless") {
      let step = 0;
      this.#endless.set(
        String(message.id),
        setInterval(() => output.send(call.progress(++step)), 10),
      );
    } else if (name === "change") {
      this.#tools = [...this.#tools.filter((each) => (each as { name: string }).name !== "huge"), tool("added")];
      if (this.#options.subscribes !== true) {
        output.send({ jsonrpc: "2.0", method: "notifications/tools/list_changed" });
      }
      for (const [listen, to] of this.#listening) to.send(subscribed(listen, "notifications/tools/list_changed"));
      output.send(call.result("changed"));
    } else if (answer === undefined) output.send(call.result("ok", { structuredContent: { code: 0 } }));
    else answer(call, output);
  }
}

/** One call of a fake tool. */
class FakeCall {
  readonly id: number | string | undefined;
  readonly meta: Readonly<Record<string, unknown>>;
  readonly args: Readonly<Record<string, unknown>>;
  readonly log: object = {
    jsonrpc: "2.0",
    method: "notifications/message",
    params: { level: "notice", data: "working" },
  };

  constructor({ id, params = {} }: Message) {
    this.id = id;
    this.meta = (params["_meta"] ?? {}) as Readonly<Record<string, unknown>>;
    this.args = (params["arguments"] ?? {}) as Readonly<Record<string, unknown>>;
  }

  result(text: string, more: object = {}): object {
    const content = [{ type: "text", text }];
    return { jsonrpc: "2.0", id: this.id, result: { resultType: "complete", content, ...more } };
  }

  progress(step: number, total?: number): object {
    const rest = total === undefined ? {} : { total };
    const progressToken = this.meta["progressToken"];
    const params = { progressToken, progress: step, ...rest, message: `step ${step}` };
    return { jsonrpc: "2.0", method: "notifications/progress", params };
  }
}

const ANSWERS: Readonly<Record<string, (call: FakeCall, output: FakeOutput) => void>> = {
  silent: () => undefined,
  failing: (call, output) => output.send(call.result("no such order", { isError: true })),
  burst(call, output) {
    const messages = [1, 2, 3, 4, 5].map((step) => call.progress(step, 5)).concat(call.result("done"));
    output.raw(messages.map((each) => `${JSON.stringify(each)}\n`).join(""));
  },
  text_id(call, output) {
    output.send(call.log);
    output.send({ ...call.result("text"), id: String(call.id) });
  },
  arrays: (call, output) => output.send([call.log, call.result("array")]),
  empty_array(call, output) {
    output.send([]);
    output.send(call.result("after"));
  },
  whoami(call, output) {
    setTimeout(() => output.send(call.result(String(call.args["token"]))), Math.random() * 20);
  },
  crash: (_call, output) => output.die("Error: cannot go on"),
  noise(call, output) {
    output.raw('[boot] ready\nitems: [\n{"level":30,"msg":"started"}\n');
    output.send(call.result("quiet again"));
  },
  steps(call, output) {
    const count = Number(call.args["count"]);
    const ms = Number(call.args["ms"]);
    for (let step = 1; step <= count; step++) setTimeout(() => output.send(call.progress(step, count)), step * ms);
    setTimeout(() => output.send(call.result("done")), (count + 0.5) * ms);
  },
  late(call, output) {
    setTimeout(() => output.send(call.result("late")), Number(call.args["ms"]));
  },
  log(call, output) {
    output.send(call.log);
    setTimeout(() => output.send(call.result("logged")), 5);
  },
  huge: (call, output) => output.send(call.result("x".repeat(Number(call.args["bytes"])))),
  digits(call, output) {
    const value = `{"id":9007199254740993,"echo":${JSON.stringify(call.args["id"])}}`;
    const result = `{"resultType":"complete","content":[],"structuredContent":${value}}`;
    output.raw(`{"jsonrpc":"2.0","id":${JSON.stringify(call.id)},"result":${result}}\n`);
  },
  meta: (call, output) => output.send(call.result(JSON.stringify(call.meta))),
  rpc_error(call, output) {
    output.send({ jsonrpc: "2.0", id: call.id, error: { code: -32602, message: "count is no number" } });
  },
};

/** A notification for who listens. */
function subscribed(id: unknown, method: string, notifications?: unknown): object {
  const params = { _meta: { "io.modelcontextprotocol/subscriptionId": id }, notifications };
  return { jsonrpc: "2.0", method, params };
}

function tool(name: string): unknown {
  return {
    name,
    description: `Does ${name}`,
    inputSchema: { type: "object" },
    annotations: { readOnlyHint: name === "quick" },
  };
}
