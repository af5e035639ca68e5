import { type Fact, mask, type SampleDocument } from "./facts.ts";

type Random = () => number;

interface Row {
  readonly [name: string]: string | number | boolean;
}

const NOUNS = "lamp chair desk kettle tent rope drill scale pump filter cable hinge".split(" ");
const CITIES = ["Aarhus", "Bergen", "Cádiz", "Dresden", "Evora", "Fes", "Graz", "Haifa", "Izmir", "Jena"];
const STATES = ["open", "paid", "shipped", "lost"];

/** Made-up documents of every kind, the same each time, with what may be asked about them. */
export function makeSample(): SampleDocument[] {
  const random = seeded(2026);
  const orders = rowsOf(random, 260);
  return [
    {
      id: "orders",
      type: "json",
      text: JSON.stringify({ status: "ok", items: orders }),
      facts: tableFacts(random, orders, "order_id"),
    },
    nested(random),
    { id: "orders as text", type: "csv", text: csvOf(orders), facts: tableFacts(random, orders, "order_id") },
    log(random),
    manual(random),
  ];
}

function seeded(seed: number): Random {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 4294967296;
  };
}

function pick<T>(random: Random, things: readonly T[]): T {
  const thing = things[Math.floor(random() * things.length)];
  if (thing === undefined) throw new Error("nothing to pick from");
  return thing;
}

function rowsOf(random: Random, count: number): Row[] {
  return Array.from({ length: count }, (_, i) => ({
    order_id: `R-${4000 + i * 7}`,
    article: `${pick(random, NOUNS)} ${pick(random, ["small", "large", "blue", "steel"])}`,
    city: pick(random, CITIES),
    state: random() < 0.02 ? "lost" : pick(random, STATES.slice(0, 3)),
    amount: Math.round(random() * 90_000) / 100,
    pieces: 1 + Math.floor(random() * 40),
    express: random() < 0.2,
  }));
}

function csvOf(rows: readonly Row[]): string {
  const [first = {}] = rows;
  const names = Object.keys(first);
  return [names.join(","), ...rows.map((row) => names.map((name) => String(row[name])).join(","))].join("\n");
}

function tableFacts(random: Random, rows: readonly Row[], key: string): Fact[] {
  const facts: Fact[] = [{ kind: "count", val: String(rows.length) }];
  for (const name of ["amount", "pieces"]) {
    const values = rows.map((row) => Number(row[name]));
    facts.push({ kind: "extreme", key: name, val: String(Math.max(...values)) });
    facts.push({ kind: "extreme", key: name, val: String(Math.min(...values)) });
  }
  for (const name of ["city", "state", "express"]) {
    const groups = [...Map.groupBy(rows, (row) => String(row[name]))].toSorted((a, b) => b[1].length - a[1].length);
    const [val, of] = groups[0] ?? ["", []];
    facts.push({ kind: "category", key: name, val, n: String(of.length) });
  }
  for (let i = 0; i < 20; i++) facts.push(cellFact(random, pick(random, rows), key));
  const edges = [rows[0], rows.at(-1)];
  for (const row of edges) if (row !== undefined) facts.push({ ...cellFact(random, row, key), kind: "edge", q: "" });
  return facts;
}

function cellFact(random: Random, row: Row, key: string): Fact {
  const name = pick(
    random,
    Object.keys(row).filter((field) => field !== key),
  );
  return {
    kind: "row",
    anchor: String(row[key]),
    key: name,
    val: String(row[name]),
    q: `${name} of ${key} ${String(row[key])}`,
  };
}

