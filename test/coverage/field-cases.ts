import type { Behaviour } from "./behaviour.ts";

/** Files of declarations and the folder they stand in. */
export const FILES: Readonly<Record<string, Behaviour>> = {
  "Y-D01": { text: "A key written twice is refused with both lines, and neither value is used" },
  "Y-D02": { text: "A text such as 1e3 stays text where the parameter is one" },
  "Y-D03": { text: "Leading zeros and 0o prefixes stay text" },
  "Y-D04": { text: "64-bit integers keep their digits from file and call to upstream" },
  "Y-D05": { text: "A byte order mark and Windows line ends change nothing" },
  "Y-D06": { text: "Several documents in one file are refused, not read in part" },
  "Y-D07": { text: "A tab as indentation is refused with its line" },
  "Y-D08": { text: "Aliases that blow up are refused at once and in little memory" },
  "Y-D09": { text: "Merge keys are applied" },
  "Y-D10": {
    text: "A broken edit leaves the last good version serving and is reported, and its rule for roles in force",
  },
  "Y-D11": { text: "A half-written file is never a tool" },
  "Y-D12": { text: "A save by rename shows each version and never loses the tool" },
  "Y-D13": { text: "The swap of a mounted ConfigMap is one change of one tool" },
  "Y-D14": { text: "A template without quotes is refused with the mend" },
  "Y-D15": { text: "A description that a comment cuts short is warned of" },
  "Y-D16": { text: "A broken file stays visible when others load, and doctor fails" },
};

/** Templates of URLs and bodies. */
export const TEMPLATES: Readonly<Record<string, Behaviour>> = {
  "T-D01": { text: "A path value is one encoded segment, or refused" },
  "T-D02": {
    text: "The form of a list in the query is declared",
  },
  "T-D03": { text: "An optional argument that is absent or null leaves no trace" },
  "T-D04": { text: "Zero, false and empty text are sent" },
  "T-D05": { text: "No placeholder ever goes out" },
  "T-D06": { text: "Text with replacement patterns arrives byte for byte" },
  "T-D07": {
    text: "A missing secret is named, listed and never sent as its own name; once there it works",
  },
  "T-D08": { text: "An argument cannot choose the host" },
  "T-D09": { text: "A body reference keeps the type, inside text it is joined as text" },
};

/** Arguments, schemas and results. */
export const ARGUMENTS: Readonly<Record<string, Behaviour>> = {
  "A-D01": { text: "JSON as text is refused at each place, by one documented rule" },
  "A-D02": { text: "Null for an optional parameter counts as absent" },
  "A-D03": { text: "64-bit ids keep their digits in results and arguments" },
  "A-D04": { text: "A cut result is well-formed, within its limit and says so" },
  "A-D05": {
    text: "A business error in a success envelope is a failure with its code and words",
  },
  "A-D06": { text: "Foreign keywords and formats of a schema are passed over" },
  "A-D07": { text: "Tools that share an `$id` are each checked by their own schema" },
  "A-D08": { text: "Reading and compiling the same schemas again does not grow the heap" },
  "A-D09": {
    text: "A structured result over the limit is never broken JSON",
  },
};

/** HTTP upstreams. */
export const UPSTREAMS: Readonly<Record<string, Behaviour>> = {
  "U-D01": { text: "204 is success with an empty result" },
  "U-D02": { text: "A web page where JSON is due is a failure with its title, and a redirect to one names it" },
  "U-D03": { text: "A body that is not in the coding it names is a failure; brotli and identity are read" },
  "U-D04": { text: "A body that is cut short is never taken as whole" },
  "U-D05": { text: "Bodies are decoded by their charset" },
  "U-D06": { text: "An answer over the limit ends early, in bounded memory" },
  "U-D07": {
    text: "A redirect is followed within its origin, and no other host gets a secret",
  },
  "U-D08": { text: "A connection lost at its reuse is made up for where that is safe, and only there" },
  "U-D09": { text: "Retry-After is kept in both its forms" },
  "U-D10": { text: "Server-sent events are read whatever their line ends and cuts" },
  "U-D11": {
    text: "Each phase of an answer has a limit, which the error names",
  },
  "U-D12": { text: "A quiet event stream of a server outlives the limits of HTTP clients" },
  "U-D13": { text: "`localhost` is tried in both address families, and each address tried is named" },
  "U-D14": {
    text: "NO_PROXY is matched by a documented rule, and the decision is shown",
  },
  "U-D15": {
    text: "A proxy of the environment is used, never for loopback, and its credentials are not shown",
  },
};

/** Scripts. */
export const SCRIPTS: Readonly<Record<string, Behaviour>> = {
  "S-D01": { text: "A time limit ends the whole process group" },
  "S-D02": { text: "Output is decoded by the declared encoding" },
  "S-D03": { text: "Characters across two writes stay whole" },
  "S-D04": { text: "Much output is bounded by a documented limit" },
  "S-D05": { text: "A script that reads its input gets the end at once" },
  "S-D06": { text: "A script that ignores TERM is killed after its grace" },
  "S-D07": { text: "Output of a script that fails is kept" },
  "S-D08": { text: "A script sees only the environment it may" },
  "S-D09": { text: "An argument is never taken for an option" },
  "S-D10": { text: "A missing folder and a missing program are told apart" },
  "S-D11": { text: "Processes and descriptors are bounded" },
  "S-D12": { text: "Arguments the system refuses are argument errors" },
};

