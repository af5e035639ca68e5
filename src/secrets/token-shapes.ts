/** Characters that a part of a token is made of, by code unit below 128. */
type Characters = readonly boolean[];

/** A part of a token behind its beginning. */
export type TokenPart =
  /** So many characters of these, as many as there are. */
  | { readonly run: Characters; readonly min: number; readonly max: number }
  /** This text. */
  | { readonly text: string }
  /** Anything up to this text and with it, at most so many characters. */
  | { readonly until: string; readonly max: number };

/** What credentials of some kind look like. */
export interface TokenShape {
  /** What they are, for people. */
  readonly name: string;
  /** What one begins with. */
  readonly begins: readonly string[];
  /** Whether the beginning counts in any case, and stays to be seen. */
  readonly scheme?: true;
  /** Whether it may follow a letter, digit or `_`, which else makes it the end of another word. */
  readonly inWords?: true;
  /** All that has to follow. The last run goes on as long as it can. */
  readonly parts: readonly TokenPart[];
}

function characters(ranges: string): Characters {
  const pattern = new RegExp(`[${ranges}]`);
  return Array.from({ length: 128 }, (_, code) => pattern.test(String.fromCharCode(code)));
}

const ALNUM = characters("A-Za-z0-9");
const UPPER = characters("A-Z0-9");
const WORD = characters("A-Za-z0-9_");
const NAME = characters("A-Za-z0-9_-");
const DOTTED = characters("A-Za-z0-9_.-");
const CREDENTIAL = characters("A-Za-z0-9._~+/=-");

const ENDLESS = Number.POSITIVE_INFINITY;

/** Longest header of a signed token. */
const MAX_HEADER = 1_024;

/** Longest private key, in characters of its PEM text. */
const MAX_KEY = 16_384;

function run(of: Characters, min: number, max = ENDLESS): TokenPart {
  return { run: of, min, max };
}

/**
 * Shapes of credentials that are masked wherever they show up, whether the gateway knows the value or not. Each begins
 * with something that ordinary text does not have, so that ids, hashes and words stay as they are.
 */
export const TOKEN_SHAPES: readonly TokenShape[] = [
  { name: "AWS access key id", begins: ["AKIA", "ASIA"], parts: [run(UPPER, 16)] },
  {
    name: "GitHub token",
    begins: ["ghp_", "gho_", "ghu_", "ghs_", "ghr_"],
    parts: [run(ALNUM, 30)],
  },
  { name: "GitHub fine-grained token", begins: ["github_pat_"], parts: [run(WORD, 22)] },
  { name: "GitLab token", begins: ["glpat-", "gldt-", "glrt-"], parts: [run(NAME, 20)] },
  {
    name: "Slack token",
    begins: ["xoxb-", "xoxp-", "xoxa-", "xoxo-", "xoxr-", "xoxs-", "xoxe-", "xoxe.xox", "xapp-"],
    parts: [run(DOTTED, 10)],
  },
  {
    name: "Slack webhook",
    begins: ["hooks.slack.com/services/"],
    parts: [run(CREDENTIAL, 20)],
  },
  { name: "Google API key", begins: ["AIza"], parts: [run(NAME, 35)] },
  { name: "Google access token", begins: ["ya29."], parts: [run(DOTTED, 20)] },
  { name: "Google client secret", begins: ["GOCSPX-"], parts: [run(NAME, 20)] },
  {
    name: "Stripe key",
    begins: ["sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"],
    parts: [run(ALNUM, 16)],
  },
  { name: "API key of a model provider", begins: ["sk-"], parts: [run(ALNUM, 20)] },
  {
    name: "prefixed API key of a model provider",
    begins: ["sk-proj-", "sk-ant-", "sk-svcacct-", "sk-live-", "sk-test-", "sk-or-v1-"],
    parts: [run(NAME, 16)],
  },
  { name: "npm token", begins: ["npm_"], parts: [run(ALNUM, 30)] },
  { name: "PyPI token", begins: ["pypi-AgEI"], parts: [run(NAME, 40)] },
  { name: "Hugging Face token", begins: ["hf_"], parts: [run(ALNUM, 30)] },
  { name: "SendGrid key", begins: ["SG."], parts: [run(NAME, 20, 64), { text: "." }, run(NAME, 20)] },
  { name: "DigitalOcean token", begins: ["dop_v1_", "doo_v1_", "dor_v1_"], parts: [run(ALNUM, 40)] },
  { name: "Shopify token", begins: ["shpat_", "shpca_", "shppa_", "shpss_"], parts: [run(ALNUM, 30)] },
  {
    name: "JSON Web Token",
    begins: ["eyJ"],
    parts: [run(NAME, 8, MAX_HEADER), { text: "." }, run(DOTTED, 12)],
  },
  {
    name: "credential of an HTTP request",
    begins: ["Bearer "],
    scheme: true,
    parts: [run(CREDENTIAL, 20)],
  },
  {
    name: "Basic credential of an HTTP request",
    begins: ["Authorization: Basic ", 'Authorization":"Basic ', 'Authorization": "Basic ', 'Authorization":["Basic '],
    scheme: true,
    parts: [run(CREDENTIAL, 6)],
  },
  {
    name: "private key",
    begins: ["", "RSA ", "EC ", "DSA ", "OPENSSH ", "ENCRYPTED "].map((kind) => `-----BEGIN ${kind}PRIVATE KEY-----`),
    inWords: true,
    parts: [{ until: "PRIVATE KEY-----", max: MAX_KEY }],
  },
  {
    name: "PGP private key",
    begins: ["-----BEGIN PGP PRIVATE KEY BLOCK-----"],
    inWords: true,
    parts: [{ until: "PRIVATE KEY BLOCK-----", max: MAX_KEY }],
  },
];
