// Counts the days from Monday to Friday between two dates, both included: node work-days.js 2024-10-01 2024-10-31
const [from, to] = process.argv.slice(2).map((date) => Date.parse(`${date}T00:00:00Z`));

if (!(from <= to)) {
  console.error(`the period must end on or after the day it begins: ${process.argv.slice(2).join(" to ")}`);
  process.exit(2);
}
const count = Math.round((to - from) / 86_400_000) + 1;
const days = Array.from({ length: count }, (_, i) => new Date(from + i * 86_400_000).getUTCDay());
console.log(JSON.stringify({ days: days.filter((day) => day !== 0 && day !== 6).length }));
