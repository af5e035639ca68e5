import type { Socket } from "node:net";
import { ConnectProblem } from "./connect-problem.ts";
import type { Proxy } from "./proxy.ts";
import type { SocketTarget } from "./socket.ts";

/** Most bytes of a proxy's answer. */
const MAX_ANSWER_BYTES = 16 * 1024;

/**
 * Asks a proxy to pass a connection on. Calls back once, with what is wrong where it does not; never after the socket
 * was destroyed without an error. Source: RFC 9110, section 9.3.6.
 */
export function openTunnel(
  socket: Socket,
  proxy: Proxy,
  { host, port }: SocketTarget,
  done: (problem: ConnectProblem | undefined) => void,
): void {
  const authority = `${host.includes(":") ? `[${host}]` : host}:${port}`;
  const credentials = proxy.authorization === undefined ? "" : `proxy-authorization: ${proxy.authorization}\r\n`;
  let answer = "";
  const finish = (problem: ConnectProblem | undefined): void => {
    socket.off("data", onData).off("end", onEnd).off("error", onEnd).pause();
    if (problem !== undefined) socket.destroy();
    done(problem);
  };
  const onEnd = (): void => finish(refused(proxy, "closed the connection"));
  const onData = (chunk: Buffer): void => {
    answer += chunk.toString("latin1");
    const end = answer.indexOf("\r\n\r\n");
    if (end === -1 && answer.length < MAX_ANSWER_BYTES) return;
    const status = /^HTTP\/1\.[01] (\d{3})(?!\d)/.exec(answer)?.[1];
    if (end === -1 || status === undefined) finish(refused(proxy, "sent what is not HTTP/1.1"));
    else if (!status.startsWith("2")) finish(refused(proxy, `answered HTTP ${status}`, status));
    // Behind the tunnel the client speaks first.
    else if (answer.length > end + 4) finish(refused(proxy, "sent more than its answer"));
    else finish(undefined);
  };
  socket.on("data", onData).once("end", onEnd).once("error", onEnd);
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nhost: ${authority}\r\n${credentials}\r\n`, "latin1");
}

function refused(proxy: Proxy, what: string, status?: string): ConnectProblem {
  const mend =
    status === "407"
      ? `Put a name and password that the proxy takes into ${proxy.variable}.`
      : `Let the proxy pass this host on, correct ${proxy.variable}, or name the host in NO_PROXY.`;
  return new ConnectProblem("PROXY_REFUSED", `proxy ${proxy.origin} (${proxy.variable}) ${what} to CONNECT`, mend);
}
