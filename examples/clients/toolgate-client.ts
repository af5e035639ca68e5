import { createToolgateClient, ToolgateError } from "../../clients/typescript/src/index.ts";
import { createNodeTransport } from "../../clients/typescript/src/node.ts";

// The typed client: node examples/clients/toolgate-client.ts [URL]
using transport = createNodeTransport({ baseUrl: process.argv[2] ?? "http://127.0.0.1:7433" });
const client = createToolgateClient(transport);

const order = await client.call("order_status", { order_id: "SO20241001" });
console.log(order.structured());

for await (const event of client.callStream("log_tail", { service: "orders", lines: 3 })) {
  if (event.type === "output") process.stdout.write(event.text);
}

try {
  await client.call("order_status", { order_id: 7 });
} catch (error) {
  if (error instanceof ToolgateError) console.log(error.reason, error.violations);
}
