type Random = () => number;

const WORDS = "amber basin cedar delta ember fjord grove harbor inlet jetty kelp lagoon mesa notch orchard".split(" ");

/** A made-up text of about 1 MB of each kind, the same each time. */
export function largeTexts(): Readonly<Record<string, string>> {
  const random = seeded(2027);
  return {
    JSON: JSON.stringify({ ok: true, items: repeat(5_200, (i) => record(random, i)) }),
    "JSON, nested": JSON.stringify(tree(random, 4)),
    NDJSON: repeat(5_200, (i) => JSON.stringify(record(random, i))).join("\n"),
    CSV: `id,name,state,total,city,note\n${repeat(16_000, (i) => row(random, i)).join("\n")}`,
    HTML: `<!doctype html><body>${repeat(1_500, () => section(random)).join("")}</body>`,
    "HTML table": `<!doctype html><body><table><tr><th>id</th><th>name</th><th>note</th></tr>${repeat(12_000, (i) => `<tr><td>${i}</td><td>${words(random, 2)}</td><td>${words(random, 4)}</td></tr>`).join("")}</table></body>`,
    Markdown: repeat(
      1_400,
      (i) => `## ${words(random, 3)} ${i}\n\n${words(random, 70)}.\n\n- ${words(random, 9)}\n- ${words(random, 9)}\n`,
    ).join("\n"),
    log: repeat(13_500, (i) => logLine(random, i)).join("\n"),
    "stack traces": repeat(1_800, (i) => trace(random, i)).join("\n"),
    text: repeat(1_500, () => `${words(random, 50)}. ${words(random, 55)}.`).join("\n\n"),
    "one line": words(random, 150_000),
  };
}

function seeded(seed: number): Random {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 4294967296;
  };
}

function repeat<T>(count: number, make: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, i) => make(i));
}

function words(random: Random, count: number): string {
  return repeat(count, () => WORDS[Math.floor(random() * WORDS.length)] ?? "").join(" ");
}

function record(random: Random, i: number): object {
  return {
    id: i,
    name: words(random, 2),
    state: random() < 0.5 ? "open" : "shut",
    total: Math.round(random() * 1e6) / 100,
    owner: { login: words(random, 1), id: Math.floor(random() * 1e5) },
    note: words(random, 6),
    at: `2026-05-01T10:00:${String(i % 60).padStart(2, "0")}Z`,
  };
}

function tree(random: Random, depth: number): object {
  const names = repeat(8, (i) => `${WORDS[i] ?? ""}_${depth}`);
  return Object.fromEntries(
    names.map((name) => [name, depth === 0 ? words(random, 3) : random() < 0.9 ? tree(random, depth - 1) : 7]),
  );
}

function row(random: Random, i: number): string {
  return `${i},"${words(random, 2)}, ${i % 90}",${random() < 0.3 ? "open" : "shut"},${(random() * 900).toFixed(2)},${words(random, 1)},${words(random, 4)}`;
}

function section(random: Random): string {
  return `<h2>${words(random, 3)}</h2><p class="x">${words(random, 60)} &amp; <b>${words(random, 3)}</b></p><ul><li>${words(random, 9)}</li><li>${words(random, 9)}</li></ul>`;
}

function logLine(random: Random, i: number): string {
  const time = `2026-05-01T10:${String(Math.floor(i / 60) % 60).padStart(2, "0")}:${String(i % 60).padStart(2, "0")}.000Z`;
  if (random() < 0.01) return `${time} ERROR ${words(random, 3)} failed after ${i} ms`;
  return `${time} INFO ${words(random, 4)} served ${i} in ${Math.floor(random() * 900)} ms`;
}

function trace(random: Random, i: number): string {
  const frames = repeat(12, () => `\tat com.shop.${words(random, 1)}.Service.run(${words(random, 1)}.java:${i})`);
  return [`java.lang.IllegalStateException: ${words(random, 3)} ${i}`, ...frames].join("\n");
}