/** MCP servers. */
export const SERVERS: Readonly<Record<string, Behaviour>> = {
  "M-D01": { text: "Log lines on the output of a server are passed over" },
  "M-D02": { text: "A server that dies fails its calls at once and is started again" },
  "M-D03": { text: "A forgotten session is begun anew" },
  "M-D04": { text: "A changed list of tools is seen" },
  "M-D05": { text: "All pages of a list are read" },
  "M-D06": { text: "A list that never ends ends" },
  "M-D07": { text: "A slow start holds up nobody else" },
  "M-D08": { text: "An id that comes back as text is matched" },
  "M-D09": { text: "Progress keeps a call alive" },
  "M-D10": { text: "A cancel is told, and a late answer does no harm" },
  "M-D11": { text: "Tools of one name on two servers stay apart" },
  "M-D12": { text: "Every tool has a name that providers accept" },
  "M-D13": { text: "References in a schema stay resolvable" },
  "M-D14": { text: "Alternatives at the top of a schema do not break a model's request" },
  "M-D15": { text: "Structured content alone is a result" },
  "M-D16": { text: "An output schema that is not met is told and hides nothing" },
  "M-D17": { text: "A tool's own error is a failure everywhere" },
  "M-D18": { text: "An image is a part of its own" },
  "M-D19": { text: "Batches of messages do no harm" },
  "M-D20": { text: "Protocol versions are negotiated" },
  "M-D21": { text: "Nothing of a server is left when it is stopped" },
  "M-D22": { text: "A server without a stream of its own works" },
  "M-D23": { text: "Each caller gets its own answer" },
  "M-D24": { text: "A server that dies while it starts says why" },
};

/** What goes wrong between gateway and upstream. */
export const RESILIENCE: Readonly<Record<string, Behaviour>> = {
  "R-D01": { text: "Nothing reconnects or retries without pause" },
  "R-D02": { text: "A breaker counts faults of the upstream alone" },
  "R-D03": { text: "A breaker that tries again lets few calls through" },
  "R-D04": { text: "No timer keeps a process alive" },
  "R-D05": { text: "A lost answer never doubles a write" },
  "R-D06": { text: "All attempts share one deadline" },
  "R-D07": { text: "Streams that are aborted at any moment leave nothing behind" },
  "R-D08": { text: "A time limit stops the work behind it" },
  "R-D09": { text: "A server that never starts disturbs no other" },
};

/** gRPC and Connect. */
export const WIRE: Readonly<Record<string, Behaviour>> = {
  "G-D01": {
    text: "The caller's deadline ends the work behind it, over every protocol",
    rest: "MCP servers",
    waits: ["MCP"],
  },
  "G-D02": {
    text: "A cancelled, killed or vanished reader stops the producer",
  },
  "G-D03": { text: "An upstream that says goodbye costs no call" },
  "G-D04": { text: "Results stay within what standard clients take, or the error says what to do" },
  "G-D05": {
    text: "A request over the limit is refused with size and limit",
    rest: "large arguments and results of MCP servers",
    waits: ["MCP"],
  },
  "G-D06": { text: "Error texts arrive as they are over every protocol, cut to a documented length" },
  "G-D07": { text: "Answers of a proxy in between have the right code" },
  "G-D08": {
    text: "Slow readers slow the upstream down and lose nothing",
  },
  "G-D09": { text: "Dead connections to an upstream are noticed" },
};

/** Secrets. */
export const SECRETS: Readonly<Record<string, Behaviour>> = {
  "K-D01": { text: "Whatever goes wrong, no log, error or list holds a secret" },
  "K-D02": { text: "No secret stands on a command line" },
  "K-D03": { text: "No part of a secret is logged, and a short one tears no other text apart" },
  "K-D04": {
    text: "A secret that an upstream echoes is masked in every form, in streams too",
  },
  "K-D05": { text: "Diagnosis shows a masked header" },
};

/** Security. */
export const SECURITY: Readonly<Record<string, Behaviour>> = {
  "X-D01": { text: "No call is led to an address that its declaration does not name or allow" },
  "X-D02": { text: "Names of prototypes are names like any other" },
  "X-D03": { text: "Paths and placeholders see own properties alone" },
  "X-D04": { text: "A hostile pattern blocks nobody" },
  "X-D05": { text: "A schema that is too complex is refused, and blocks nobody" },
  "X-D06": { text: "Deep nesting is refused wherever it comes from" },
  "X-D07": { text: "A definition that changes later is noticed" },
  "X-D08": { text: "Invisible characters hide no instruction" },
  "X-D09": { text: "What is hidden cannot be called by any name" },
};
