import { generateKeyPairSync } from "node:crypto";
import { mkdir, rm, symlink, writeFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { GatewayError } from "../../src/core/errors.ts";
import type { CertificateFiles } from "../../src/service/certificate.ts";
import { type CertificateFolder, certificateFolder } from "./certificate-folder.ts";
import { createAuthority, issue } from "./certificates.ts";
import { createFakeRegistry } from "./fake-registry.ts";
import { createDoor, serve } from "./serve.ts";

/** What keeps a gateway with these files from starting. */
async function problemOf(tls: CertificateFiles): Promise<string> {
  await using door = createDoor(createFakeRegistry(), { tls });
  try {
    await door.listen();
    return "none";
  } catch (error) {
    return error instanceof GatewayError ? error.message : "another error";
  }
}

function encryptedKey(): string {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const secret = { cipher: "aes-256-cbc", passphrase: "test", type: "pkcs8", format: "pem" } as const;
  return privateKey.export(secret).toString();
}

/** What is done to good files, and what is said of it, `CERT` and `KEY` standing for the paths. */
const FAULTS: Readonly<Record<string, readonly [spoil: (place: CertificateFolder) => Promise<void>, problem: string]>> =
  {
    "no certificate": [
      ({ files }) => rm(files.certFile),
      "`tls.cert` CERT is not there: write the file, or correct the path in gateway.yaml",
    ],
    "no key": [
      ({ files }) => rm(files.keyFile),
      "`tls.key` KEY is not there: write the file, or correct the path in gateway.yaml",
    ],
    "a file that cannot be read": [
      async ({ files }) => {
        await rm(files.certFile);
        await symlink(files.certFile, files.certFile);
      },
      "`tls.cert` CERT cannot be read (ELOOP): give the user that the gateway runs as the right to read it",
    ],
    "a folder": [
      async ({ files }) => {
        await rm(files.keyFile);
        await mkdir(files.keyFile);
      },
      "`tls.key` KEY is no PEM file: correct the path in gateway.yaml",
    ],
    "a huge file": [
      ({ files }) => writeFile(files.certFile, Buffer.alloc(2_000_000, "x")),
      "`tls.cert` CERT is no PEM file: correct the path in gateway.yaml",
    ],
    "the key in place of the certificate": [
      ({ files }) => writeFile(files.certFile, issue().key),
      "`tls.cert` CERT holds no certificate in PEM form, which begins with -----BEGIN CERTIFICATE-----",
    ],
    "the certificate in place of the key": [
      ({ files }) => writeFile(files.keyFile, issue().cert),
      "`tls.key` KEY holds no private key in PEM form, such as -----BEGIN PRIVATE KEY-----",
    ],
    "an encrypted key": [
      ({ files }) => writeFile(files.keyFile, encryptedKey()),
      "`tls.key` KEY is encrypted: write it without a passphrase (openssl pkey -in KEY -out KEY)",
    ],
    "another's key": [
      ({ files }) => writeFile(files.keyFile, issue().key),
      "`tls.key` KEY is not the key of the first certificate in `tls.cert` CERT: write the two that were issued together, the gateway's own certificate before the intermediate ones",
    ],
    "an intermediate certificate before the gateway's own": [
      async ({ files }) => {
        const authority = createAuthority();
        const { cert, key } = issue({ issuer: authority });
        await writeFile(files.certFile, authority.cert + cert);
        await writeFile(files.keyFile, key);
      },
      "`tls.key` KEY is not the key of the first certificate in `tls.cert` CERT: write the two that were issued together, the gateway's own certificate before the intermediate ones",
    ],
  };

test.each(Object.entries(FAULTS))(
  "%s keeps a gateway from starting, with the mend",
  async (_what, [spoil, problem]) => {
    await using place = await certificateFolder();
    const { certFile, keyFile } = place.files;
    await spoil(place);
    expect((await problemOf(place.files)).replaceAll(certFile, "CERT").replaceAll(keyFile, "KEY")).toBe(problem);
  },
);

test("a key that is too weak is refused", async () => {
  await using place = await certificateFolder(issue({ weak: true }));
  expect(await problemOf(place.files)).toMatch(
    /^`tls\.cert` \S+ cannot be used \(ERR_SSL_EE_KEY_TOO_SMALL\): issue it again, with a key of at least 2048 bits RSA/,
  );
});

test("there is no TLS on a Unix socket", async () => {
  await using place = await certificateFolder();
  const path = `${place.folder}/gate.sock`;
  await expect(serve({ tls: place.files, listen: { path } })).rejects.toThrow(`no TLS on unix:${path}`);
});
