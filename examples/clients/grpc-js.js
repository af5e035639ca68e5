// proto-loader makes the client at run time, so the linter knows no types of it.
/* oxlint-disable typescript/no-unsafe-argument, typescript/no-unsafe-assignment, typescript/no-unsafe-call, typescript/no-unsafe-member-access */
import { credentials, loadPackageDefinition } from "@grpc/grpc-js";
import { loadSync } from "@grpc/proto-loader";

// Any gRPC client works from the .proto files alone: node examples/clients/grpc-js.js [ADDRESS]
const definition = loadSync("toolgate/v1/tool_gateway_service.proto", { includeDirs: ["proto"], oneofs: true });
const { ToolGatewayService } = loadPackageDefinition(definition).toolgate.v1;
const client = new ToolGatewayService(process.argv[2] ?? "127.0.0.1:7433", credentials.createInsecure());

const invocation = { name: "log_tail", argumentsJson: JSON.stringify({ service: "orders", lines: 3 }) };
const stream = client.CallStream({ invocation }, { deadline: Date.now() + 10_000 });
for await (const { event, output, completed } of stream) {
  if (event === "output") process.stdout.write(output.text);
  if (event === "completed") console.log("completed after", completed.stats.total.nanos / 1e6, "ms");
}
client.close();
