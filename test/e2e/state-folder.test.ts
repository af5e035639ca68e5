import { expect, test } from "vitest";
import { openGateway, temporaryFolder } from "./effects-gateway.ts";

test("a second gateway on one state folder is refused, and can start when the first has stopped", async () => {
  await using folder = await temporaryFolder();
  const first = await openGateway({ folder: folder.path });
  await expect(openGateway({ folder: folder.path })).rejects.toMatchObject({
    reason: "STORE_FAILED",
    message: expect.stringContaining(`${folder.path}/state is in use by another gateway (process ${process.pid})`),
  });
  expect((await first.client.service.list({})).tools).toEqual([]);
  await first[Symbol.asyncDispose]();
  await using second = await openGateway({ folder: folder.path });
  expect((await second.client.service.list({})).tools).toEqual([]);
});
