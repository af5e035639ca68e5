// Which folder of src may import which: data flows one way, and imports point inward to core.
// test/architecture derives the same map from the source by itself, so that a hole in these patterns shows.

/** Folder of src → folders of src it may import besides itself. A folder that is missing here is refused. */
const MAY_IMPORT = {
  core: [],
  config: ["core"],
  wire: ["core"],
  pipeline: ["core"],
  shaping: ["core"],
  secrets: ["core"],
  observability: ["core"],
  stores: ["core"],
  ledger: ["core"],
  models: ["core"],
  search: ["core"],
  adapters: ["core"],
  identity: ["core", "secrets"],
  registry: ["core", "config", "pipeline", "shaping", "search"],
  service: ["core", "registry", "ledger", "wire", "models", "identity"],
  cli: ["core", "config"],
};

const FOLDERS = Object.keys(MAY_IMPORT).join("|");

/** Code generated from proto/ is read where the wire is, ours and that of gRPC upstreams, and nowhere else. */
const READS_GENERATED = "^src/(wire|service|cli|adapters/grpc)/|^clients/|^test/|^bench/|^examples/|^gen/";

const RPC_PACKAGES = "^node_modules/(@connectrpc|@grpc|@bufbuild)/";

const builtin = (names) => `^(node:)?(${names.join("|")})(/|$)`;

const folderRules = Object.entries(MAY_IMPORT).map(([folder, allowed]) => ({
  name: `${folder}-imports`,
  comment: `src/${folder} may import itself${allowed.map((name) => `, ${name}`).join("")}`,
  severity: "error",
  from: { path: `^src/${folder}/` },
  to: { path: "^src/", pathNot: `^src/(${[folder, ...allowed].join("|")})/` },
}));

module.exports = {
  forbidden: [
    ...folderRules,
    {
      name: "known-folders-from",
      comment: "A folder of src must stand in MAY_IMPORT with what it may import",
      severity: "error",
      from: { path: "^src/[^/]+/", pathNot: `^src/(${FOLDERS})/` },
      to: {},
    },
    {
      name: "known-folders-to",
      comment: "A folder of src must stand in MAY_IMPORT with what it may import",
      severity: "error",
      from: {},
      to: { path: "^src/[^/]+/", pathNot: `^src/(${FOLDERS})/` },
    },
    {
      name: "no-cycles",
      comment: "Types count: a cycle of types is a cycle of ideas",
      severity: "error",
      from: {},
      to: { circular: true },
    },
    {
      name: "no-orphans",
      comment: "A file that nothing imports and that imports nothing",
      severity: "error",
      from: { orphan: true, path: "^(src|clients)/" },
      to: {},
    },
    {
      name: "core-is-pure",
      comment: "Words and ports need no platform",
      severity: "error",
      from: { path: "^src/core/" },
      to: { dependencyTypes: ["core"] },
    },
    {
      name: "adapters-apart",
      comment: "An adapter knows no other adapter; what they have in common is in adapters/shared",
      severity: "error",
      from: { path: "^src/adapters/([^/]+)/" },
      to: { path: "^src/adapters/", pathNot: "^src/adapters/($1|shared)/" },
    },
    {
      name: "steps-apart",
      comment: "A step knows no other step and not the list",
      severity: "error",
      from: { path: "^src/pipeline/steps/" },
      to: { path: "^src/pipeline/(steps/|index\\.ts$)" },
    },
    {
      name: "lists-from-gateway",
      comment: "Only the composition root knows every adapter and every step",
      severity: "error",
      from: { path: "^src/", pathNot: "^src/gateway(-tools)?\\.ts$" },
      to: { path: "^src/(adapters|pipeline)/index\\.ts$" },
    },
    {
      name: "root-files",
      comment: "What knows everything is known by the entries alone",
      severity: "error",
      from: { path: "^src/", pathNot: "^src/(index|main|gateway|gateway-tools)\\.ts$" },
      to: { path: "^src/[^/]+\\.ts$" },
    },
    {
      name: "generated-at-the-edge",
      comment: "Only wire, service, cli, clients and the adapter for gRPC know generated code",
      severity: "error",
      from: { pathNot: READS_GENERATED },
      to: { path: "^gen/" },
    },
    {
      name: "rpc-at-the-edge",
      comment: "Only wire, service, cli, clients and the adapter for gRPC know an RPC package",
      severity: "error",
      from: { path: "^src/", pathNot: "^src/(wire|service|cli|adapters/grpc)/" },
      to: { path: RPC_PACKAGES },
    },
    {
      name: "client-stands-alone",
      comment: "The published client has its own copy of the generated code and nothing of the gateway",
      severity: "error",
      from: { path: "^clients/typescript/src/" },
      to: { path: "^(src|gen|test|examples|bench)/" },
    },
    {
      name: "spawn",
      comment: "Only adapters run processes, by way of their launcher; cli starts the gateway's own",
      severity: "error",
      from: { path: "^src/", pathNot: "^src/(adapters/shared/launcher|cli)/" },
      to: { path: builtin(["child_process", "cluster"]) },
    },
    {
      name: "sockets",
      comment: "Only adapters and service open sockets",
      severity: "error",
      from: { path: "^src/", pathNot: "^src/(adapters|service)/" },
      to: { path: `${builtin(["net", "tls", "http", "https", "http2", "dgram", "dns"])}|^node_modules/undici/` },
    },
    {
      name: "files",
      comment:
        "Only these touch the file system; adapters look whether a program can be started, and read descriptors and certificates",
      severity: "error",
      from: {
        path: "^src/",
        pathNot:
          "^src/((adapters/shared/launcher|adapters/grpc|registry|secrets|identity|stores|service|config|observability|cli)/|main\\.ts$)",
      },
      to: { path: builtin(["fs"]) },
    },
    {
      name: "no-test-code",
      comment: "What ships does not import tests, examples, benchmarks or documents",
      severity: "error",
      from: { path: "^(src|clients/typescript/src)/" },
      to: { path: "^(test|examples|bench|docs)/" },
    },
    {
      name: "no-dev-dependency",
      comment: "What ships imports what package.json lists under dependencies",
      severity: "error",
      from: { path: "^(src|clients/typescript/src)/" },
      to: {
        dependencyTypes: ["npm-dev", "npm-optional", "npm-no-pkg", "npm-unknown"],
        // A type has no place in the running program.
        dependencyTypesNot: ["type-only"],
      },
    },
    {
      name: "resolvable",
      comment: "An import that leads nowhere",
      severity: "error",
      from: {},
      to: { couldNotResolve: true },
    },
  ],
  options: {
    doNotFollow: { path: "node_modules" },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: "tsconfig.json" },
    enhancedResolveOptions: { exportsFields: ["exports"], conditionNames: ["import", "node", "default", "types"] },
  },
};
