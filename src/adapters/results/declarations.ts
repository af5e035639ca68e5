/** The tools by which a model reads on in results that are kept, as declarations. */
export const RESULT_TOOLS: readonly { readonly name: string; readonly text: string }[] = [
  {
    name: "result_read",
    text: `name: result_read
title: Read on in a result
description: >-
  Reads a part of an earlier result that was too long to be given whole and that its shortened text names by a handle,
  result://... Give the handle, and what to read: a path in JSON, rows of a list or table with the columns needed,
  lines of a text, or bytes. A page that is not the last comes with a cursor: call again with the handle and that
  cursor alone.
type: module
reads: pages
hints: { read_only: true, destructive: false, idempotent: true, open_world: false }
argument_handles: keep
result: { handle: false }
params:
  - name: handle
    type: string
    required: true
    description: The handle as it came, such as result://AbC...
  - name: as
    type: string
    enum: [json, rows, lines, bytes]
    description: How to read. Without it, JSON from path, anything else from its beginning; columns mean rows.
  - name: path
    type: string
    description: Where in a JSON result, such as data.items[0] or /data/items/0. Without it, the top.
  - name: columns
    type: array
    items: { type: string }
    description: Columns of the rows to give. Without it, all.
  - name: offset
    type: integer
    minimum: 0
    description: First entry, row or byte, from 0; of lines the first line, from 1.
  - name: limit
    type: integer
    minimum: 1
    description: Most entries, rows, lines or bytes. Without it, as many as fit.
  - name: max_length
    type: integer
    minimum: 100
    maximum: 200000
    default: 20000
    description: Most characters of the page.
  - name: cursor
    type: string
    description: Of the page before, to go on after it.
`,
  },
  {
    name: "result_search",
    text: `name: result_search
title: Search in a result
description: >-
  Finds a text or a regular expression in an earlier result that was too long to be given whole and that its shortened
  text names by a handle, result://... Gives each place with its path in JSON, or with its line and byte, and what
  stands around it. If not all was searched it comes with a cursor: call again with the handle and that cursor alone.
type: module
reads: matches
hints: { read_only: true, destructive: false, idempotent: true, open_world: false }
argument_handles: keep
result: { handle: false }
params:
  - name: handle
    type: string
    required: true
    description: The handle as it came, such as result://AbC...
  - name: pattern
    type: string
    description: What to look for; needed unless there is a cursor.
  - name: regex
    type: boolean
    default: false
    description: Whether the pattern is a regular expression (RE2 syntax).
  - name: ignore_case
    type: boolean
    default: false
    description: Whether upper and lower case are alike.
  - name: limit
    type: integer
    minimum: 1
    maximum: 500
    default: 50
    description: Most places.
  - name: max_length
    type: integer
    minimum: 100
    maximum: 200000
    default: 20000
    description: Most characters of the page.
  - name: cursor
    type: string
    description: Of the page before, to go on after it.
`,
  },
];
