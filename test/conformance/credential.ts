import assert from 'node:assert/strict';
import {
  type Credential,
  type CredentialHeaders,
  type CredentialRequest,
  isStreamFailure,
  type PluginApi,
} from '../../contract/index.ts';
import { deepFreeze } from './deep-freeze.ts';
import {
  assertHides,
  type Issuer,
  type IssuerAnswer,
  type IssuerRequest,
  openIssuer,
  SOON_MS,
  soon,
} from './issuer.ts';
import { findRunner, type Runner, type WithRunner } from './runner.ts';
import { watchedAsync } from './watched.ts';

/** Dependencies of a credential: a part of `api`. */
export type CredentialApi = Pick<PluginApi, 'http' | 'fetch' | 'log' | 'settings'>;

/** Credential that the kit expects from the issuer. */
export interface Issued {
  /** Text that the headers of requests must contain: a token, the id of a key, the token of a session. */
  readonly mark: string;
  /** Lifetime in seconds. */
  readonly seconds: number;
  /** Expiry by the issuer's clock, in milliseconds since 1970. */
  readonly endsAt: number;
}

/** Options of {@link testCredential}. */
export interface CredentialKit extends WithRunner {
  /** Name for the titles of the tests. */
  readonly name: string;
  /** Creates the credential, as `setup` of its plugin does. */
  open(api: CredentialApi): Credential;
  /**
   * Response of the issuer to a request for a credential, in its published format. Omitted for a credential without an
   * issuer.
   */
  issue?(request: IssuerRequest, issued: Issued): IssuerAnswer;
  /** Response of the issuer that refuses. Default: 401 with OAuth's `invalid_client`. */
  readonly refusal?: IssuerAnswer;
  /** Secret texts of its options: keys, secrets, tokens in files. */
  readonly secrets: readonly string[];
  /** For a credential that signs: the time of signing according to the headers, in milliseconds since 1970. */
  signedAt?(headers: CredentialHeaders): number;
}

const REFUSAL: IssuerAnswer = { status: 401, body: { error: 'invalid_client', error_description: 'It is unknown.' } };
const LIFE_S = 3600;
const LIFE_MS = LIFE_S * 1000;
const HOUR_MS = 3_600_000;
/** Time limit for a request for a credential, even if the issuer never responds. */
const MOST_MS = 30_000;

const REQUEST: CredentialRequest = deepFreeze({
  method: 'POST',
  url: 'https://vendor.example/v1/chat?stream=true',
  headers: { 'content-type': 'application/json' },
  body: '{"model":"m"}',
});

/**
 * Runs the tests for every credential that signs or expires:
 * - Concurrent requests share one fetch, and renewal starts before expiry.
 * - While the issuer fails, the current credential stays in use, and requests to the issuer are limited.
 * - An expired credential is never accepted, whatever the machine's clock shows.
 * - Every request ends in time, and no secret is exposed.
 *
 * The tests use no network: `api.http()` and `api.fetch` lead to the kit's issuer, and `Date` is the kit's.
 *
 * ```ts
 * import { testCredential } from 'tollgate/conformance';
 * import { acmeCredential } from '../acme-credential.ts';
 * testCredential({
 *   name: 'acme',
 *   open: (api) => acmeCredential(api, { clientSecret: 'acme-secret-4711' }),
 *   issue: (_request, { mark, seconds }) => ({ body: { access_token: mark, expires_in: seconds } }),
 *   secrets: ['acme-secret-4711'],
 * });
 * ```
 */
export function testCredential(kit: CredentialKit): void {
  const runner = findRunner(kit.runner);
  runner.describe(`the credential ${kit.name}: what every one promises`, () => {
    testHeaders(kit, runner);
    if (kit.issue) {
      testRenewal(kit, runner);
      testFailures(kit, runner);
    }
    if (kit.signedAt) testClock(kit, kit.signedAt, runner);
  });
}

/** Credential with its issuer and a clock that the test sets. */
interface Subject {
  readonly credential: Credential;
  readonly issuer: Issuer;
  readonly logged: readonly string[];
  /** Headers of one request. */
  headers(): Promise<CredentialHeaders>;
  /** Error of that request; fails if the request succeeds. */
  failure(): Promise<Error>;
  /** Issued token. */
  mark: string;
  seconds: number;
  /** Replaces the kit's `issue`; returns undefined to never respond. */
  respond: ((request: IssuerRequest, issued: Issued) => IssuerAnswer | undefined) | undefined;
  /** Lead of the machine's clock over the issuer's, in milliseconds. */
  skewMs: number;
  pass(ms: number): void;
}

