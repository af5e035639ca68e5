/** Source of the problems of a server and its tools that have no place in a file. */
export function serverSource(name: string): string {
  return `server:${name}`;
}

/** The server that such a source is of. */
export function serverOfSource(source: string): string | undefined {
  return source.startsWith("server:") ? source.slice("server:".length) : undefined;
}

/** What goes before the reason why a server has never told of its tools. */
export function noToolsBegin(server: string): string {
  return `server "${server}" has offered no tools: `;
}

/** At most so many entries of a list, and how many more there are. */
export function listed(entries: readonly string[], most: number): readonly string[] {
  return entries.length <= most ? entries : [...entries.slice(0, most), `and ${entries.length - most} more`];
}
