import { constants } from "node:fs";
import { access, open, stat } from "node:fs/promises";
import { basename, delimiter, isAbsolute, join, resolve } from "node:path";

/** Why a program cannot be started. */
export interface ProgramProblem {
  /** One line that goes on after "the program cannot be started: ". */
  readonly message: string;
  readonly mend: string;
}

/** Longest first line of a script that the system reads. */
const MAX_SHEBANG_BYTES = 256;

const INSTALL = "Install it, or correct `command` and the PATH of the gateway.";

/** What is to be started. */
export interface NamedProgram {
  /** A name that is looked up in `path`, or a path. */
  readonly command: string;
  /** Working folder, absolute. */
  readonly cwd: string;
  /** The program's own `PATH`. */
  readonly path: string;
}

/** What would keep the program from starting, or `undefined`. Starts nothing. */
export async function findProgramProblem({ command, cwd, path }: NamedProgram): Promise<ProgramProblem | undefined> {
  const folder = await kindOf(cwd);
  if (folder !== "folder") return cwdProblem(cwd, folder);
  // Windows finds programs in ways of its own.
  if (process.platform === "win32") return undefined;
  const found = await locate(command, cwd, path);
  return "problem" in found ? found.problem : shebangProblem(found.file, command, cwd, path);
}

type FileKind = "file" | "folder" | "missing" | "denied";

async function kindOf(path: string): Promise<FileKind> {
  try {
    return (await stat(path)).isDirectory() ? "folder" : "file";
  } catch (error) {
    return errorCode(error) === "EACCES" ? "denied" : "missing";
  }
}

function cwdProblem(cwd: string, kind: FileKind): ProgramProblem {
  const message = {
    file: `its working folder \`cwd\` ${cwd} is a file`,
    missing: `its working folder \`cwd\` ${cwd} does not exist`,
    denied: `its working folder \`cwd\` ${cwd} cannot be read by the gateway's user`,
    folder: "",
  }[kind];
  return { message, mend: "Create the folder, or correct `cwd`; a relative one begins at the watched folder." };
}

type Located = { readonly file: string } | { readonly problem: ProgramProblem };

/** The file the system would run. */
async function locate(command: string, cwd: string, path: string): Promise<Located> {
  if (command.includes("/")) {
    const file = resolve(cwd, command);
    const problem = await fileProblem(file, command);
    return problem === undefined ? { file } : { problem };
  }
  let denied: ProgramProblem | undefined;
  for (const folder of path.split(delimiter)) {
    const file = join(isAbsolute(folder) ? folder : resolve(cwd, folder), command);
    if ((await kindOf(file)) !== "file") continue;
    const problem = await fileProblem(file, command);
    if (problem === undefined) return { file };
    denied ??= problem;
  }
  const message = `\`command\` ${command} is not in PATH (${path})`;
  return { problem: denied ?? { message, mend: INSTALL } };
}

async function fileProblem(file: string, command: string): Promise<ProgramProblem | undefined> {
  const kind = await kindOf(file);
  const named = command === file ? command : `${command} (${file})`;
  if (kind === "folder") return { message: `\`command\` ${named} is a folder`, mend: "Name the program in it." };
  if (kind === "denied")
    return { message: `\`command\` ${named} cannot be read by the gateway's user`, mend: "Give it the right to." };
  if (kind === "missing") return { message: `\`command\` ${named} does not exist`, mend: INSTALL };
  if (await isExecutable(file)) return undefined;
  return {
    message: `\`command\` ${named} has no permission to run`,
    mend: `Run \`chmod +x ${basename(file)}\`, or name its interpreter in \`command\` and the file in \`args\`.`,
  };
}

async function isExecutable(file: string): Promise<boolean> {
  return access(file, constants.X_OK).then(
    () => true,
    () => false,
  );
}

/** A script is run by the interpreter its first line names. */
async function shebangProblem(
  file: string,
  command: string,
  cwd: string,
  path: string,
): Promise<ProgramProblem | undefined> {
  const line = await firstLine(file);
  if (line === undefined || !line.startsWith("#!")) return undefined;
  if (line.endsWith("\r")) {
    const message = `the first line of ${command} ends with CR LF, which the system takes for a part of the interpreter's name`;
    return { message, mend: "Save the file with LF line ends." };
  }
  const [interpreter = "", word = ""] = line.slice(2).trim().split(/\s+/);
  const [wanted, problem] = interpreter.endsWith("/env")
    ? [word, await envProblem(word, cwd, path)]
    : [interpreter, await fileProblem(resolve(cwd, interpreter), interpreter)];
  if (problem === undefined) return undefined;
  const message = `the interpreter ${wanted}, which the first line of ${command} names, cannot be run`;
  return { message, mend: "Install the interpreter, or correct the first line of the script." };
}

async function envProblem(word: string, cwd: string, path: string): Promise<ProgramProblem | undefined> {
  // Options and variables of env are its own business.
  if (word === "" || word.startsWith("-") || word.includes("=")) return undefined;
  const found = await locate(word, cwd, path);
  return "problem" in found ? found.problem : undefined;
}

/** Without its end; `undefined` where the file cannot be read, which a program need not be. */
async function firstLine(file: string): Promise<string | undefined> {
  try {
    await using handle = await open(file);
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(MAX_SHEBANG_BYTES), 0, MAX_SHEBANG_BYTES, 0);
    return buffer.toString("latin1", 0, bytesRead).split("\n")[0];
  } catch (error) {
    if (errorCode(error) === undefined) throw error;
    return undefined;
  }
}

function errorCode(error: unknown): string | undefined {
  return error instanceof Error && "code" in error ? String(error.code) : undefined;
}
