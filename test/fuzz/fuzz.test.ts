import { expect, test } from "vitest";
import { openArguments } from "./arguments.ts";
import { openDeclarations } from "./declarations.ts";
import { openPaths } from "./paths.ts";
import { shortRun } from "./run.ts";
import { openScripts } from "./scripts.ts";
import { openTemplates } from "./templates.ts";

/** A busy machine takes a good deal more than the second that this is. */
const TIMEOUT_MS = 120_000;

test("no text of a declaration is answered with anything but a declaration or problems in their places", {
  timeout: TIMEOUT_MS,
}, async () => {
  await using target = openDeclarations();
  await shortRun(target, { name: "declarations", inputs: 300 });
  expect(target.outcomes.of("refused") + target.outcomes.of("unreadable")).toBeGreaterThan(0);
});

test("no argument makes a request of a template that the template does not say", { timeout: TIMEOUT_MS }, async () => {
  await using target = openTemplates();
  await shortRun(target, { name: "templates", inputs: 2_000 });
  expect(target.outcomes.of("sent")).toBeGreaterThan(0);
});

test("no argument makes a program or a shell do what the command does not say", { timeout: TIMEOUT_MS }, async () => {
  await using target = openScripts();
  await shortRun(target, { name: "scripts", inputs: 2_000 });
  expect(target.outcomes.of("shell")).toBeGreaterThan(0);
});

test("no text of arguments is read or judged otherwise than by JSON and its schema", {
  timeout: TIMEOUT_MS,
}, async () => {
  await using target = openArguments();
  await shortRun(target, { name: "arguments", inputs: 500 });
  expect(target.outcomes.of("malformed")).toBeGreaterThan(0);
});

test("no path into an answer finds what the answer does not have itself", { timeout: TIMEOUT_MS }, async () => {
  await using target = openPaths();
  await shortRun(target, { name: "paths", inputs: 20_000 });
  expect(target.outcomes.of("found")).toBeGreaterThan(0);
});
