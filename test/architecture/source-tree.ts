import { globSync, readFileSync } from "node:fs";
import ts from "typescript";

/** A module as the rules look at it: read from its text, so that no linter setting or comment can hide anything. */
export interface SourceModule {
  /** Path from the repository's root, `/` between its parts. */
  readonly path: string;
  readonly text: string;
  /** What it imports or re-exports, types and `import()` included: a path from the root, or a package or `node:` name. */
  readonly imports: readonly string[];
}

/** Every TypeScript and JavaScript file below a folder, generated code left out. */
export function readModules(folder: string): SourceModule[] {
  return globSync(`${folder}/**/*.{ts,js}`)
    .map((path) => path.replaceAll("\\", "/"))
    .filter((path) => !/(^|\/)(gen|node_modules)\//.test(path))
    .toSorted()
    .map((path) => {
      const text = readFileSync(path, "utf8");
      const specifiers = ts.preProcessFile(text, true, true).importedFiles.map((entry) => entry.fileName);
      return { path, text, imports: specifiers.map((specifier) => resolveSpecifier(path, specifier)) };
    });
}

/** Syntax tree of a module. */
export function parseModule(module: SourceModule): ts.SourceFile {
  return ts.createSourceFile(module.path, module.text, ts.ScriptTarget.Latest, true);
}

/** Every node of a tree that is more than a token, the root first. */
export function nodesOf(root: ts.Node): ts.Node[] {
  const nodes = [root];
  for (let i = 0; i < nodes.length; i++) nodes[i]?.forEachChild((child) => void nodes.push(child));
  return nodes;
}

/** `path:line` of a node, for messages. */
export function at(module: SourceModule, node: ts.Node): string {
  const { line } = node.getSourceFile().getLineAndCharacterOfPosition(node.getStart());
  return `${module.path}:${line + 1}`;
}

function resolveSpecifier(from: string, specifier: string): string {
  if (!specifier.startsWith(".")) return specifier;
  return new URL(specifier, `file:///${from}`).pathname.slice(1);
}
