import { type AdapterBench, describeAdapter, type TestedTool } from "../../conformance/adapter.ts";
import { allGone, openServer, type ServerOptions, type TestFolder, testFolder } from "./fixture.ts";

describeAdapter("mcp", startBench);

async function startBench(): Promise<AdapterBench> {
  const folder = await testFolder();
  return {
    quick: tested(folder, "quick"),
    silent: tested(folder, "silent"),
    endless: tested(folder, "endless"),
    failing: tested(folder, "failing"),
    unreachable: { ...tested(folder, "unreachable", { command: "./missing" }), open: opened({ command: "./missing" }) },
    unready: {
      ...tested(folder, "unready"),
      open: opened({ ...folder.fake({}, "unready"), env: { TOKEN: { secret_ref: "MISSING" } } }),
    },
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

function opened(mcp: ServerOptions["mcp"]): TestedTool["open"] {
  return async () => (await openServer({ mcp })).upstream;
}

/** A server of its own for each tool; the tool is known by the name of the server's log. */
function tested(folder: TestFolder, name: string, mcp = folder.fake({ every: name }, name)): TestedTool {
  const calls = (): string[] => folder.lines(name).filter((line) => line.includes('"tools/call"'));
  const cancels = (): string[] => folder.lines(name).filter((line) => line.includes('"notifications/cancelled"'));
  return {
    async open() {
      const server = await openServer({ mcp });
      await server.ready();
      return server.upstream;
    },
    arguments: {},
    reached: () => calls().length,
    arrived: async () => void (await folder.waitFor('"tools/call"', name)),
    quiet: () =>
      Promise.race([
        allGone(folder.pids(name)),
        cancels().length >= 1
          ? Promise.resolve()
          : folder.waitFor('"notifications/cancelled"', name).then(() => undefined),
      ]),
  };
}
