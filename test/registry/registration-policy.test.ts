import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Principal } from "../../src/core/principal.ts";
import type { Declaration } from "../../src/registry/declaration.ts";
import { refuseRegistrar, restrictRegistrations } from "../../src/registry/registration-policy.ts";
import {
  createDemoAdapter,
  createDemoParse,
  declaration,
  OPEN_END,
  registration,
  startRegistry,
  temporaryFolder,
} from "./support.ts";

const ANN: Principal = { id: "key:ann", roles: ["publisher"] };
const BOB: Principal = { id: "key:bob", roles: ["publisher"] };
const OPS: Principal = { id: "key:ops", roles: ["operator"] };

function declared(more: Partial<Declaration>): Declaration {
  const outcome = createDemoParse(createDemoAdapter())(declaration("tool"), { format: "yaml", source: "api" });
  if (!outcome.ok) return expect.unreachable();
  return { ...outcome.declaration, ...more };
}

test("what one caller registered, another without the operator's role neither replaces nor removes", async () => {
  const { registry } = await startRegistry({ folder: await temporaryFolder() });
  const register = (who: Principal, description: string): Promise<unknown> =>
    registry.register(registration(declaration("tool", description)), who, OPEN_END);
  const remove = (who: Principal): Promise<unknown> =>
    registry.unregister({ name: "tool", etag: undefined, allowMissing: false }, who, OPEN_END);
  await register(ANN, "one");
  await register(ANN, "two");
  await expect(register(BOB, "three")).rejects.toMatchObject({ reason: "PERMISSION_DENIED" });
  await expect(remove(BOB)).rejects.toMatchObject({ reason: "PERMISSION_DENIED" });
  expect(registry.get("tool", BOB).definition.description).toBe("two");
  await register(OPS, "four");
  await remove(OPS);
});

test("a host is known once a file declares a tool of it, and a registration makes none known", async () => {
  const folder = await temporaryFolder();
  const registrars = { code: ["operator"], hosts: ["operator"] };
  const { registry } = await startRegistry({ folder, registrars });
  const register = (who: Principal, name: string): Promise<unknown> =>
    registry.register(registration(declaration(name)), who, OPEN_END);
  await register(OPS, "first");
  await expect(register(ANN, "second")).rejects.toMatchObject({ reason: "PERMISSION_DENIED" });
  await writeFile(join(folder, "tool.yaml"), declaration("declared"));
  await expect
    .poll(
      () =>
        register(ANN, "second").then(
          () => "taken",
          () => "refused",
        ),
      { timeout: 10_000 },
    )
    .toBe("taken");
});

test("what runs programs needs the role for code, whatever it reaches", () => {
  const registrars = { code: ["coder"], hosts: ["router"] };
  const check = (roles: readonly string[], more: Partial<Declaration>, known: boolean) => (): void =>
    refuseRegistrar(declared(more), { id: "a", roles }, registrars, () => known);
  const program = { runsProgram: "a program" };
  expect(check(["router", "operator"], program, true)).toThrow(
    expect.objectContaining({ reason: "PERMISSION_DENIED" }),
  );
  expect(check(["coder"], program, false)).not.toThrow();
  expect(check(["coder"], {}, false)).toThrow(/only the role `router` may register what reaches a host/);
  expect(check([], {}, true)).not.toThrow();
});

test("a registration names the secrets it is let, and a file any [K-D01]", () => {
  const parse = restrictRegistrations({ scripts: true, secrets: ["ORDER_*", "ONE"] }, (_text, { source }) => ({
    ok: true,
    declaration: declared({ source, secretRefs: ["ORDER_TOKEN", "ONE", "AWS_SECRET", "ONE_MORE"] }),
  }));
  const outcome = parse("", { format: "yaml", source: "api" });
  expect(outcome.ok ? [] : outcome.problems.map(({ message }) => message)).toEqual([
    expect.stringMatching(/may not use the secret `AWS_SECRET`, `ONE_MORE`: .* `registration\.secrets`/),
  ]);
  expect(parse("", { format: "yaml", source: "file:a.yaml" }).ok).toBe(true);
});
