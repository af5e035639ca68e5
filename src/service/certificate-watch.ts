import { stat } from "node:fs/promises";
import type { Clock } from "../core/clock.ts";
import { GatewayError } from "../core/errors.ts";
import type { Logger } from "../core/logger.ts";
import { type Certificate, type CertificateFiles, readCertificate } from "./certificate.ts";

/**
 * How often the files are looked at; a look is two stat calls. File events would only make it sooner, and miss what
 * stands behind symbolic links.
 */
const LOOK_MS = 1_000;

/** How long files that do not fit together may be on their way, since two are never written at the same instant. */
const PATIENCE_MS = 5_000;

const DAY_MS = 86_400_000;

/** How long before its end a certificate is warned of. */
const EXPIRY_WARNING_MS = 14 * DAY_MS;

/** What a watched certificate works with. */
export interface CertificateWatchDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Gets the first certificate, and each that takes its place. */
  readonly use: (certificate: Certificate) => void;
}

/**
 * Keeps up with the files of a certificate, however they are written: in place, by renaming, or by a symbolic link that
 * points elsewhere. Files that cannot be used leave the certificate in use in force, with one log line.
 */
export class CertificateWatch implements AsyncDisposable {
  readonly #files: CertificateFiles;
  readonly #deps: CertificateWatchDeps;
  #inUse: Certificate | undefined;
  /** State of the files that was dealt with: taken, or complained about. */
  #settled = "";
  /** State of the files at the last look, and since when. */
  #seen = "";
  #seenSinceMs = 0;
  #look: Disposable | undefined;
  #looking: Promise<void> | undefined;
  #expiry: Disposable | undefined;
  #disposed = false;

  constructor(files: CertificateFiles, deps: CertificateWatchDeps) {
    this.#files = files;
    this.#deps = deps;
  }

  /** Reads the files and begins to watch them. @throws GatewayError where they cannot be used, naming the mend. */
  async start(): Promise<void> {
    // The state before the reading, so that what changes meanwhile is noticed.
    this.#settled = await stateOf(this.#files);
    this.#take(await readCertificate(this.#files));
    this.#schedule();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#disposed = true;
    this.#look?.[Symbol.dispose]();
    this.#expiry?.[Symbol.dispose]();
    await this.#looking;
  }

  #schedule(): void {
    if (this.#disposed) return;
    this.#look = this.#deps.clock.after(LOOK_MS, () => {
      this.#looking = this.#keepUp().finally(() => this.#schedule());
    });
  }

  /** Never rejects. */
  async #keepUp(): Promise<void> {
    const { clock, logger } = this.#deps;
    const state = await stateOf(this.#files);
    if (state !== this.#seen) {
      this.#seen = state;
      this.#seenSinceMs = clock.monotonicMs();
      return;
    }
    // What has changed since the last look may be half written.
    if (state === this.#settled) return;
    try {
      const certificate = await readCertificate(this.#files);
      if (this.#disposed || (await stateOf(this.#files)) !== state) return;
      this.#settled = state;
      this.#take(certificate);
    } catch (error) {
      if (clock.monotonicMs() - this.#seenSinceMs < PATIENCE_MS) return;
      this.#settled = state;
      const problem = GatewayError.from(error).message;
      logger.error("tls-certificate-rejected", { problem, lastGoodServing: true });
    }
  }

  #take(certificate: Certificate): void {
    const { logger, use } = this.#deps;
    const { certFile: cert, keyFile: key } = this.#files;
    const { names, validToMs, keyIsOpen } = certificate;
    const before = this.#inUse;
    if (before !== undefined && isSame(before, certificate)) return;
    use(certificate);
    this.#inUse = certificate;
    logger.info("tls-certificate-loaded", { cert, names, validTo: new Date(validToMs).toISOString() });
    if (keyIsOpen) {
      logger.warn("tls-key-readable", {
        key,
        problem: "every user of the machine may read it",
        mend: `chmod o-r ${key}`,
      });
    }
    this.#warnOfDates(certificate);
  }

  #warnOfDates({ names, validFromMs, validToMs }: Certificate): void {
    const { clock, logger } = this.#deps;
    const { certFile: cert } = this.#files;
    if (validFromMs > clock.now()) {
      logger.warn("tls-certificate-not-yet-valid", { cert, names, validFrom: new Date(validFromMs).toISOString() });
    }
    this.#expiry?.[Symbol.dispose]();
    this.#expiry = clock.after(Math.max(0, validToMs - EXPIRY_WARNING_MS - clock.now()), () => {
      const validTo = new Date(validToMs).toISOString();
      const daysLeft = Math.floor((validToMs - clock.now()) / DAY_MS);
      logger.warn("tls-certificate-expiring", {
        cert,
        names,
        validTo,
        daysLeft,
        mend: "renew it and write both files",
      });
    });
  }
}

function isSame(before: Certificate, now: Certificate): boolean {
  const authorities = [before.clientCa, now.clientCa].map((bytes) => bytes ?? Buffer.alloc(0));
  const pairs = [[before.cert, now.cert], [before.key, now.key], authorities];
  return pairs.every(([a, b]) => a !== undefined && b !== undefined && a.equals(b));
}

/** Equal: nothing was written. Change time counts too, since a mode that is mended lets a file be read. */
async function stateOf({ certFile, keyFile, client }: CertificateFiles): Promise<string> {
  const authorities = client === undefined ? [] : [client.caFile];
  const states = await Promise.all([certFile, keyFile, ...authorities].map(fileState));
  return states.join(" ");
}

async function fileState(file: string): Promise<string> {
  try {
    const { dev, ino, size, mtimeMs, ctimeMs } = await stat(file);
    return [dev, ino, size, mtimeMs, ctimeMs].join(":");
  } catch (error) {
    return error instanceof Error && "code" in error ? String(error.code) : "unknown";
  }
}
