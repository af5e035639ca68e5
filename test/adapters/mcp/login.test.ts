import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { GatewayError } from "../../../src/core/errors.ts";
import type { JsonObject } from "../../../src/core/json.ts";
import { type FakeHttp, startFakeHttp } from "./fake-http.ts";
import { call, type OpenServer, openServer, problemsOf, textOf } from "./fixture.ts";
import { type Authority, type AuthorityOptions, startAuthority } from "./login-authority.ts";
import { followed, type LoginDesk, openLoginDesk, redirectedTo } from "./login-desk.ts";

const PRM = "/.well-known/oauth-protected-resource/mcp";

interface Scene extends AsyncDisposable {
  readonly authority: Authority;
  readonly fake: FakeHttp;
  readonly desk: LoginDesk;
  /** Opens the server as a gateway does. */
  open(): Promise<OpenServer>;
}

interface SceneOptions {
  readonly authority?: AuthorityOptions;
  /** Keys of `auth.oauth`. */
  readonly oauth?: JsonObject;
  /** What the server says of itself besides. */
  readonly resource?: (authority: string) => object;
  /** Header that the server wants. */
  readonly wanted?: (authority: Authority) => string;
  readonly challenge?: () => { readonly status: number; readonly header: string };
  readonly environment?: Readonly<Record<string, string>>;
  readonly settings?: JsonObject;
}

/** A server that has people log in, who gives the tokens, and a person. */
async function scene(options: SceneOptions = {}): Promise<Scene> {
  const { oauth = {}, environment = {}, wanted = (each) => each.header(), settings = {} } = options;
  const authority = await startAuthority(options.authority);
  let url = "";
  const fake = await startFakeHttp({
    authorization: () => wanted(authority),
    documents: (path) =>
      path === PRM
        ? { resource: url, authorization_servers: [authority.origin], ...options.resource?.(authority.origin) }
        : undefined,
    ...(options.challenge === undefined ? {} : { challenge: options.challenge }),
  });
  ({ url } = fake);
  const mcp = { url, protocol: "legacy", auth: { oauth } };
  const desk = await openLoginDesk({ mcp, environment, settings });
  return {
    authority,
    fake,
    desk,
    open: () => openServer({ mcp, environment, logins: desk.logins }),
    async [Symbol.asyncDispose]() {
      await Promise.all([authority, fake, desk].map((each) => each[Symbol.asyncDispose]()));
    },
  };
}

/** Why nobody could log in. */
async function refusalOf(each: Scene, ways: Parameters<LoginDesk["logIn"]>[0] = {}): Promise<string> {
  const error: unknown = await each.desk.logIn(ways).then(
    () => undefined,
    (cause: unknown) => cause,
  );
  return error instanceof GatewayError ? error.message : `no error: ${String(error)}`;
}

/** Resolves with why a server is not there. */
async function unavailable(server: OpenServer, words: string): Promise<string> {
  await server.until(() => server.upstream.availability().reason.includes(words));
  const { state, reason, mend } = server.upstream.availability();
  return `${state}: ${reason} (${mend ?? ""})`;
}