async function withCredential(kit: CredentialKit, run: (subject: Subject) => Promise<void>): Promise<void> {
  const clock = setClock();
  const logged: string[] = [];
  const issuer = await openIssuer((request) => {
    const { skewMs, seconds, mark, respond = kit.issue } = subject;
    const now = Date.now() - skewMs;
    const response = respond?.(request, { mark, seconds, endsAt: now + seconds * 1000 });
    return response && { ...response, headers: { date: new Date(now).toUTCString(), ...response.headers } };
  });
  const log = (fields: unknown, message?: string) => {
    const error = (fields as { readonly err?: Error } | undefined)?.err;
    logged.push(`${JSON.stringify(fields)} ${message ?? ''} ${error?.stack ?? ''}`);
  };
  const logger: PluginApi['log'] = { debug: log, info: log, warn: log, error: log, child: () => logger };
  const settings = { baseDir: '/nowhere' } as PluginApi['settings'];
  const headers = async () => (await subject.credential.headers?.(REQUEST)) ?? assert.fail('it has no `headers`');
  const subject: Subject = {
    credential: kit.open({ ...issuer.api, log: logger, settings }),
    ...{ issuer, logged, headers, mark: 'mark-1-of-what-was-issued', seconds: LIFE_S, respond: undefined, skewMs: 0 },
    failure: () => headers().then(() => assert.fail('headers were made of nothing'), asError),
    pass: clock.pass,
  };
  try {
    await run(subject);
  } finally {
    issuer.close();
    clock.restore();
  }
}

function asError(error: unknown): Error {
  if (error instanceof assert.AssertionError) throw error;
  return error as Error;
}

/** Replaces `Date` with a clock that a test advances; the platform's timers stay real. */
function setClock(): { pass(ms: number): void; restore(): void } {
  const Platform = globalThis.Date;
  let offsetMs = 0;
  const Moved = new Proxy(Platform, {
    construct: (target, given: readonly unknown[], made) =>
      Reflect.construct(target, given.length === 0 ? [Platform.now() + offsetMs] : [...given], made) as object,
    get: (target, name) => (name === 'now' ? () => Platform.now() + offsetMs : (Reflect.get(target, name) as unknown)),
  });
  globalThis.Date = Moved;
  return {
    pass(ms) {
      offsetMs += ms;
    },
    restore() {
      globalThis.Date = Platform;
    },
  };
}

