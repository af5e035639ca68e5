/** The tool that the bench changes and calls. It answers with the path its upstream was asked for. */
export const PROBE = "scale_probe";

/** A declaration that sends calls to `/<revision>` of an upstream. */
export function probe(upstreamPort: number, revision: string): string {
  return `name: ${PROBE}
description: Tells which version of this declaration is in force
type: http
method: GET
endpoint: http://127.0.0.1:${upstreamPort}/${revision}
`;
}

/**
 * One of many declarations: four shapes as people write them, each with texts of its own. Parts such as `params` are the
 * same in all of a shape, unless `different`: then a comment makes each part another text.
 */
export function declaration(n: number, different: boolean): string {
  const text = (SHAPES[n % SHAPES.length] ?? lookup)(n);
  return different ? text.replaceAll(/:\n(?= )/g, `:\n  # ${n}\n`).replaceAll(/[}\]]$/gm, `$& # ${n}`) : text;
}

const SHAPES: readonly ((n: number) => string)[] = [lookup, search, message, metrics];

function lookup(n: number): string {
  return `name: order_status_${n}
description: 根据订单号查询第 ${n} 号系统的订单当前状态，支持传入订单号和时间范围
type: http
endpoint: https://api.example.com/s${n}/orders/{order_id}/status
method: GET
params:
  - name: order_id
    required: true
    type: string
    description: 订单号，例如 SO20241001
  - name: include_history
    required: false
    type: boolean
    default: false
    description: 是否返回完整状态流转历史
result:
  success_field: code
  success_value: 0
  data_field: data
auth:
  header_name: Authorization
  secret_ref: ORDER_API_TOKEN
`;
}

function search(n: number): string {
  return `# Finds invoices of one system.
name: invoice.search-${n}
title: "Search invoices ${n}"
description: "Search the invoices of one customer by date and amount: the newest come first."
type: http
method: POST
endpoint: https://api.example.com/v1/s${n}/invoices/search
labels: { team: finance, stage: "prod" }
hints:
  read_only: true
params:
  - { name: customer_id, type: integer, required: true, description: "Number of the customer, such as 42" }
  - { name: from, type: string, format: date, description: "First day, such as 2024-01-31" }
  - { name: limit, type: integer, minimum: 1, maximum: 100, default: 20 }
  - { name: status, type: string, enum: [open, paid, void] }
body:
  customer: $customer_id
  range: { from: $from }
  status: $status
  page: { limit: $limit }
headers:
  X-Client: toolgate
timeout: { connect: 2s, total: 20s }
result: { format: json, data_field: data.items }
`;
}

function message(n: number): string {
  return `name: send_message_${n}
description: |
  Send a message to a channel of workspace ${n}. Use it when somebody is to be
  told something; the channel must exist.
type: http
method: POST
endpoint: https://chat.example.com/s${n}/messages
input_schema:
  type: object
  required: [channel, text]
  additionalProperties: false
  properties:
    channel: { type: string, pattern: "^#[a-z0-9_-]{1,80}$", description: "Name with #, such as #ops" }
    text: { type: string, minLength: 1, maxLength: 4000 }
    options:
      type: object
      properties:
        silent: { type: boolean }
        mentions: { type: array, items: { type: string }, maxItems: 20 }
auth: { header_name: Authorization, secret_ref: CHAT_TOKEN, prefix: Bearer }
`;
}

function metrics(n: number): string {
  return `name: host_metrics_${n}
description: Metrics of one host of cluster ${n}, averaged over a window of time
type: http
method: GET
endpoint: "https://metrics.example.com/s${n}/query?host={host}"
params:
  - name: host
    type: string
    required: true
  - name: window
    type: string
    default: 5m
`;
}
