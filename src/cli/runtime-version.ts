/** The versions of Node.js that the gateway runs on; the same as `engines` of package.json. */
export const SUPPORTED_RUNTIMES = "^22.23.3 || >=24.18.1";

/** Whether a version of Node.js, such as `24.21.0`, is one of {@link SUPPORTED_RUNTIMES}. */
export function isSupportedRuntime(version: string): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split(".").map((part) => Number.parseInt(part, 10));
  const atLeast = (minMinor: number, minPatch: number): boolean =>
    minor > minMinor || (minor === minMinor && patch >= minPatch);
  return major > 24 || (major === 24 && atLeast(18, 1)) || (major === 22 && atLeast(23, 3));
}
