/** A variable of a program's environment. */
export type EnvironmentEntry =
  | { readonly name: string; readonly value: string }
  | { readonly name: string; readonly secretRef: string };

/** Variables of the gateway that every program gets. */
const INHERITED: readonly string[] = [
  "PATH",
  "HOME",
  "USER",
  "LOGNAME",
  "SHELL",
  "LANG",
  "LANGUAGE",
  "TZ",
  "TMPDIR",
  // What no Windows program starts without.
  "SystemRoot",
  "SystemDrive",
  "ComSpec",
  "PATHEXT",
  "TEMP",
  "TMP",
  "USERPROFILE",
  "windir",
];

/** Where programs are looked up when the gateway itself has no PATH. */
const STANDARD_PATH = "/usr/local/bin:/usr/bin:/bin";

/** What a program gets of the gateway's environment. */
export function inheritedEntries(
  environment: Readonly<Record<string, string | undefined>>,
  more: readonly string[],
): EnvironmentEntry[] {
  const names = Object.keys(environment).filter(
    (name) => INHERITED.includes(name) || name.startsWith("LC_") || more.includes(name),
  );
  const entries = names.flatMap((name) => {
    const value = environment[name];
    return value === undefined ? [] : [{ name, value }];
  });
  return names.includes("PATH") ? entries : [{ name: "PATH", value: STANDARD_PATH }, ...entries];
}

/** `PATH` of a program; empty where a secret stands for it. */
export function pathOf(env: readonly EnvironmentEntry[]): string {
  const entry = env.find(({ name }) => name === "PATH");
  return entry !== undefined && "value" in entry ? entry.value : "";
}
