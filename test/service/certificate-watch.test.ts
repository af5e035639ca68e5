import { rmSync, writeFileSync } from "node:fs";
import { mkdir, rename, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { type Clock, systemClock } from "../../src/core/clock.ts";
import type { LogFields, Logger } from "../../src/core/logger.ts";
import { silentLogger } from "../../src/core/logger.ts";
import type { Certificate, CertificateFiles } from "../../src/service/certificate.ts";
import { CertificateWatch } from "../../src/service/certificate-watch.ts";
import { createFakeClock, type FakeClock } from "../core/fake-clock.ts";
import { certificateFolder } from "./certificate-folder.ts";
import { type Issued, issue } from "./certificates.ts";
import { fastClock } from "./fast-clock.ts";
import { PATIENT } from "./serve.ts";

interface Line {
  readonly level: "info" | "warn" | "error";
  readonly message: string;
  readonly fields: LogFields;
}

interface Watched extends AsyncDisposable {
  readonly used: Certificate[];
  readonly lines: Line[];
  /** Lines of this message. */
  of(message: string): Line[];
  /** Settles when this certificate is the one in use. */
  uses(issued: Issued): Promise<void>;
}

async function watch(files: CertificateFiles, clock: Clock = fastClock(20)): Promise<Watched> {
  const used: Certificate[] = [];
  const lines: Line[] = [];
  const at =
    (level: Line["level"]) =>
    (message: string, fields: LogFields = {}): void =>
      void lines.push({ level, message, fields });
  const logger: Logger = { ...silentLogger, info: at("info"), warn: at("warn"), error: at("error") };
  const watching = new CertificateWatch(files, { clock, logger, use: (certificate) => void used.push(certificate) });
  await watching.start();
  return {
    used,
    lines,
    of: (message) => lines.filter((line) => line.message === message),
    uses: (issued) => expect.poll(() => used.at(-1)?.cert.toString(), PATIENT).toBe(issued.cert),
    [Symbol.asyncDispose]: () => watching[Symbol.asyncDispose](),
  };
}

/** Has the watch look once, and resolves when it has looked. */
async function look(clock: FakeClock): Promise<void> {
  await clock.advance(1_000);
  // A look ends with the timer of the next; the other one, of the certificate's end, is far off.
  await expect.poll(() => clock.nextInMs, PATIENT).toBe(1_000);
}

test("files that are renamed into place, the key a while after the certificate, are taken without a complaint", async () => {
  await using place = await certificateFolder();
  const clock = createFakeClock(Date.now());
  await using watched = await watch(place.files, clock);
  const next = issue();
  await writeFile(`${place.files.certFile}.new`, next.cert);
  await rename(`${place.files.certFile}.new`, place.files.certFile);
  for (let looks = 0; looks < 3; looks++) await look(clock);
  expect(watched.used).toHaveLength(1);
  await writeFile(`${place.files.keyFile}.new`, next.key, { mode: 0o600 });
  await rename(`${place.files.keyFile}.new`, place.files.keyFile);
  for (let looks = 0; looks < 2; looks++) await look(clock);
  expect(watched.used.at(-1)?.cert.toString()).toBe(next.cert);
  expect(watched.used.at(-1)?.key.toString()).toBe(next.key);
  expect(watched.lines.map(({ level, message }) => `${level} ${message}`)).toEqual([
    "info tls-certificate-loaded",
    "info tls-certificate-loaded",
  ]);
});

test("files that are written in place are taken", async () => {
  await using place = await certificateFolder();
  await using watched = await watch(place.files);
  for (let i = 0; i < 3; i++) {
    const next = issue();
    // In one go, so that a busy machine cannot take the gateway's patience between the two.
    writeFileSync(place.files.keyFile, next.key);
    writeFileSync(place.files.certFile, next.cert);
    await watched.uses(next);
  }
  expect(watched.of("tls-certificate-rejected")).toEqual([]);
});

test("files of a mounted secret, behind a link to a folder that is exchanged, are taken", async () => {
  await using place = await certificateFolder();
  const { folder } = place;
  const project = async (version: string, { cert, key }: Issued): Promise<void> => {
    await mkdir(join(folder, version));
    await writeFile(join(folder, version, "tls.crt"), cert);
    await writeFile(join(folder, version, "tls.key"), key, { mode: 0o600 });
    await symlink(version, join(folder, "..data_tmp"));
    await rename(join(folder, "..data_tmp"), join(folder, "..data"));
  };
  await project("..1", issue());
  for (const name of ["tls.crt", "tls.key"]) {
    await rm(join(folder, name));
    await symlink(join("..data", name), join(folder, name));
  }
  await using watched = await watch(place.files);
  const next = issue();
  await project("..2", next);
  await rm(join(folder, "..1"), { recursive: true });
  await watched.uses(next);
  expect(watched.of("tls-certificate-rejected")).toEqual([]);
});

test("files that do not belong together leave the old ones in force, with one error that names file and mend", async () => {
  await using place = await certificateFolder();
  const clock = createFakeClock(Date.now());
  await using watched = await watch(place.files, clock);
  await writeFile(place.files.certFile, issue().cert);
  for (let looks = 0; looks < 5; looks++) await look(clock);
  expect(watched.of("tls-certificate-rejected")).toEqual([]);
  // As many looks as it takes to complain, and as many again.
  for (let looks = 0; looks < 12; looks++) await look(clock);
  expect(watched.of("tls-certificate-rejected")).toEqual([
    {
      level: "error",
      message: "tls-certificate-rejected",
      fields: {
        problem: `\`tls.key\` ${place.files.keyFile} is not the key of the first certificate in \`tls.cert\` ${place.files.certFile}: write the two that were issued together, the gateway's own certificate before the intermediate ones`,
        lastGoodServing: true,
      },
    },
  ]);
  expect(watched.used).toHaveLength(1);
  const next = issue();
  await place.replace(next);
  for (let looks = 0; looks < 2; looks++) await look(clock);
  expect(watched.used.at(-1)?.cert.toString()).toBe(next.cert);
});

test("files that are gone or hold nonsense are complained about once each, and mended", async () => {
  await using place = await certificateFolder();
  await using watched = await watch(place.files);
  await writeFile(place.files.certFile, "nonsense");
  await expect.poll(() => watched.of("tls-certificate-rejected"), PATIENT).toHaveLength(1);
  // In one go, since a state in between that lasts is complained about too.
  rmSync(place.files.keyFile);
  rmSync(place.files.certFile);
  await expect.poll(() => watched.of("tls-certificate-rejected"), PATIENT).toHaveLength(2);
  expect(watched.of("tls-certificate-rejected").map(({ fields }) => fields["problem"])).toEqual([
    expect.stringMatching(/tls\.crt holds no certificate in PEM form/),
    expect.stringMatching(/tls\.crt is not there: write the file, or correct the path in gateway\.yaml$/),
  ]);
  const next = issue();
  await place.replace(next);
  await watched.uses(next);
});

test("files that are written again with the same contents are no news", async () => {
  await using place = await certificateFolder();
  const clock = createFakeClock(Date.now());
  await using watched = await watch(place.files, clock);
  await utimes(place.files.certFile, 1, 1);
  const next = issue();
  await place.replace(next);
  for (let looks = 0; looks < 2; looks++) await look(clock);
  expect(watched.used.at(-1)?.cert.toString()).toBe(next.cert);
  await place.replace(next);
  for (let looks = 0; looks < 5; looks++) await look(clock);
  expect(watched.of("tls-certificate-loaded")).toHaveLength(2);
});

test("a certificate that ends within 14 days is warned of, one that ends later when its time comes", async () => {
  await using soon = await certificateFolder(issue({ days: 13 }));
  await using warned = await watch(soon.files);
  await expect.poll(() => warned.of("tls-certificate-expiring"), PATIENT).toHaveLength(1);
  expect(warned.of("tls-certificate-expiring")[0]).toMatchObject({
    level: "warn",
    fields: { names: expect.stringContaining("DNS:localhost"), daysLeft: 12, cert: soon.files.certFile },
  });
  await using later = await certificateFolder(issue({ days: 15 }));
  const armed: number[] = [];
  const clock: Clock = {
    ...systemClock,
    after: (delayMs, task) => {
      armed.push(delayMs);
      return systemClock.after(delayMs, task);
    },
  };
  await using silent = await watch(later.files, clock);
  expect(silent.of("tls-certificate-expiring")).toEqual([]);
  expect(Math.round(Math.max(...armed) / 86_400_000)).toBe(1);
});

test("a certificate that has ended, or has not begun, is served and warned of", async () => {
  await using ended = await certificateFolder(issue({ days: -1 }));
  await using warned = await watch(ended.files);
  await expect
    .poll(() => warned.of("tls-certificate-expiring").map(({ fields }) => fields["daysLeft"]), PATIENT)
    .toEqual([-2]);
  await using place = await certificateFolder();
  await using early = await watch(place.files, fastClock(20, -30 * 86_400_000));
  expect(early.of("tls-certificate-not-yet-valid")).toHaveLength(1);
});

test.skipIf(process.platform === "win32")("a key that everybody may read is warned of", async () => {
  await using place = await certificateFolder();
  await using careful = await watch(place.files);
  expect(careful.of("tls-key-readable")).toEqual([]);
  await rm(place.files.keyFile);
  const next = issue();
  writeFileSync(place.files.keyFile, next.key, { mode: 0o644 });
  writeFileSync(place.files.certFile, next.cert);
  await careful.uses(next);
  expect(careful.of("tls-key-readable")).toMatchObject([
    { level: "warn", fields: { key: place.files.keyFile, mend: `chmod o-r ${place.files.keyFile}` } },
  ]);
});
