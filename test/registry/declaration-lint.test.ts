import { expect, test } from "vitest";
import { declare, notes, ORDER_STATUS, problems } from "./declaration-fixture.ts";

function described(description: string): string[] {
  return notes(`name: order_status\n${description}\ntype: http\nendpoint: http://127.0.0.1/x\n`);
}

test("a vague description is noted, in any language, and breaks nothing [S2-27]", () => {
  for (const text of ["查订单", "查询订单", "order", "Get order", "order status", "Order_Status!"]) {
    expect(described(`description: ${text}`), text).toEqual([
      expect.stringMatching(/^2:1 `description` is too vague to choose by/),
    ]);
  }
  for (const text of [
    "根据订单号查询订单当前状态",
    "Look up the status of one order",
    "注文番号から配送状況を調べる",
    "주문 번호로 배송 상태를 조회합니다",
  ]) {
    expect(described(`description: ${text}`), text).toEqual([]);
  }
});

test("a tool without a description is noted", () => {
  expect(described("title: x")).toEqual([expect.stringMatching(/^1:1 no `description`/)]);
  expect(described("description: ''")).toEqual([expect.stringMatching(/^2:1 no `description`/)]);
});

test("a comment behind the description is noted, since it may be part of it [Y-D15]", () => {
  expect(described("description: query order #42 style ids, not refunds")).toEqual([
    expect.stringMatching(/^2:1 `description` ends before ` #`, which begins a comment/),
    expect.stringMatching(/too vague/),
  ]);
  expect(described("description: Look up the status of one order # shown to models")).toHaveLength(1);
  expect(described("description: 'query order #42 style ids, not refunds'")).toEqual([]);
});

test("a success field without a data field is noted [S2-116]", () => {
  expect(notes(ORDER_STATUS.replace("  data_field: data\n", ""))).toEqual([
    expect.stringMatching(/^17:3 `result\.success_field` is set without `data_field`/),
  ]);
  expect(notes(ORDER_STATUS)).toEqual([]);
});

test("a success value that loses its zeros as a number is noted", () => {
  expect(notes(ORDER_STATUS.replace("success_value: 0", "success_value: 0000"))).toEqual([
    "18:3 `result.success_value`: 0000 is read as number 0: quote it if the answer holds text",
  ]);
  expect(notes(ORDER_STATUS.replace("success_value: 0", 'success_value: "0000"'))).toEqual([]);
});

test("a note says that it is one", () => {
  const [note] = declare("name: t\ntype: http\nendpoint: http://127.0.0.1/x\n", { source: "file:a/t.yaml" }).notes;
  expect(note).toMatchObject({ source: "file:a/t.yaml", line: 1, column: 1, note: true, lastGoodServing: false });
});

test("what the adapter finds odd is noted as well", () => {
  const text = `${ORDER_STATUS}request_body: {order_id: $order_id, h: $include_history}\n`;
  expect(notes(text)).toEqual([expect.stringMatching(/^23:1 `request_body`: HTTP gives the body of a GET no meaning/)]);
  expect(problems(text)).toEqual([]);
});
