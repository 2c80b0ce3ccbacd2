import assert from 'node:assert/strict';
import { type AuthRequest, GatewayError, isGatewayError, type Principal } from '../../contract/index.ts';
import { deepFreeze } from './deep-freeze.ts';
import { testDefinition } from './plugin.ts';
import { type PluginKit, type PluginSubject, setUpPlugin } from './plugin-subject.ts';
import { findRunner, nameOf, requirePlugin } from './runner.ts';

/** Request of a caller with valid or invalid credentials. */
export interface AuthSample {
  /** Value of `authorization: Bearer` or `x-api-key`; empty for schemes that sign a request. */
  readonly credential: string;
  /** Other relevant parts of the request: headers, path, address or time. */
  readonly request?: Partial<Omit<AuthRequest, 'credential' | 'rawBody' | 'beforeLookup'>>;
  readonly body?: Uint8Array;
  /**
   * Parts that a scheme without a `credential` does not sign. The kit changes all others, and the caller must be rejected: each
   * header of the sample, method, path, body, and the time by a day.
   */
  readonly unsigned?: readonly SignedPart[];
}

type SignedPart = 'method' | 'path' | 'body' | 'time';

/** Options of {@link testAuth}. */
export interface AuthKit extends PluginKit {
  /** Valid callers, each with the expected principal. */
  readonly right: readonly (AuthSample & { readonly principal: Partial<Principal> })[];
  /** Invalid callers, such as one with a revoked key. The kit adds variations of the valid ones. */
  readonly wrong?: readonly AuthSample[];
}

const HOSTILE: readonly string[] = [
  ...['__proto__', 'constructor', 'toString', '\u0000', '../../etc/passwd', "' OR 1=1 --", '*', 'null', 'undefined'],
  ...['Bearer', '💥', 'a.b.c', '{"alg":"none"}', 'x'.repeat(100_000)],
];

/** Shorter texts may occur in other words by chance. */
const TELLING = 8;

/**
 * Runs the tests that every auth plugin must pass. Valid callers get the principal named by the kit, all others are
 * rejected, and no credential is exposed.
 *
 * ```ts
 * import { testAuth } from 'tollgate/conformance';
 * import teamToken from '../team-token.ts';
 * testAuth({ plugin: teamToken, right: [{ credential: 'team-blue', principal: { userId: 'blue' } }] });
 * ```
 */
