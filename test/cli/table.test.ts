import { expect, test } from "vitest";
import { fitColumns, tableLines } from "../../src/cli/table.ts";

test("columns stand under each other, also with characters two columns wide [S2-79]", () => {
  expect(
    tableLines([
      ["NAME", "STATE", "DESCRIPTION"],
      ["order_status", "active", "根据订单号查询"],
      ["订单", "active", "é👩‍💻 x"],
      ["t", "", ""],
    ]),
  ).toEqual([
    "NAME          STATE   DESCRIPTION",
    "order_status  active  根据订单号查询",
    "订单          active  é👩‍💻 x",
    "t",
  ]);
});

test("the last column is shortened to the terminal's width and no character is cut in two", () => {
  const rows = [["order_status", "根据订单号查询订单当前状态"]];
  expect(tableLines(rows, 27)).toEqual(["order_status  根据订单号查…"]);
  expect(tableLines(rows, 26)).toEqual(["order_status  根据订单号…"]);
  expect(tableLines(rows, 40)).toEqual(["order_status  根据订单号查询订单当前状态"]);
  // Too narrow for anything: the last column keeps ten columns.
  expect(tableLines(rows, 5)).toEqual(["order_status  根据订单…"]);
  expect(fitColumns("abc", 3)).toBe("abc");
  expect(fitColumns("abcd", 3)).toBe("ab…");
});