test("a person logs in by PKCE for this server alone, and a gateway that runs takes it over [S2-46]", async () => {
  await using all = await scene({ resource: () => ({ scopes_supported: ["read", "write"] }) });
  const { authority, desk, fake } = all;
  await using server = await all.open();
  expect(await unavailable(server, "nobody")).toBe(
    "unavailable: nobody is logged in: run `toolgate login fake` (toolgate login fake)",
  );
  expect(fake.requests).toEqual([]);
  const { error } = await call(server, "quick");
  expect(error).toMatchObject({ reason: "SECRET_MISSING", message: expect.stringContaining("toolgate login fake") });
  const facts = await desk.logIn();
  expect(facts).toMatchObject({
    issuer: authority.origin,
    resource: fake.url,
    scopes: ["read", "write"],
    renewable: true,
  });
  expect(authority.registrations).toEqual([
    expect.objectContaining({
      application_type: "native",
      token_endpoint_auth_method: "none",
      grant_types: ["authorization_code", "refresh_token"],
      redirect_uris: [expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+\/callback$/)],
    }),
  ]);
  expect(authority.authorizations).toEqual([
    expect.objectContaining({
      response_type: "code",
      client_id: "client-1",
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge_method: "S256",
      resource: fake.url,
      scope: "read write",
      state: expect.stringMatching(/^[\w-]{43}$/),
    }),
  ]);
  expect(authority.requests.map(({ form }) => form)).toEqual([
    expect.objectContaining({ grant_type: "authorization_code", resource: fake.url, client_id: "client-1" }),
  ]);
  await server.ready();
  expect(textOf(await call(server, "quick"))).toBe("ok");
});

test("a login is its owner's alone on the disk, and sealed where there is a key", async () => {
  const texts: string[] = [];
  for (const settings of [{}, { state: { encryption_key: "STATE_KEY" } }]) {
    await using all = await scene({ settings, environment: { STATE_KEY: "a5".repeat(32) } });
    await all.desk.logIn();
    const folder = join(all.desk.folder, "state", "logins");
    expect(await readdir(folder)).toEqual(["fake.json"]);
    expect((await stat(join(folder, "fake.json"))).mode & 0o077).toBe(0);
    texts.push(await readFile(join(folder, "fake.json"), "utf8"));
    expect(texts.at(-1)?.includes(all.authority.lastRefresh)).toBe(texts.length === 1);
    expect(texts.at(-1)?.includes("client-1")).toBe(texts.length === 1);
  }
});

test("the token is renewed before its end, once for all, and what is given in its place is kept", async () => {
  await using all = await scene({ authority: { life: () => 0.000_001 } });
  const { authority, desk } = all;
  await desk.logIn();
  const first = authority.lastRefresh;
  await using server = await all.open();
  await server.ready();
  // Each request of a token that has ended needs another one; those that come together share it.
  const before = authority.requests.length;
  await Promise.all(Array.from({ length: 5 }, () => call(server, "quick")));
  expect(authority.requests.length).toBeGreaterThan(before);
  const used = authority.requests.map(({ form }) => form["refresh_token"]).filter((each) => each !== undefined);
  expect(new Set(used).size).toBe(used.length);
  expect(used[0]).toBe(first);
  expect((await desk.logins.read("fake"))?.refreshToken).toBe(authority.lastRefresh);
  expect(server.upstream.availability().state).toBe("ready");
});

test("a token that the server refuses is renewed once; where that is no better, somebody has to log in", async () => {
  let good: ((authority: Authority) => string) | undefined;
  await using all = await scene({ wanted: (authority) => good?.(authority) ?? authority.header() });
  const { authority, desk } = all;
  await desk.logIn();
  await using server = await all.open();
  await server.ready();
  const used = authority.lastAccess;
  good = ({ lastAccess }) => (lastAccess === used ? "Bearer another" : `Bearer ${lastAccess}`);
  expect(textOf(await call(server, "quick"))).toBe("ok");
  expect(authority.requests).toHaveLength(2);
  good = () => "Bearer nobody has it";
  const { error } = await call(server, "quick");
  expect(error?.message).toBe("fake: the server refuses the login: run `toolgate login fake`");
  expect(server.upstream.availability().state).toBe("unavailable");
  expect(authority.requests).toHaveLength(2);
  good = undefined;
  await desk.logIn();
  await server.until(() => server.upstream.availability().state === "ready");
  expect(textOf(await call(server, "quick"))).toBe("ok");
});

