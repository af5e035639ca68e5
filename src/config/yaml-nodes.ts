import type { Alias, ParsedNode, Scalar, YAMLMap, YAMLSeq } from "yaml";
import { isAlias, isMap, isPair, isScalar } from "yaml";
import type { JsonValue } from "../core/json.ts";
import { jsonPointer } from "../core/json.ts";
import type { Finding, LineIndex, SourceMember, SourceNode } from "./source-document.ts";
import { listNode, mappingNode, scalarNode } from "./source-document.ts";
import {
  holdsLoneSurrogate,
  inline,
  LONE_SURROGATE,
  pathText,
  TAB_INDENT,
  valueText,
  writtenTwice,
} from "./wording.ts";

/** Key whose value's entries join the mapping it stands in. Source: https://yaml.org/type/merge.html. */
const MERGE_KEY = "<<";

/** Most findings of one document. */
const MAX_FINDINGS = 100;

/** Most entries that merge keys may add to a document. */
const MAX_MERGED = 10_000;

/** What the walk over the composed nodes gives. */
export interface ConvertedYaml {
  readonly root: SourceNode;
  readonly findings: readonly Finding[];
  /** Offsets at which the composer reports what a finding here says better. */
  readonly explained: ReadonlySet<number>;
  /** Where reading went astray, at a quote that is never closed; what is reported behind it means nothing. */
  readonly readableUntil: number;
}

interface Walk {
  readonly text: string;
  readonly lines: LineIndex;
  readonly findings: Finding[];
  readonly explained: Set<number>;
  /** A slot is empty while its node is being read: an alias to it would hold itself. */
  readonly anchors: Map<string, { node: SourceNode | undefined }>;
  readonly steps: (string | number)[];
  readableUntil: number;
  /** Entries that merge keys added so far. */
  merged: number;
}

/** Makes plain values of composed YAML, with their places, and finds what is no JSON or most likely a slip. */
export function convertYaml(contents: ParsedNode, text: string, lines: LineIndex): ConvertedYaml {
  const walk: Walk = {
    text,
    lines,
    findings: [],
    explained: new Set(),
    anchors: new Map(),
    steps: [],
    readableUntil: Number.POSITIVE_INFINITY,
    merged: 0,
  };
  const root = convertNode(contents, walk);
  const findings = walk.findings.filter((finding) => finding.offset <= walk.readableUntil);
  return { root, findings, explained: walk.explained, readableUntil: walk.readableUntil };
}

function find(walk: Walk, offset: number, message: string): void {
  if (walk.findings.length < MAX_FINDINGS) walk.findings.push({ offset, message });
}

function convertNode(node: ParsedNode, walk: Walk): SourceNode {
  if (isAlias(node)) return resolveAlias(node, walk);
  const slot: { node: SourceNode | undefined } = { node: undefined };
  if (node.anchor !== undefined) walk.anchors.set(node.anchor, slot);
  const made = isScalar(node)
    ? convertScalar(node, walk)
    : isMap(node)
      ? convertMap(node, walk)
      : convertList(node, walk);
  slot.node = made;
  return made;
}

function resolveAlias(alias: Alias.Parsed, walk: Walk): SourceNode {
  const offset = alias.range[0];
  const slot = walk.anchors.get(alias.source);
  if (slot?.node !== undefined) return { ...slot.node, offset };
  const name = inline(alias.source);
  find(
    walk,
    offset,
    slot === undefined
      ? `alias \`*${name}\` has no anchor \`&${name}\` before it; quote the value if it is text`
      : `alias \`*${name}\` stands inside the value it names`,
  );
  return scalarNode(null, offset);
}

function convertScalar(node: Scalar.Parsed, walk: Walk): SourceNode {
  const offset = node.range[0];
  const token = node.srcToken;
  if (token !== undefined && token.type !== "block-scalar" && !quoteClosed(token.source)) {
    walk.readableUntil = Math.min(walk.readableUntil, offset);
    walk.explained.add(node.range[1]);
    find(walk, offset, `this ${token.source[0] === '"' ? "double" : "single"} quote is not closed`);
  }
  const plain = node.type === "PLAIN" && node.tag === undefined;
  const value = scalarValue(node);
  if (typeof value === "string" && holdsLoneSurrogate(value)) find(walk, offset, LONE_SURROGATE);
  return scalarNode(value, offset, plain ? node.source : undefined, node.comment ?? undefined);
}

/** Infinity and "not a number" are no JSON: they stay the text they were written as. */
function scalarValue(node: Scalar.Parsed): JsonValue {
  const { value } = node;
  switch (typeof value) {
    case "bigint": {
      const number = Number(value);
      return Number.isSafeInteger(number) ? number : value;
    }
    case "number":
      return Number.isFinite(value) ? value : node.source;
    case "string":
    case "boolean":
      return value;
    default:
      return value === null ? null : node.source;
  }
}