/** Waits for background work. */
async function until(is: () => boolean, what: string): Promise<void> {
  const endsAt = performance.now() + SOON_MS;
  while (!is()) {
    assert.ok(performance.now() < endsAt, what);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}

function assertShows(headers: CredentialHeaders, mark: string, what: string): void {
  assert.ok(JSON.stringify(headers).includes(mark), what);
}

function assertFailure(error: Error): void {
  assert.ok(
    isStreamFailure(error),
    `what it rejects with is no StreamFailure, so that no one knows what to do: ${error.stack}`,
  );
}

function testHeaders(kit: CredentialKit, { describe, it }: Runner): void {
  describe('the headers of a request', () => {
    it('are made in place of a fixed text', () =>
      withCredential(kit, async ({ credential }) => {
        assert.equal(typeof credential.headers, 'function', 'it has no `headers`');
        assert.equal(credential.value, undefined, '`value` is for a fixed text');
        assert.equal(credential.required, false, '`required` is for a fixed text');
        assert.equal(credential.header, credential.header.toLowerCase(), '`header` is in lower case');
      }));
    it('are valid texts with names in lower case, and contain the issued credential', () =>
      withCredential(kit, async (subject) => {
        const headers = await subject.headers();
        assert.ok(headers[subject.credential.header], `they have ${subject.credential.header}`);
        for (const [name, value] of Object.entries(headers)) {
          assert.match(name, /^[a-z0-9-]+$/);
          assert.match(value, /^[\x20-\x7e]+$/, name);
        }
        if (kit.issue) assertShows(headers, subject.mark, 'they show nothing of what was issued');
      }));
    it('are created without console output or reading the environment', () =>
      withCredential(kit, (subject) => watchedAsync(async () => void (await subject.headers()))));
    it('contain no secret of the options, nor do the requested URLs', () =>
      withCredential(kit, async (subject) => {
        assertHides(JSON.stringify(await subject.headers()), kit.secrets, 'the headers of a request');
        assertHides(subject.issuer.requests.map(({ url }) => url).join(' '), kit.secrets, 'an address');
        assertHides(subject.logged.join(' '), [...kit.secrets, subject.mark], 'the log');
      }));
  });
}

function testRenewal(kit: CredentialKit, { describe, it }: Runner): void {
  describe('an issued credential', () => {
    it('is requested once, however many requests wait for it', () =>
      withCredential(kit, async (subject) => {
        await subject.headers();
        const { length: once } = subject.issuer.requests;
        await withCredential(kit, async (other) => {
          await Promise.all(Array.from({ length: 20 }, () => other.headers()));
          assert.equal(
            other.issuer.requests.length,
            once,
            'twenty concurrent requests sent more than one token request',
          );
        });
      }));
    it('is used until shortly before its expiry', () =>
      withCredential(kit, async (subject) => {
        await subject.headers();
        const { length } = subject.issuer.requests;
        subject.pass(LIFE_MS / 2);
        await subject.headers();
        assert.equal(subject.issuer.requests.length, length, 'it is renewed after half of its lifetime');
      }));
    it('is renewed ahead of its expiry, and no request waits for that', () =>
      withCredential(kit, async (subject) => {
        await subject.headers();
        const [{ length }, { mark }] = [subject.issuer.requests, subject];
        Object.assign(subject, { mark: 'mark-2-of-what-was-issued', respond: () => undefined });
        subject.issuer.hurry(50);
        subject.pass(LIFE_MS - 60_000);
        const held = await soon(subject.headers(), 'a request waits for the issuer a minute before the end');
        assertShows(held, mark, 'what is good for a minute more is not used');
        await until(() => subject.issuer.requests.length > length, 'it is not renewed a minute before its end');
        await until(() => subject.logged.length > 0, 'that it cannot be renewed is not in the log');
        Object.assign(subject, { respond: undefined });
        subject.issuer.hurry(undefined);
        subject.pass(30_000);
        const shows = async () => JSON.stringify(await subject.headers()).includes(subject.mark);
        let isNew = false;
        await until(() => {
          void shows().then((is) => {
            isNew = is;
          });
          return isNew;
        }, 'it is not renewed when the issuer is there again');
      }));
    it('is no longer used after its expiry', () =>
      withCredential(kit, async (subject) => {
        await subject.headers();
        subject.mark = 'mark-2-of-what-was-issued';
        subject.pass(LIFE_MS + 1000);
        assertShows(await subject.headers(), subject.mark, 'what has ended is still used');
      }));
    for (const [title, ms] of [
      ['ahead of', 2 * HOUR_MS],
      ['behind', -2 * HOUR_MS],
    ] as const)
      it(`is used for its lifetime if the clock of the machine is two hours ${title} the issuer’s`, () =>
        withCredential(kit, async (subject) => {
          subject.skewMs = ms;
          await subject.headers();
          const { length } = subject.issuer.requests;
          await subject.headers();
          assert.equal(subject.issuer.requests.length, length, 'each request renews it');
          subject.mark = 'mark-2-of-what-was-issued';
          subject.pass(LIFE_MS + 1000);
          assertShows(await subject.headers(), subject.mark, 'what has ended is still used');
        }));
    it('is requested again when a vendor refuses it, and not again if the next one is refused immediately', () =>
      withCredential(kit, async (subject) => {
        const { credential } = subject;
        if (!credential.refused) return;
        await subject.headers();
        assert.equal(credential.refused(401, {}), false, 'a new credential would be renewed in an endless loop');
        subject.pass(LIFE_MS / 2);
        subject.mark = 'mark-2-of-what-was-issued';
        assert.equal(credential.refused(401, {}), true, 'one that is half an hour old may have been withdrawn');
        assertShows(await subject.headers(), subject.mark, 'what was refused is still used');
        assert.equal(credential.refused(401, {}), false, 'the next one is renewed in an endless loop');
        assert.equal(credential.refused(500, {}), false, 'a failure of the vendor is not the credential’s');
      }));
  });
}

/** Invalid responses of the issuer, by problem. */
const BROKEN: readonly (readonly [what: string, change: (response: IssuerAnswer) => IssuerAnswer])[] = [
  ['fails', () => ({ status: 503, body: 'Service Unavailable' })],
  ['is a page of a proxy', () => ({ body: '<html><body>Sign in to the network</body></html>' })],
  ['says nothing', () => ({ body: '' })],
  ['says an empty object', () => ({ body: {} })],
  ['says a list', () => ({ body: [] })],
  ['is cut in its middle', ({ body }) => ({ body: halfOf(typeof body === 'string' ? body : JSON.stringify(body)) })],
];

/** Returns a text up to the middle of its mark. */
function halfOf(text: string): string {
  return text.slice(0, text.indexOf('-of-what-was'));
}

function testFailures(kit: CredentialKit, { describe, it }: Runner): void {
  const issue = (request: IssuerRequest, issued: Issued) => kit.issue?.(request, issued) ?? { body: '' };
  describe('an issuer', () => {
    for (const [what, change] of BROKEN)
      it(`that ${what} is a failure of the request, without a secret, and has no effect after a recovery`, () =>
        withCredential(kit, async (subject) => {
          subject.respond = (request, issued) => change(issue(request, issued));
          const error = await subject.failure();
          assertFailure(error);
          assertHides(
            `${error.stack} ${subject.logged.join(' ')}`,
            [...kit.secrets, subject.mark],
            'an error or the log',
          );
          subject.respond = undefined;
          subject.pass(60_000);
          assertShows(await subject.headers(), subject.mark, 'it is not asked again after a minute');
        }));
    it('that refuses causes a failure of the class `authentication`, without a secret', () =>
      withCredential(kit, async (subject) => {
        subject.respond = () => kit.refusal ?? REFUSAL;
        const error = await subject.failure();
        assertFailure(error);
        assert.equal(isStreamFailure(error) && error.failure.class, 'authentication');
        assertHides(`${error.stack} ${subject.logged.join(' ')}`, kit.secrets, 'an error or the log');
      }));
    it('that fails is not called by each request', () =>
      withCredential(kit, async (subject) => {
        subject.respond = () => ({ status: 503, body: '' });
        for (let request = 0; request < 20; request += 1) await subject.failure();
        assert.ok(subject.issuer.requests.length <= 2, `${subject.issuer.requests.length} requests in no time`);
      }));
    it('that fails near the expiry leaves the current credential in use, and is not called by each request', () =>
      withCredential(kit, async (subject) => {
        await subject.headers();
        const { length } = subject.issuer.requests;
        subject.respond = () => ({ status: 503, body: '' });
        subject.pass(LIFE_MS - 60_000);
        for (let request = 0; request < 20; request += 1) {
          assertShows(await subject.headers(), subject.mark, 'what is good for a minute more is not used');
          if (request === 0) await until(() => subject.logged.length > 0, 'the log says nothing');
        }
        assert.ok(subject.issuer.requests.length <= length + 2, 'each request asks a minute before the end');
      }));
    it('that returns an expired credential is a failure, and is not called by each request', () =>
      withCredential(kit, async (subject) => {
        subject.seconds = -60;
        assertFailure(await subject.failure());
        for (let request = 0; request < 20; request += 1) await subject.failure();
        const { length } = subject.issuer.requests;
        subject.seconds = LIFE_S;
        subject.pass(60_000);
        await subject.headers();
        assert.ok(length <= 2 * (subject.issuer.requests.length - length), 'each request asks for one that has ended');
      }));
    it('that never responds is abandoned in time, and called again later', () =>
      withCredential(kit, async (subject) => {
        subject.respond = () => undefined;
        subject.issuer.hurry(50);
        const error = await soon(subject.failure(), 'a request for a credential has no end: give it a timeout');
        assert.ok(subject.issuer.longestMs <= MOST_MS, `it is waited for ${subject.issuer.longestMs} ms`);
        assertFailure(error);
        subject.respond = undefined;
        subject.issuer.hurry(undefined);
        subject.pass(60_000);
        assertShows(await subject.headers(), subject.mark, 'what waits without an end is waited for for ever');
      }));
  });
}

function testClock(
  kit: CredentialKit,
  signedAt: (headers: CredentialHeaders) => number,
  { describe, it }: Runner,
): void {
  const isAt = async ({ headers }: Subject, ms: number): Promise<boolean> =>
    Math.abs(signedAt(await headers()) - ms) < 60_000;
  describe('a signature', () => {
    it('covers only its request', () =>
      withCredential(kit, async ({ credential, headers }) => {
        const own = await headers();
        const others = [{ body: '{}' }, { method: 'GET' }, { url: 'https://vendor.example/v1/models' }];
        for (const other of others)
          assert.notDeepEqual(await credential.headers?.({ ...REQUEST, ...other }), own, JSON.stringify(other));
      }));
    it('has the time of its request', () =>
      withCredential(kit, async (subject) => {
        assert.ok(await isAt(subject, Date.now()));
        subject.pass(LIFE_MS / 2);
        assert.ok(await isAt(subject, Date.now()));
      }));
    it('is repeated by the clock of the vendor, if that refuses it for its time', () =>
      withCredential(kit, async (subject) => {
        const { credential } = subject;
        const vendorMs = Date.now() + HOUR_MS;
        const headers = { date: new Date(vendorMs).toUTCString() };
        assert.equal(await isAt(subject, Date.now()), true);
        assert.equal(credential.refused?.(403, headers), true, 'the clock of the vendor is passed over');
        assert.equal(await isAt(subject, vendorMs), true, 'the clock of the vendor is passed over');
        assert.equal(credential.refused?.(403, headers), false, 'it is made again in an endless loop');
      }));
  });
}