test("a login that has ended says so, and no token shows anywhere", async () => {
  await using all = await scene({ authority: { life: () => 0.000_001 } });
  await all.desk.logIn();
  const secret = all.authority.lastRefresh;
  all.authority.end();
  await using server = await all.open();
  const why = await unavailable(server, "ended");
  expect(why).toBe("unavailable: the login has ended: run `toolgate login fake` (toolgate login fake)");
  const { error } = await call(server, "quick");
  expect(JSON.stringify([why, error?.message, error?.modelMessage, error?.metadata])).not.toContain(secret);
});

test("a login without a refresh token lasts as long as its token", async () => {
  await using all = await scene({ authority: { refreshes: false, life: () => 0.000_001 } });
  expect(await all.desk.logIn()).toMatchObject({ renewable: false, accessEndMs: expect.any(Number) });
  await using server = await all.open();
  expect(await unavailable(server, "cannot be renewed")).toContain("toolgate login fake");
});

test("a tool that needs more scopes names the login that asks for them, and the others go on", async () => {
  let narrow = false;
  await using all = await scene({
    wanted: (authority) => (narrow ? "Bearer wider" : authority.header()),
    challenge: () =>
      narrow
        ? { status: 403, header: 'Bearer error="insufficient_scope", scope="orders:write"' }
        : { status: 401, header: 'Bearer scope="orders:read"' },
  });
  const { authority, desk } = all;
  await desk.logIn();
  await using server = await all.open();
  await server.ready();
  narrow = true;
  const { error } = await call(server, "quick");
  expect(error?.message).toBe(
    "fake: the login lacks scopes that the server asks for: orders:write; run `toolgate login fake`",
  );
  expect(await unavailable(server, "lacks")).toMatch(/^degraded: the login lacks scopes .*\(toolgate login fake\)$/);
  narrow = false;
  expect(textOf(await call(server, "quick"))).toBe("ok");
  await desk.logIn();
  expect(authority.authorizations.map(({ scope }) => scope)).toEqual(["orders:read", "orders:read orders:write"]);
  await server.until(() => server.upstream.availability().state === "ready");
  expect((await desk.logins.read("fake"))?.wanted).toEqual([]);
});

test("a token goes to no other address than the one it was given for", async () => {
  await using all = await scene();
  await all.desk.logIn();
  await using other = await startFakeHttp();
  const mcp = { url: other.url, protocol: "legacy", auth: { oauth: {} } };
  await using server = await openServer({ mcp, logins: all.desk.logins });
  expect(await unavailable(server, "another address")).toContain("toolgate login fake");
  expect(other.requests).toEqual([]);
});

test("a client that was registered by hand shows its secret as it is declared", async () => {
  const cases = [
    [{}, "client_secret_post", { client_secret: "s3cr3t:+" }, undefined],
    [{}, "client_secret_basic", {}, "Basic Z2F0ZXdheTpzM2NyM3QlM0ElMkI="],
    [{ client_auth: "post" }, "client_secret_basic", { client_secret: "s3cr3t:+" }, undefined],
  ] as const;
  for (const [keys, method, form, authorization] of cases) {
    await using all = await scene({
      oauth: { client_id: "gateway", secret_ref: "CLIENT_SECRET", ...keys },
      environment: { CLIENT_SECRET: "s3cr3t:+" },
      authority: {
        metadata: () => ({ token_endpoint_auth_methods_supported: [method], registration_endpoint: undefined }),
      },
    });
    await all.desk.logIn();
    expect(all.authority.authorizations[0]?.["client_id"]).toBe("gateway");
    expect(all.authority.requests).toEqual([{ form: expect.objectContaining(form), authorization }]);
    const text = await readFile(join(all.desk.folder, "state", "logins", "fake.json"), "utf8");
    expect(text).not.toContain("s3cr3t");
  }
});

test("a client's metadata document is its name where such is taken, else it registers itself", async () => {
  for (const [taken, name] of [
    [true, "https://gateway.example.com/client.json"],
    [false, "client-1"],
  ] as const) {
    await using all = await scene({
      oauth: { client_metadata_url: "https://gateway.example.com/client.json" },
      authority: { metadata: () => ({ client_id_metadata_document_supported: taken }) },
    });
    await all.desk.logIn();
    expect(all.authority.authorizations[0]?.["client_id"]).toBe(name);
  }
});

