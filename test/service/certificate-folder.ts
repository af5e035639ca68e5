import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import type { CertificateFiles } from "../../src/service/certificate.ts";
import { createAuthority, type Issued, issue } from "./certificates.ts";

/** Signs what tests take for a good certificate. */
export const AUTHORITY = createAuthority();

/** A folder with a certificate and its key. */
export interface CertificateFolder extends AsyncDisposable {
  readonly folder: string;
  readonly files: CertificateFiles;
  /** Writes other files, each by renaming, the certificate first. */
  replace(issued: Issued): Promise<void>;
}

/** A folder with a certificate of {@link AUTHORITY} for localhost, unless another is given. */
export async function certificateFolder(issued: Issued = issue({ issuer: AUTHORITY })): Promise<CertificateFolder> {
  const folder = await mkdtemp(join(tmpdir(), "toolgate-tls-"));
  const files = { certFile: join(folder, "tls.crt"), keyFile: join(folder, "tls.key"), minVersion: "TLSv1.2" } as const;
  const put = async (path: string, text: string): Promise<void> => {
    await writeFile(`${path}.new`, text, { mode: 0o600 });
    await rename(`${path}.new`, path);
  };
  const replace = async ({ cert, key }: Issued): Promise<void> => {
    await put(files.certFile, cert);
    await put(files.keyFile, key);
  };
  await replace(issued);
  return { folder, files, replace, [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) };
}

/** Has every client of this process trust {@link AUTHORITY} until it is disposed. */
export function trustAuthority(): Disposable {
  const before = getCACertificates("default");
  setDefaultCACertificates([AUTHORITY.cert]);
  return { [Symbol.dispose]: () => setDefaultCACertificates(before) };
}