export function testAuth(kit: AuthKit): void {
  const { describe, it } = findRunner(kit.runner);
  describe(`the auth plugin ${nameOf(kit.plugin)}: what every one promises`, () => {
    requirePlugin(kit.plugin, 'auth');
    const { plugin, wrong = [] } = kit;
    const right: AuthKit['right'] = kit.right;
    for (const { request, principal } of right) deepFreeze([request, principal]);
    if (!Array.isArray(right) || right.length === 0)
      throw new Error('the kit’s `right` is empty: give at least one caller who is known, { credential, principal }');
    testDefinition(kit, (subject) => Promise.all(right.map((sample) => authenticate(subject, sample))));
    const withPlugin = async (run: (subject: PluginSubject) => Promise<void>): Promise<void> => {
      const subject = await setUpPlugin(kit);
      try {
        await run(subject);
      } finally {
        await subject.close();
      }
    };
    const near = right.flatMap(({ principal: _, ...sample }) =>
      nearlyRight(sample.credential).map((credential): AuthSample => ({ ...sample, credential })),
    );
    const others = [...wrong, ...near, ...HOSTILE.map((credential): AuthSample => ({ credential }))].filter(
      ({ credential }) => !right.some((known) => known.credential === credential && credential !== ''),
    );

    describe('a known caller', () => {
      for (const [at, sample] of right.entries())
        it(`is identified, number ${at + 1}`, () =>
          withPlugin(async (subject) => {
            const principal = await authenticate(subject, sample);
            assertPrincipal(principal, sample);
            for (const [name, value] of Object.entries(sample.principal))
              assert.deepEqual((principal as unknown as Readonly<Record<string, unknown>>)[name], value, name);
          }));
      it('is identified concurrently with the others', () =>
        withPlugin(async (subject) => {
          const found = await Promise.all(right.map((sample) => authenticate(subject, sample)));
          for (const [at, sample] of right.entries()) {
            const { userId } = sample.principal;
            if (userId === undefined) continue;
            assert.equal((found[at] as Principal).userId, userId);
            // Repeated, because some results are now cached.
            assert.equal((await authenticate(subject, sample))?.userId, userId);
          }
        }));
      if (plugin.isCredential)
        it('has a credential that `isCredential` recognizes', () => {
          for (const { credential } of right)
            if (credential !== '') assert.equal(plugin.isCredential?.(credential), true);
        });
    });

    describe('any other caller', () => {
      it('without a credential is rejected', () =>
        withPlugin(async (subject) => assertUnauthenticated(subject, { credential: '' })));
      it('with a wrong one is rejected, with an error that does not contain it', () =>
        withPlugin(async (subject) => {
          for (const sample of others) await assertUnauthenticated(subject, sample);
        }));
      for (const [at, sample] of right.entries())
        for (const [part, changed] of changedParts(sample))
          it(`with the request of number ${at + 1} and another ${part} is rejected`, () =>
            withPlugin(async (subject) => {
              // The original request first, as an attacker has seen it.
              assertPrincipal(await authenticate(subject, sample), sample);
              await assertUnauthenticated(subject, changed);
            }));
      it('is rejected after too many wrong ones', () =>
        withPlugin(async (subject) => {
          for (const sample of others.slice(0, 5)) await assertUnauthenticated(subject, sample, true);
        }));
      if (plugin.isCredential)
        it('is checked by `isCredential` without an error', () => {
          for (const text of ['', ...HOSTILE]) assert.equal(typeof plugin.isCredential?.(text), 'boolean');
          assert.equal(plugin.isCredential?.(''), false, 'nothing is no credential');
        });
    });

    it('writes no credential to its log', () =>
      withPlugin(async (subject) => {
        for (const sample of [...right, ...others]) await authenticate(subject, sample).catch(() => undefined);
        for (const { credential } of [...right, ...others])
          if (credential.length >= TELLING)
            assert.ok(!subject.logged.join('\n').includes(credential), 'a credential is in the log');
      }));
  });
}

const DAY_MS = 86_400_000;

/** Returns a signed request with each of its parts changed, one at a time; none for other requests. */
function changedParts(sample: AuthSample): readonly (readonly [part: string, sample: AuthSample])[] {
  const { credential, request = {}, body = new Uint8Array(), unsigned = [] } = sample;
  if (credential !== '') return [];
  const { headers = {}, path = '/v1/chat/completions', method = 'POST', now = Date.now() } = request;
  const changed = (part: SignedPart, label: string, change: Partial<AuthSample>) =>
    unsigned.includes(part) ? [] : [[label, { ...sample, ...change }] as const];
  const withRequest = (change: AuthSample['request']) => ({ request: { ...request, ...change } });
  return [
    ...changed('method', 'method', withRequest({ method: method === 'POST' ? 'DELETE' : 'POST' })),
    ...changed('path', 'path', withRequest({ path: `${path}/other` })),
    ...changed('body', 'body', { body: Buffer.concat([body, Buffer.from(' ')]) }),
    ...(body.length > 0 ? changed('body', 'body of the same length', { body: flipLast(body) }) : []),
    ...changed('time', 'time, a day later', withRequest({ now: now + DAY_MS })),
    ...changed('time', 'time, a day earlier', withRequest({ now: now - DAY_MS })),
    ...Object.entries(headers).flatMap(([name, value]) => {
      const others = { ...headers };
      delete others[name];
      return [
        [
          `header ${name}`,
          { ...sample, ...withRequest({ headers: { ...headers, [name]: changeLast(String(value)) } }) },
        ],
        [`set of headers, without ${name}`, { ...sample, ...withRequest({ headers: others }) }],
      ] as const;
    }),
  ];
}