/** An answer as an API gives it: objects within objects, addresses, many fields nobody asks for. */
function nested(random: Random): SampleDocument {
  const facts: Fact[] = [];
  const person = (): Row => ({
    login: `${pick(random, NOUNS)}${Math.floor(random() * 900)}`,
    id: Math.floor(random() * 1e7),
    avatar_url: `https://img.example/u/${Math.floor(random() * 1e7)}`,
    profile_url: `https://host.example/u/${Math.floor(random() * 1e7)}`,
    kind: pick(random, ["User", "Bot"]),
  });
  const events = Array.from({ length: 6 }, (_, i) => {
    const author = person();
    const event = {
      action: pick(random, ["created", "closed", "labelled"]),
      ticket: {
        number: 100 + i * 13,
        title: `${pick(random, NOUNS)} does not ${pick(random, NOUNS)}`,
        author,
        assignee: i % 2 === 0 ? author : person(),
      },
      project: {
        id: 77_001,
        name: "workshop",
        owner: { login: "guild", id: 31, kind: "Organization" },
        links: linksOf(),
      },
    };
    facts.push({ kind: "top", key: "action", val: event.action, q: "action" });
    facts.push({ kind: "salient", key: "title", val: event.ticket.title, q: "ticket title" });
    facts.push({ kind: "leaf", key: "number", val: String(event.ticket.number), q: "ticket number" });
    facts.push({ kind: "leaf", key: "login", val: String(author["login"]), q: "author login" });
    return event;
  });
  facts.push({ kind: "count", val: String(events.length) });
  return { id: "events", type: "json", text: JSON.stringify(events), facts };
}

function linksOf(): Record<string, string> {
  return Object.fromEntries(
    Array.from({ length: 30 }, (_, i) => [`part${i}_url`, `https://host.example/projects/77001/part${i}{/id}`]),
  );
}

/** The last words of a line. */
function tail(line: string, words: number): string {
  return line.split(" ").slice(-words).join(" ");
}

function log(random: Random): SampleDocument {
  const lines = Array.from({ length: 500 }, (_, i) => {
    const time = `2026-02-0${1 + Math.floor(i / 100)} 08:${String(Math.floor(i / 9) % 60).padStart(2, "0")}:${String(i % 60).padStart(2, "0")}`;
    if (random() < 0.02)
      return `${time} ERROR ${pick(random, NOUNS)} worker gave up after ${Math.floor(random() * 9)} tries`;
    if (random() < 0.04)
      return `${time} INFO ${pick(random, NOUNS)} was moved to ${pick(random, CITIES)} by ${pick(random, NOUNS)}${pick(random, NOUNS)}`;
    return `${time} INFO served ${pick(random, NOUNS)} in ${Math.floor(random() * 300)} ms`;
  });
  const facts: Fact[] = [{ kind: "count", val: String(lines.length) }];
  for (const line of lines.filter((text) => text.includes("ERROR")).slice(0, 8))
    facts.push({ kind: "error", masked: tail(mask(line), 4) });
  for (const line of lines.filter((text) => text.includes("moved")).slice(0, 8))
    facts.push({ kind: "rare", masked: tail(mask(line), 4) });
  for (let i = 0; i < 8; i++) {
    const val = tail(pick(random, lines), 5);
    facts.push({ kind: "line", val, q: val });
  }
  for (const line of [lines[0], lines.at(-1)]) facts.push({ kind: "edge", val: (line ?? "").slice(0, 22) });
  return { id: "workshop.log", type: "log", text: lines.join("\n"), facts };
}

function manual(random: Random): SampleDocument {
  const facts: Fact[] = [];
  const words = (count: number): string => Array.from({ length: count }, () => pick(random, NOUNS)).join(" ");
  const parts = Array.from({ length: 22 }, (_, i) => {
    const title = `${pick(random, NOUNS)} and ${pick(random, NOUNS)} ${i}`;
    const lead = `The ${words(6)} of part ${i} is ${words(4)}.`;
    const more = `- ${words(5)} needs a ${words(4)} of ${i * 17} mm`;
    facts.push({ kind: "heading", val: title }, { kind: "lead", val: lead.slice(0, 60) });
    facts.push({ kind: "line", val: more.slice(0, 50), q: more.slice(0, 50) });
    return `## ${title}\n\n${lead} ${words(50)}.\n\n${more}\n- ${words(12)}\n\n\`\`\`sh\nrun ${words(3)}\n\`\`\`\n`;
  });
  return { id: "manual", type: "md", text: `# Workshop\n\n${parts.join("\n")}`, facts };
}