test("a client registers itself once with an authorization server, and uses the secret that it gets there", async () => {
  await using all = await scene({
    authority: {
      registered: { client_secret: "given", token_endpoint_auth_method: "client_secret_post" },
      metadata: () => ({ token_endpoint_auth_methods_supported: ["client_secret_post"] }),
    },
  });
  await all.desk.logIn();
  await all.desk.logIn();
  expect(all.authority.registrations).toHaveLength(1);
  expect(all.authority.registrations[0]).toMatchObject({ token_endpoint_auth_method: "client_secret_post" });
  expect(new Set(all.authority.authorizations.map((each) => each["redirect_uri"])).size).toBe(1);
  expect(all.authority.requests.map(({ form }) => form["client_secret"])).toEqual(["given", "given"]);
});

test("`scopes`, `resource` and `redirect_port` are used as they are declared", async () => {
  await using holder = await startAuthority();
  const port = Number(new URL(holder.origin).port);
  await using taken = await scene({ oauth: { redirect_port: port } });
  expect(await refusalOf(taken)).toBe(`fake: no login: port ${port} of 127.0.0.1 cannot be listened on`);
  await using all = await scene({
    oauth: { scopes: ["mine"], resource: "https://orders.example.com" },
    resource: () => ({ scopes_supported: ["all"] }),
    authority: { metadata: () => ({ scopes_supported: ["offline_access"] }) },
  });
  await all.desk.logIn();
  expect(all.authority.authorizations[0]).toMatchObject({ scope: "mine", resource: "https://orders.example.com" });
});

test("a lasting login is asked for where it is offered", async () => {
  await using all = await scene({ authority: { metadata: () => ({ scopes_supported: ["offline_access"] }) } });
  await all.desk.logIn();
  expect(all.authority.authorizations[0]).toMatchObject({ scope: "offline_access", prompt: "consent" });
});

test("an authorization server that is not what it should be gets no browser, no code and no token [X-D01]", async () => {
  const cases: readonly (readonly [words: string, SceneOptions])[] = [
    ["are those of another issuer", { authority: { metadata: () => ({ issuer: "https://evil.example.com" }) } }],
    ["is not https", { resource: () => ({ authorization_servers: ["http://auth.example.test"] }) }],
    ["is not https", { authority: { metadata: () => ({ token_endpoint: "http://auth.example.test/token" }) } }],
    ["lead to `10.0.0.7`", { authority: { metadata: () => ({ token_endpoint: "https://10.0.0.7/token" }) } }],
    ["lead to `10.0.0.7`", { authority: { metadata: () => ({ authorization_endpoint: "https://10.0.0.7/" }) } }],
    ["lead to `10.0.0.7`", { authority: { metadata: () => ({ registration_endpoint: "https://10.0.0.7/" }) } }],
    ["lead to `169.254.169.254`", { resource: () => ({ authorization_servers: ["https://169.254.169.254"] }) }],
    [
      "have no authorization_endpoint",
      { authority: { metadata: () => ({ authorization_endpoint: "javascript:alert(1)" }) } },
    ],
    [
      "does not say that it takes PKCE",
      { authority: { metadata: () => ({ code_challenge_methods_supported: ["plain"] }) } },
    ],
    [
      "does not say that it takes PKCE",
      { authority: { metadata: () => ({ code_challenge_methods_supported: undefined }) } },
    ],
    [
      "takes no clients that register themselves",
      { authority: { metadata: () => ({ registration_endpoint: undefined }) } },
    ],
    [
      "has no metadata of an authorization server",
      { authority: { rawMetadata: () => `{"issuer":"${"x".repeat(1e6)}"}` } },
    ],
    ["has no metadata of an authorization server", { authority: { rawMetadata: () => "[".repeat(60_000) } }],
    ["are about another resource", { resource: () => ({ resource: "https://evil.example.com/mcp" }) }],
    ["do not name the issuer https://auth.example.test", { oauth: { issuer: "https://auth.example.test" } }],
  ];
  for (const [words, options] of cases) {
    await using all = await scene(options);
    expect.soft(await refusalOf(all)).toContain(words);
    expect.soft(all.desk.addresses).toEqual([]);
    expect.soft(await all.desk.logins.read("fake")).toBeUndefined();
  }
});

