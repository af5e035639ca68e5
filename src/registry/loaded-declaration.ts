import { parseDocument } from "../config/parse-document.ts";
import type { Adapter } from "../core/adapter.ts";
import type { JsonObject } from "../core/json.ts";
import type { Declaration } from "./declaration.ts";
import { type ParseDeclarationOptions, readCommon } from "./declaration-parts.ts";
import { contractDigestOf, declarationDigestOf } from "./digests.ts";
import { explainDeclaration } from "./explain-declaration.ts";
import { explainServerKeys } from "./explain-server.ts";

/** What a declaration has from its text at once. */
export type LoadedParts = Omit<Declaration, "source" | "contractDigest" | "digest" | "explained">;

/** Where it was read. */
export interface LoadedFrom {
  readonly text: string;
  /** The adapter's keys as declared, and what is said of a server's tools. */
  readonly own: JsonObject;
  /** Its policies, for the digest. */
  readonly facts: JsonObject;
  readonly options: ParseDeclarationOptions;
}

/**
 * A declaration as it was read. Thousands are loaded at a start and few of them listed or explained: what that takes is
 * worked out at the first question, from what is kept anyway, since the places of all keys take far more room than the
 * text.
 */
export class LoadedDeclaration implements Declaration {
  readonly namePlace: Declaration["namePlace"];
  readonly tool: Declaration["tool"];
  readonly adapter: Adapter;
  readonly config: unknown;
  readonly rules: Declaration["rules"];
  readonly policy: Declaration["policy"];
  readonly stepConfigs: Declaration["stepConfigs"];
  readonly notes: Declaration["notes"];
  readonly inheritedEnv?: readonly string[];
  readonly alsoReaches?: readonly string[];
  readonly toolsets?: readonly string[];
  readonly exposed?: boolean;
  readonly runsProgram?: string;
  readonly server: Declaration["server"];
  readonly secretRefs?: readonly string[];
  readonly #from: LoadedFrom;
  #contractDigest: string | undefined;
  #digest: string | undefined;

  constructor(parts: LoadedParts, from: LoadedFrom) {
    this.namePlace = parts.namePlace;
    this.tool = parts.tool;
    this.adapter = parts.adapter;
    this.config = parts.config;
    this.rules = parts.rules;
    this.policy = parts.policy;
    this.stepConfigs = parts.stepConfigs;
    this.notes = parts.notes;
    if (parts.inheritedEnv !== undefined) this.inheritedEnv = parts.inheritedEnv;
    if (parts.alsoReaches !== undefined) this.alsoReaches = parts.alsoReaches;
    if (parts.toolsets !== undefined) this.toolsets = parts.toolsets;
    if (parts.exposed !== undefined) this.exposed = parts.exposed;
    if (parts.runsProgram !== undefined) this.runsProgram = parts.runsProgram;
    this.server = parts.server;
    if (parts.secretRefs !== undefined) this.secretRefs = parts.secretRefs;
    this.#from = from;
  }

  get source(): string {
    return this.#from.options.source;
  }

  get contractDigest(): string {
    this.#contractDigest ??= contractDigestOf(this.tool);
    return this.#contractDigest;
  }

  get digest(): string {
    const { own, facts, options } = this.#from;
    this.#digest ??= declarationDigestOf(this, { own, facts, defaults: options.defaults });
    return this.#digest;
  }

  get explained(): Declaration["explained"] {
    const { text, options } = this.#from;
    const { format, source, defaults, origins } = options;
    const read = parseDocument(text, format);
    if (!read.ok) return [];
    const { document } = read;
    const { keys, tool, timeouts, policies, access, result } = readCommon(document, this.adapter.kind, options);
    const adapter = this.adapter.explain(this.config);
    const place = { document, source, defaults, origins };
    const explained = explainDeclaration(
      { tool, timeouts, policies, access, stepConfigs: this.stepConfigs, result: result.explain(), adapter },
      place,
    );
    return this.server === undefined ? explained : [...explained, ...explainServerKeys(keys, place)];
  }
}