function flipLast(bytes: Uint8Array): Uint8Array {
  const copy = Uint8Array.from(bytes);
  const last = copy.length - 1;
  copy[last] = (copy[last] ?? 0) ^ 1;
  return copy;
}

/** Changes the last letter or digit of a text. */
function changeLast(text: string): string {
  const last = text.at(-1) ?? '';
  return `${text.slice(0, -1)}${last === '0' ? '1' : '0'}`;
}

/** Returns a credential with single mistakes, and with manipulations. */
function nearlyRight(credential: string): readonly string[] {
  if (credential === '') return [];
  const middle = Math.floor(credential.length / 2);
  const other = credential[middle] === 'x' ? 'y' : 'x';
  return [
    credential.slice(0, -1),
    credential.slice(1),
    `${credential}x`,
    credential + credential,
    `${credential}\u0000`,
    `${credential.slice(0, middle)}${other}${credential.slice(middle + 1)}`,
    [...credential].reverse().join(''),
    otherCase(credential),
    credential.slice(0, middle) + otherCase(credential.slice(middle)),
  ];
}

function otherCase(text: string): string {
  const turn = (letter: string) => (letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase());
  return [...text].map(turn).join('');
}

async function authenticate(
  subject: PluginSubject,
  { credential, request = {}, body = new Uint8Array() }: AuthSample,
  isLimited = false,
): Promise<Principal | undefined> {
  const requested: AuthRequest = Object.freeze({
    ...{ bearer: true, now: Date.now(), method: 'POST', path: '/v1/chat/completions', address: '127.0.0.1' },
    headers: Object.freeze(credential === '' ? {} : { authorization: `Bearer ${credential}` }),
    ...request,
    credential,
    rawBody: async () => body,
    beforeLookup() {
      if (isLimited) throw new GatewayError('rate_limited', 'Too many wrong credentials came from this address.');
    },
  });
  for (const { handler } of subject.hooksOf('authenticate')) {
    const found = await handler(requested);
    if (found !== undefined) return found;
  }
  return undefined;
}

function assertPrincipal(principal: Principal | undefined, { credential }: AuthSample): void {
  assert.ok(principal, 'no principal: a hook of `authenticate` has to return one');
  for (const name of ['userId', 'account'] as const)
    assert.ok(typeof principal[name] === 'string' && principal[name] !== '', `${name} is a text`);
  assert.ok(
    ['key', 'token', 'session'].includes(principal.credential),
    '`credential` is its kind: key, token or session',
  );
  if (credential.length >= TELLING)
    assert.ok(!JSON.stringify(principal).includes(credential), 'the principal holds the credential');
}

/** Fails if a principal is found, or if the error is not a GatewayError or contains the credential. */
async function assertUnauthenticated(subject: PluginSubject, sample: AuthSample, isLimited = false): Promise<void> {
  const { credential } = sample;
  const what = JSON.stringify(credential.slice(0, 40));
  let found: Principal | undefined;
  try {
    found = await authenticate(subject, sample, isLimited);
  } catch (error) {
    assert.ok(
      isGatewayError(error),
      `${what}: throws no error of ours: ${String((error as Error | undefined)?.stack ?? error)}`,
    );
    assert.ok(
      error.status === 401 || error.status === 403 || error.status === 429,
      `${what}: ${error.code} is no refusal`,
    );
    if (credential.length >= TELLING) assert.ok(!error.message.includes(credential), `${what}: the error repeats it`);
    return;
  }
  assert.equal(found, undefined, `${what}: is taken for ${JSON.stringify(found)}`);
}