test("a redirect counts only where it says that it is of this authorization server, and once [X-D01]", async () => {
  const changed =
    (change: (params: URLSearchParams, origin: string) => void) =>
    (back: URL, origin: string): URL => {
      change(back.searchParams, origin);
      return back;
    };
  const cases: readonly (readonly [words: string, AuthorityOptions])[] = [
    ["is of another issuer", { redirect: changed((params) => params.set("iss", "https://evil.example.com")) }],
    ["is of another issuer", { redirect: changed((params, origin) => params.set("iss", `${origin}/`)) }],
    ["does not say who sent it", { redirect: changed((params) => params.delete("iss")) }],
    ["more than one `iss`", { redirect: changed((params, origin) => params.append("iss", origin)) }],
    ["more than one `code`", { redirect: changed((params) => params.append("code", "x")) }],
    ["has no code", { redirect: changed((params) => params.delete("code")) }],
    ["answered access_denied", { redirect: changed((params) => params.set("error", "access_denied")) }],
    ["answered an error", { redirect: changed((params) => params.set("error", "<b>\u0007")) }],
    [
      "gave nothing: it answered HTTP 400 without a token (invalid_grant)",
      { redirect: changed((params) => params.set("code", "stolen")) },
    ],
    [
      "with a token of another kind",
      { token: () => ({ status: 200, body: '{"access_token":"a","token_type":"DPoP"}' }) },
    ],
    ["without a token", { token: () => ({ status: 200, body: '{"access_token":"a\\nb"}' }) }],
    ["without a token", { token: () => ({ status: 200, body: "<html>" }) }],
  ];
  for (const [words, authority] of cases) {
    await using all = await scene({ authority });
    expect.soft(await refusalOf(all)).toContain(words);
    expect.soft(await all.desk.logins.read("fake")).toBeUndefined();
  }
});

test("a browser of another login is turned away, and the one that is waited for still counts [X-D01]", async () => {
  await using all = await scene();
  const pages: (readonly [number, string])[] = [];
  const visit = async (address: string): Promise<void> => {
    const answer = await fetch(address);
    pages.push([answer.status, await answer.text()]);
  };
  await all.desk.logIn({
    async browse(address) {
      const right = await redirectedTo(address);
      const wrong = new URL(right);
      wrong.searchParams.set("state", "<script>");
      wrong.searchParams.set("code", "forged");
      await visit(new URL("/other", right).href);
      await visit(wrong.href);
      await visit(right);
    },
  });
  expect(pages.map(([status]) => status)).toEqual([404, 400, 200]);
  expect(pages.map(([, text]) => text).join("")).not.toContain("script");
  expect(all.desk.notes).toEqual([expect.stringContaining("another login")]);
  expect(all.authority.requests).toHaveLength(1);
});

test("where the browser runs on another machine, the address that it ends at can be pasted", async () => {
  await using all = await scene();
  const pasted = Promise.withResolvers<string>();
  await all.desk.logIn({
    pasted: pasted.promise,
    browse: async (address) => pasted.resolve(await redirectedTo(address)),
  });
  expect(await all.desk.logins.read("fake")).toMatchObject({ accessToken: all.authority.lastAccess });
});

