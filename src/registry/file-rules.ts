import picomatch from "picomatch";

/** What becomes of a file: `read`, `silent` (no file of a user), or a note that says why it is ignored. */
export type FileVerdict = "read" | "silent" | { readonly note: string };

/** Names that editors and copying programs give to files that live for a moment. */
const TEMPORARY = [
  /~$/,
  /\.(swp|swo|swx|tmp|part|crdownload)$/i,
  // vim looks whether it can create a file of this name.
  /^4913$/,
  /^#.*#$/,
  /___jb_(tmp|old)___$/,
];

/** Whether a file or folder of this name is not looked at: hidden ones, `..data` of a mounted ConfigMap, editors' files. */
export function isHidden(name: string): boolean {
  return name.startsWith(".") || TEMPORARY.some((pattern) => pattern.test(name));
}

/**
 * The rule for files by their path, relative to the tools folder with `/` between its parts.
 *
 * @param include globs; a file that none matches is ignored with a note.
 */
export function createFileRules(include: readonly string[]): (path: string) => FileVerdict {
  const matches = picomatch([...include]);
  const rules = include.map((rule) => `"${rule}"`).join(", ");
  const note = { note: `ignored: no include rule matches (tools.include: ${rules}); rename the file or add a rule` };
  return (path) => {
    if (path.split("/").some(isHidden)) return "silent";
    return matches(path) ? "read" : note;
  };
}
