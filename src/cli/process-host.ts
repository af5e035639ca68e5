import { spawn } from "node:child_process";
import { homedir, userInfo } from "node:os";
import type { Host, StopSignal } from "./host.ts";

const STOP_SIGNALS: readonly StopSignal[] = ["SIGINT", "SIGTERM"];

/** The user's own folder; where the system knows none, as for a bare user id in a container, the working folder. */
export function homeFolder(): string {
  try {
    return homedir();
  } catch {
    return process.cwd();
  }
}

/** The user's name; where the system knows none, as for a bare user id in a container, that. */
export function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.() ?? "unknown");
  }
}

/** The real process as a host of the command line. */
export function processHost(parts: Pick<Host, "version" | "loadServer" | "loadApiKeys" | "loadLogins">): Host {
  return {
    ...parts,
    stdin: process.stdin,
    stdout: process.stdout,
    stderr: process.stderr,
    surroundings: { env: process.env, cwd: process.cwd(), home: homeFolder(), runtime: process.versions.node },
    onSignal(listener) {
      const entries = STOP_SIGNALS.map((signal) => [signal, () => listener(signal)] as const);
      for (const [signal, handler] of entries) process.on(signal, handler);
      return {
        [Symbol.dispose]: () => {
          for (const [signal, handler] of entries) process.off(signal, handler);
        },
      };
    },
    onReload(listener) {
      process.on("SIGHUP", listener);
      return { [Symbol.dispose]: () => void process.off("SIGHUP", listener) };
    },
    onUncaught(listener) {
      process.on("uncaughtException", listener);
      process.on("unhandledRejection", listener);
      return {
        [Symbol.dispose]: () => {
          process.off("uncaughtException", listener);
          process.off("unhandledRejection", listener);
        },
      };
    },
    exit: (code) => process.exit(code),
    openAddress(address) {
      const [command = "", ...args] = browserCommand(process.platform, process.env.BROWSER);
      const child = spawn(command, [...args, address], { detached: true, stdio: "ignore" });
      // Where there is no browser, the address stands in the terminal.
      child.on("error", () => undefined);
      child.unref();
    },
  };
}

/** What opens an address: the program that BROWSER names, else the system's. Never a shell, since the address is a stranger's. */
function browserCommand(platform: NodeJS.Platform, browser: string | undefined): readonly string[] {
  if (browser !== undefined && browser !== "") return [browser];
  if (platform === "darwin") return ["open"];
  return platform === "win32" ? ["rundll32", "url.dll,FileProtocolHandler"] : ["xdg-open"];
}