test("a login that is given up ends at once, and leaves the one before it", async () => {
  await using all = await scene();
  await all.desk.logIn();
  const before = await all.desk.logins.read("fake");
  const stop = new AbortController();
  const reason = new Error("interrupted");
  const login = all.desk.logIn({ signal: stop.signal, browse: async () => stop.abort(reason) });
  await expect(login).rejects.toBe(reason);
  expect(await all.desk.logins.read("fake")).toEqual(before);
});

test("a logout forgets the login, gives its refresh token back, and the gateway's tools are gone", async () => {
  await using all = await scene();
  await all.desk.logIn();
  await using server = await all.open();
  await server.ready();
  expect(await all.desk.logOut()).toEqual({ issuer: all.authority.origin, revoked: true });
  expect(all.authority.revoked).toEqual([all.authority.lastRefresh]);
  expect(await unavailable(server, "nobody")).toContain("toolgate login fake");
  expect(await all.desk.logOut()).toBeUndefined();
});

test("tokens that nobody takes back are forgotten all the same", async () => {
  await using all = await scene({ authority: { metadata: () => ({ revocation_endpoint: undefined }) } });
  await all.desk.logIn();
  expect(await all.desk.logOut()).toMatchObject({ revoked: false });
  expect(await all.desk.logins.read("fake")).toBeUndefined();
});

test("a login that is damaged or sealed with another key is said so, and made anew", async () => {
  await using all = await scene();
  await all.desk.logIn();
  const file = join(all.desk.folder, "state", "logins", "fake.json");
  for (const [text, words] of [
    ["{", "is damaged"],
    ['{"form":1,"sealed":"AAAA"}', "is encrypted, and `state.encryption_key` is not set"],
  ] as const) {
    await writeFile(file, text);
    await using server = await all.open();
    expect(await unavailable(server, words)).toContain("log");
    await all.desk.logIn();
    await server.ready();
  }
});

test("keys of a login that cannot hold are refused with the mend", () => {
  const url = "https://mcp.example.com/mcp";
  const problems = (oauth: JsonObject, reach: "all" | "none" = "all"): string[] =>
    problemsOf({ mcp: { url, auth: { oauth } }, reach });
  expect(problems({})).toEqual([]);
  expect(problems({ secret_ref: "S" })).toEqual([
    "/mcp/auth/oauth/secret_ref is the secret of a `client_id`; give both",
  ]);
  expect(problems({ client_id: "a", client_auth: "post" })).toEqual([
    "/mcp/auth/oauth/client_auth says how a secret is shown; give `secret_ref`, too",
  ]);
  expect(problems({ client_id: "a", client_metadata_url: "https://a.example/c.json" })).toEqual([
    "/mcp/auth/oauth/client_metadata_url is a name, as `client_id` is; give one of them",
  ]);
  expect(problems({ client_metadata_url: "http://a.example/c.json" })).toEqual([
    "/mcp/auth/oauth/client_metadata_url has to be https, with a path",
  ]);
  expect(problems({ issuer: "nowhere" })).toEqual(["/mcp/auth/oauth/issuer is no http or https URL"]);
  expect(problems({}, "none")).toEqual([
    "/mcp/auth/oauth is not for servers registered over the wire; declare the server in a file",
  ]);
  expect(problemsOf({ mcp: { url, auth: { oauth: {}, bearer: { secret_ref: "T" } } } })).toEqual([
    "/mcp/auth takes one of `bearer`, `client_credentials` and `oauth`",
  ]);
});

test("a server that nobody logs in at is told apart", async () => {
  await using fake = await startFakeHttp();
  await using desk = await openLoginDesk({ mcp: { url: fake.url } });
  await expect(desk.logIn()).rejects.toThrow("nobody logs in at it; declare `auth: { oauth: {} }`");
  await using open = await openLoginDesk({ mcp: { url: fake.url, auth: { oauth: {} } } });
  await expect(open.logIn({ browse: followed })).rejects.toThrow("the server has no metadata");
});
