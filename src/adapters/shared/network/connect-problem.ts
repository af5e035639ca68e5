/** What keeps a connection from being made, where it takes more than another attempt. */
export class ConnectProblem extends Error {
  readonly code: string;
  /** What to do about it, one sentence. */
  readonly mend: string;

  /** `message` goes on after "no connection to …: ". */
  constructor(code: string, message: string, mend: string) {
    super(message);
    this.name = "ConnectProblem";
    this.code = code;
    this.mend = mend;
  }
}

/** Why no connection was made, for people: each address that was tried, or what the name or certificate lacks. */
export function connectProblem(cause: Error | undefined): string {
  if (cause instanceof ConnectProblem) return cause.message;
  const attempts = cause instanceof AggregateError ? (cause.errors as readonly unknown[]) : [cause];
  const tried = attempts.flatMap((attempt) => {
    const { code, address, port } = errorFields(attempt);
    if (address === undefined) return [];
    return [`${address.includes(":") ? `[${address}]` : address}:${port ?? "?"} ${code ?? "failed"}`];
  });
  if (tried.length > 0) return `tried ${tried.join(", ")}`;
  const code = codeOf(cause) ?? "unknown problem";
  if (code === "ENOTFOUND" || code === "EAI_AGAIN") return `its name has no address (${code})`;
  if (/CERT|TLS|SSL|SELF_SIGNED|ISSUER/.test(code)) return `its TLS certificate or handshake is not accepted (${code})`;
  return code;
}

/** The code of a system error. */
export function codeOf(error: Error | undefined): string | undefined {
  return errorFields(error).code;
}

interface ErrorFields {
  readonly code: string | undefined;
  readonly address: string | undefined;
  readonly port: number | undefined;
}

function errorFields(error: unknown): ErrorFields {
  const field = (name: string): unknown => (error instanceof Error ? Reflect.get(error, name) : undefined);
  const code = field("code");
  const address = field("address");
  const port = field("port");
  return {
    code: typeof code === "string" ? code : undefined,
    address: typeof address === "string" ? address : undefined,
    port: typeof port === "number" ? port : undefined,
  };
}
