// An agent loop over the gateway: node clients/typescript/examples/agent-loop.ts [URL]
//
// It needs the gateway with the example tools (`npm start`). THERE IS NO MODEL IN IT: `scriptedModel` below is a fixed
// rule that plays one, so that the loop can be read and run without a key. Put a provider's call in its place; what
// goes in and comes out has the shape of a chat completion.
import { createToolgateClient, type Tool, type ToolgateClient, ToolgateError } from "../src/index.ts";
import { createNodeTransport } from "../src/node.ts";

/** A function as chat models are told of it. */
interface FunctionDefinition {
  readonly type: "function";
  readonly function: { readonly name: string; readonly description: string; readonly parameters: unknown };
}

/** A call that a model asks for: arguments are JSON text, and may be wrong. */
interface ToolCall {
  readonly id: string;
  readonly function: { readonly name: string; readonly arguments: string };
}

type Message =
  | { readonly role: "user"; readonly content: string }
  | { readonly role: "assistant"; readonly content: string; readonly tool_calls: readonly ToolCall[] }
  | { readonly role: "tool"; readonly tool_call_id: string; readonly content: string };

const MAX_TURNS = 8;

/** Names of functions → names of tools; the alias fits every provider, the name need not. */
async function exportTools(
  client: ToolgateClient,
): Promise<{ tools: Map<string, Tool>; functions: FunctionDefinition[] }> {
  const tools = new Map<string, Tool>();
  for await (const tool of client.list()) tools.set(tool.alias, tool);
  const functions = [...tools.values()].map((tool) => ({
    type: "function" as const,
    function: {
      name: tool.alias,
      description: tool.description,
      parameters: JSON.parse(tool.inputSchemaJson) as unknown,
    },
  }));
  return { tools, functions };
}

/** Runs one call and gives the text for the model: the result, or what went wrong, in words it can act on. */
async function runTool(client: ToolgateClient, tool: Tool | undefined, call: ToolCall): Promise<string> {
  if (tool === undefined) return `There is no function ${call.function.name}.`;
  const context = { sessionId: "example", toolCallId: call.id };
  try {
    let streamed = "";
    for await (const event of client.callStream(tool.name, call.function.arguments, { context })) {
      if (event.type === "output") {
        streamed += event.text;
        process.stdout.write(event.text);
      }
      // A failure the tool reported is an answer: the model reads it like any other.
      if (event.type === "completed") return streamed + event.outcome.modelText();
    }
    return streamed;
  } catch (error) {
    if (!(error instanceof ToolgateError)) throw error;
    return error.modelMessage;
  }
}

/** Plays the model: forgets an argument, mends its call by the error it reads, follows a log, and sums up. */
function scriptedModel(messages: readonly Message[]): Message {
  const answers = messages.filter((message) => message.role === "tool");
  const say = (content: string, ...calls: readonly [string, unknown][]): Message => ({
    role: "assistant",
    content,
    tool_calls: calls.map(([name, args], index) => ({
      id: `call_${answers.length}_${index}`,
      function: { name, arguments: JSON.stringify(args) },
    })),
  });
  switch (answers.length) {
    case 0:
      return say("I look the order up.", ["order_status", { include_history: false }]);
    case 1:
      return say("The order number was missing.", ["order_status", { order_id: "SO20241001" }]);
    case 2:
      return say("Now the log of the order service.", ["log_tail", { service: "orders", lines: 3 }]);
    default:
      return say(`The order: ${answers[1]?.content ?? ""}`);
  }
}

using transport = createNodeTransport({ baseUrl: process.argv[2] ?? "http://127.0.0.1:7433" });
const client = createToolgateClient(transport);
const { tools, functions } = await exportTools(client);
console.log(`${functions.length} functions for the model: ${functions.map((item) => item.function.name).join(", ")}`);

const messages: Message[] = [{ role: "user", content: "Where is order SO20241001, and is anything wrong?" }];
for (let turn = 0; turn < MAX_TURNS; turn++) {
  const reply = scriptedModel(messages);
  messages.push(reply);
  console.log(`\nmodel: ${reply.content}`);
  if (reply.role !== "assistant" || reply.tool_calls.length === 0) break;
  for (const call of reply.tool_calls) {
    console.log(`  calls ${call.function.name}(${call.function.arguments})`);
    const content = await runTool(client, tools.get(call.function.name), call);
    messages.push({ role: "tool", tool_call_id: call.id, content });
    console.log(`  reads: ${content.trimEnd().replaceAll("\n", "\n         ")}`);
  }
}
