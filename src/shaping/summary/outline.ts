/** One thing that an outline may say. */
export interface OutlineLeaf {
  readonly path: readonly string[];
  readonly text: string;
  /** What it is worth. */
  readonly score: number;
  /** Stands on a line of its own. */
  readonly alone?: boolean;
  /** How many values it tells of. Absent: one. */
  readonly says?: number;
}

/** An outline within its budget. */
export interface Outline {
  readonly text: string;
  /** How many of the leaves stand in it. */
  readonly kept: number;
  /** How many values they tell of. */
  readonly said: number;
}

interface Branch {
  readonly label: string;
  readonly parent: Branch | undefined;
  readonly depth: number;
  readonly branches: Map<string, Branch>;
  /** Leaves and branches in their order. */
  readonly children: (Branch | OutlineLeaf)[];
}

/** A line of inline leaves is broken after so many characters. */
const LINE_WIDTH = 160;

/** How often the choice is made again with what the last one was off by. */
const ROUNDS = 4;

/**
 * The leaves that are worth most for what they cost, in their order, as nested names. A branch is paid for by the first
 * leaf that needs it.
 */
export function outline(leaves: readonly OutlineLeaf[], budget: number): Outline {
  const homes = plant(leaves);
  const worths = Float64Array.from(leaves, worth);
  const order = leaves.map((_, i) => i).toSorted((a, b) => (worths[b] ?? 0) - (worths[a] ?? 0) || a - b);
  let best: Outline = { text: "", kept: 0, said: 0 };
  let estimate = budget;
  for (let round = 0; round < ROUNDS; round++) {
    const kept = choose(leaves, homes, order, estimate);
    const text = render(leaves, homes, kept);
    if (text.length <= budget && kept.size >= best.kept) best = { text, kept: kept.size, said: saidBy(leaves, kept) };
    if (kept.size === leaves.length && text.length <= budget) break;
    const next = Math.floor((estimate * (budget - (text.length > budget ? 8 : 0))) / Math.max(1, text.length));
    if (next === estimate || (text.length <= budget && text.length > budget * 0.97)) break;
    estimate = Math.min(next, estimate * 2);
  }
  return best;
}

function saidBy(leaves: readonly OutlineLeaf[], kept: ReadonlySet<number>): number {
  let said = 0;
  for (const i of kept) said += leaves[i]?.says ?? 1;
  return said;
}

function worth(leaf: OutlineLeaf): number {
  return leaf.score > 0 ? leaf.score / Math.sqrt(costOf(leaf) + 12) : leaf.score;
}

function costOf(leaf: OutlineLeaf): number {
  return leaf.text.length + (leaf.path.at(-1)?.length ?? 0) + 4;
}

/** The branch each leaf stands in. */
function plant(leaves: readonly OutlineLeaf[]): Branch[] {
  const root = branch("", undefined);
  return leaves.map(({ path }) => {
    let here = root;
    for (const label of path.slice(0, -1)) {
      let next = here.branches.get(label);
      if (next === undefined) here.branches.set(label, (next = branch(label, here)));
      here = next;
    }
    return here;
  });
}

function branch(label: string, parent: Branch | undefined): Branch {
  return { label, parent, depth: parent === undefined ? 0 : parent.depth + 1, branches: new Map(), children: [] };
}

function choose(
  leaves: readonly OutlineLeaf[],
  homes: readonly Branch[],
  order: readonly number[],
  budget: number,
): Set<number> {
  const kept = new Set<number>();
  const open = new Set<Branch>();
  let used = 0;
  let misses = 0;
  for (const i of order) {
    const leaf = leaves[i];
    const home = homes[i];
    if (leaf === undefined || home === undefined) continue;
    let cost = costOf(leaf) + (leaf.alone === true ? home.depth : 0);
    for (let at = home; at.parent !== undefined && !open.has(at); at = at.parent)
      cost += at.label.length + at.depth + 3;
    if (used + cost > budget) {
      if (++misses > 400) break;
      continue;
    }
    used += cost;
    kept.add(i);
    for (let at = home; at.parent !== undefined && !open.has(at); at = at.parent) open.add(at);
  }
  return kept;
}

function render(leaves: readonly OutlineLeaf[], homes: readonly Branch[], kept: ReadonlySet<number>): string {
  const children = new Map<Branch, (Branch | OutlineLeaf)[]>();
  let root: Branch | undefined;
  for (const [i, leaf] of leaves.entries()) {
    const home = homes[i];
    if (!kept.has(i) || home === undefined) continue;
    let child: Branch | OutlineLeaf = leaf;
    let at: Branch | undefined = home;
    while (at !== undefined) {
      const list = children.get(at);
      if (list !== undefined) {
        list.push(child);
        break;
      }
      children.set(at, [child]);
      child = at;
      root = at.parent === undefined ? at : root;
      at = at.parent;
    }
  }
  return root === undefined ? "" : lines(root, "", children).join("\n");
}

type Children = ReadonlyMap<Branch, readonly (Branch | OutlineLeaf)[]>;

function lines(at: Branch, indent: string, children: Children): string[] {
  const out: string[] = [];
  let run = "";
  const flush = (): void => {
    if (run !== "") out.push(indent + run);
    run = "";
  };
  for (const child of children.get(at) ?? []) {
    if ("text" in child) {
      const item = `${child.path.at(-1) ?? ""}: ${child.text}`;
      if (child.alone === true || run.length + item.length > LINE_WIDTH) flush();
      run = run === "" ? item : `${run}, ${item}`;
      if (child.alone === true) flush();
    } else {
      flush();
      out.push(...branchLines(child, indent, children));
    }
  }
  flush();
  return out;
}

function branchLines(first: Branch, indent: string, children: Children): string[] {
  let label = first.label;
  let at = first;
  for (;;) {
    const within = children.get(at) ?? [];
    const only = within.length === 1 ? within[0] : undefined;
    if (only === undefined) break;
    if ("text" in only) return [`${indent}${joined(label, only.path.at(-1) ?? "")}: ${only.text}`];
    label = joined(label, only.label);
    at = only;
  }
  const inner = lines(at, `${indent} `, children);
  const only = inner.length === 1 ? inner[0]?.trimStart() : undefined;
  if (only !== undefined) return [`${indent}${label}: {${only}}`];
  return [`${indent}${label}:`, ...inner];
}

function joined(path: string, label: string): string {
  return label.startsWith("[") ? path + label : `${path}.${label}`;
}
