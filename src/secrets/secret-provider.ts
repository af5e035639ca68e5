/** One place where secrets are. */
export interface SecretProvider extends AsyncDisposable {
  /** What puts a secret there, as an instruction that can be joined to others by "or". */
  mend(reference: string): string;
  /** The value that is at hand; undefined: none, or an empty one. */
  read(reference: string): string | undefined;
  /** Reads what others may have changed. @throws GatewayError where it cannot be used. */
  start(): Promise<void>;
  /** Looks whether what was read is that of now. Undefined: nothing is to be waited for. */
  look(): Promise<void> | undefined;
}

/** A value that counts as set; only white space counts as none. */
export function setValue(value: string | undefined): string | undefined {
  return value === undefined || value.trim() === "" ? undefined : value;
}

/** A text file's last line end is of the file, not of the secret. */
export function withoutLineEnd(text: string): string {
  return text.replace(/\r?\n$/, "");
}
