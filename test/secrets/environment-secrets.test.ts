import { expect, test } from "vitest";
import { GatewayError } from "../../src/core/errors.ts";
import { createEnvironmentSecrets } from "../../src/secrets/environment-secrets.ts";
import { SecretMemory } from "../../src/secrets/secret-memory.ts";

test("a reference is resolved at each request, so a changed value is in force at once [S2-48]", () => {
  const environment: Record<string, string | undefined> = { TOKEN: "first" };
  const memory = new SecretMemory();
  const secrets = createEnvironmentSecrets(environment, memory);
  expect(secrets.resolve("TOKEN")).toBe("first");
  environment["TOKEN"] = "second";
  expect(secrets.resolve("TOKEN")).toBe("second");
  expect(memory.values()).toEqual(["first", "second"]);
  delete environment["TOKEN"];
  expect(secrets.has("TOKEN")).toBe(false);
});

test.for([undefined, "", " \t"])("%j counts as not set, and the error names the reference alone", (value) => {
  const secrets = createEnvironmentSecrets({ TOKEN: value, OTHER: "other-value" }, new SecretMemory());
  expect(secrets.has("TOKEN")).toBe(false);
  const resolve = (): string => secrets.resolve("TOKEN");
  expect(resolve).toThrow(GatewayError);
  expect(resolve).toThrow("secret TOKEN is not set; set this environment variable");
});

test.for(["constructor", "__proto__", "toString", "hasOwnProperty"])("`%s` is no secret", (name) => {
  expect(createEnvironmentSecrets({}, new SecretMemory()).has(name)).toBe(false);
});

test("the memory keeps the values used last, within its bounds", () => {
  const memory = new SecretMemory();
  for (let i = 0; i < 300; i++) memory.remember(`value-${i}`);
  expect(memory.values()).toHaveLength(256);
  expect(memory.values().at(-1)).toBe("value-299");
  memory.remember("value-100");
  for (let i = 0; i < 200; i++) memory.remember(`next-${i}`);
  expect(memory.values()).toContain("value-100");
  expect(memory.values()).not.toContain("value-101");
  memory.remember("x".repeat(40_000));
  expect(memory.values()).toEqual(["x".repeat(40_000)]);
});

test("the memory's version changes with its values alone", () => {
  const memory = new SecretMemory();
  memory.remember("a-secret");
  const { version } = memory;
  memory.remember("a-secret");
  memory.remember("");
  expect(memory.version).toBe(version);
  memory.remember("another");
  expect(memory.version).not.toBe(version);
});