/** Whether the source of a flow scalar ends as it began; plain ones always do. */
function quoteClosed(source: string): boolean {
  const quote = source[0];
  if (quote !== '"' && quote !== "'") return true;
  if (source.length < 2 || !source.endsWith(quote)) return false;
  // An odd number of backslashes, or of further quotes, makes the last quote part of the text.
  const before = quote === '"' ? "\\" : "'";
  let count = 0;
  while (source.length - 2 - count > 0 && source[source.length - 2 - count] === before) count++;
  return count % 2 === 0;
}

function convertList(node: YAMLSeq.Parsed, walk: Walk): SourceNode {
  checkClosed(node, walk);
  const items = node.items.map((item, i) => {
    walk.steps.push(i);
    const made = isPair(item) ? scalarNode(null, node.range[0]) : convertNode(item, walk);
    walk.steps.pop();
    return made;
  });
  return listNode(items, node.range[0]);
}

function convertMap(node: YAMLMap.Parsed, walk: Walk): SourceNode {
  checkClosed(node, walk);
  const members = new Map<string, SourceMember>();
  const merged: SourceNode[] = [];
  for (const { key, value } of node.items) {
    if (!isScalar(key)) {
      templateKey(key, walk);
      continue;
    }
    const name = String(key.value);
    const keyOffset = key.range[0];
    if (value === null && node.flow === true) keyWithoutColon(node, key, walk);
    const entry = convertMember(key, value, walk);
    const first = members.get(name);
    if (name === MERGE_KEY && key.type === "PLAIN") merged.push(...mergeSources(entry, keyOffset, walk));
    else if (first === undefined) members.set(name, { keyOffset, node: entry });
    else find(walk, keyOffset, writtenTwice(walk.lines, name, first.keyOffset, keyOffset));
  }
  // Own entries win over merged ones, and earlier merged ones over later ones.
  for (const source of merged) {
    for (const [name, member] of source.members ?? []) if (!members.has(name)) members.set(name, member);
  }
  return mappingNode(members, node.range[0]);
}

function convertMember(key: Scalar.Parsed, value: ParsedNode | null, walk: Walk): SourceNode {
  const name = String(key.value);
  if (holdsLoneSurrogate(name)) find(walk, key.range[0], LONE_SURROGATE);
  walk.steps.push(name);
  const node = value === null ? scalarNode(null, key.range[1]) : convertNode(value, walk);
  walk.steps.pop();
  return node;
}

/** The mappings a merge key names. */
function mergeSources(entry: SourceNode, keyOffset: number, walk: Walk): readonly SourceNode[] {
  const sources = entry.items ?? [entry];
  const wrong = sources.find((source) => source.members === undefined);
  if (wrong !== undefined) {
    find(walk, keyOffset, `\`<<\` takes a mapping or a list of mappings, got ${valueText(wrong.value)}`);
    return [];
  }
  for (const source of sources) walk.merged += source.members?.size ?? 0;
  if (walk.merged <= MAX_MERGED) return sources;
  find(walk, keyOffset, `\`<<\` adds more than ${MAX_MERGED} entries to this document: write them out`);
  return [];
}

/** A template as a key; other keys that are no text are reported by the composer. */
function templateKey(key: ParsedNode, walk: Walk): void {
  const [offset] = key.range;
  const template = templateText(walk.text, offset);
  if (template !== undefined) find(walk, offset, `a key must be text, got a mapping: quote the template, ${template}`);
}

/** `{id}` without quotes is a mapping with the key `id`, which nobody means. */
function keyWithoutColon(node: YAMLMap.Parsed, key: Scalar.Parsed, walk: Walk): void {
  const where = pathText(jsonPointer(walk.steps)) || "the document";
  const template = templateText(walk.text, node.range[0]);
  if (template === undefined) {
    const name = inline(String(key.value));
    find(
      walk,
      key.range[0],
      `\`${name}\` in ${where} has no \`:\`: inside { } write \`key: value\`, or quote the text`,
    );
  } else find(walk, node.range[0], `${where} is a mapping here, not text: quote the template, ${template}`);
}

/** The text that begins with a template at the offset, in quotes; `undefined` where no template begins there. */
function templateText(text: string, offset: number): string | undefined {
  const found = /^\{+[\w.-]*\}+(?:\{+[\w.-]*\}+|[^\s,\]}#])*/.exec(text.slice(offset, offset + 80))?.[0];
  if (found === undefined) return undefined;
  // Brackets of a mapping around the template are not its own.
  const extra = found.split("}").length - found.split("{").length;
  return JSON.stringify(inline(extra > 0 ? found.slice(0, -extra) : found).replace(/:$/, ""));
}

/** A bracket that is never closed, or closed behind a line that a tab moved out of it. */
function checkClosed(node: YAMLMap.Parsed | YAMLSeq.Parsed, walk: Walk): void {
  const token = node.srcToken;
  if (token?.type !== "flow-collection") return;
  const close = token.start.source === "{" ? "}" : "]";
  if (token.end[0]?.source === close) return;
  const [offset, end] = node.range;
  walk.explained.add(end);
  const { line } = walk.lines.position(end);
  if (/^ *\t/.test(walk.lines.text(line))) find(walk, end, TAB_INDENT);
  else find(walk, offset, `this \`${token.start.source}\` is not closed by \`${close}\``);
}
