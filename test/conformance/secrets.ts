import assert from 'node:assert/strict';
import type { PluginApi, Secret, SecretsReader } from '../../contract/index.ts';
import { deepFreeze } from './deep-freeze.ts';
import { assertHides, type Issuer, type IssuerAnswer, type IssuerRequest, openIssuer, soon } from './issuer.ts';
import { testDefinition } from './plugin.ts';
import { configCheck, type PluginKit } from './plugin-subject.ts';
import { findRunner, nameOf, requirePlugin } from './runner.ts';
import { watchedAsync } from './watched.ts';

/** Options of {@link testSecrets}. */
export interface SecretsKit extends PluginKit {
  /**
   * Response of the manager to a request, in its published format: to a sign-in, if it has one, and to each of `right`.
   */
  respond(request: IssuerRequest): IssuerAnswer;
  /** Existing secrets: the part of a reference after the manager's name, and the text. */
  readonly right: readonly { readonly name: string; readonly text: string }[];
  /** References to secrets that do not exist or cannot exist. */
  readonly missing: readonly string[];
  /** Secret texts of the options. */
  readonly secrets?: readonly string[];
}

/** References with typical mistakes, and attacks. */
const HOSTILE: readonly string[] = [
  ...[
    '',
    '#',
    ' ',
    '..',
    '../../sys/seal',
    '../../sys/seal#key',
    '/',
    '//evil.example/x',
    'https://evil.example/x',
    '__proto__',
    'constructor#a',
  ],
  ...['\u0000', '💥', 'a\r\nx-injected: 1', '?list=true', '%2e%2e%2f', 'x'.repeat(10_000)],
];
/** Time limit for a request, even if the manager never responds. */
const MOST_MS = 30_000;

/** Invalid responses of a manager, by problem. */
const BROKEN: readonly (readonly [what: string, response: IssuerAnswer])[] = [
  ['fails', { status: 503, body: 'Service Unavailable' }],
  [
    'refuses',
    { status: 403, body: { errors: ['permission denied'], message: 'denied', error: { message: 'denied' } } },
  ],
  ['says nothing', { body: '' }],
  ['says an empty object', { body: {} }],
  ['says a list', { body: [] }],
];

interface Subject {
  readonly manager: Issuer;
  readonly logged: readonly string[];
  read(name: string): Promise<Secret>;
  /** Returns the error of a read; fails if the secret exists. */
  failure(name: string): Promise<Error>;
  /** Replaces the kit's `respond`; returns undefined to never respond. */
  respond: ((request: IssuerRequest) => IssuerAnswer | undefined) | undefined;
}

/**
 * Runs the tests that every secrets manager must pass. It reads existing secrets, explains missing ones and ends in
 * time. It sends requests only to the manager, and exposes no secret in errors, URLs and logs. The tests use no
 * network: `context.http()` leads to `respond`.
 *
 * ```ts
 * import { testSecrets } from 'tollgate/conformance';
 * import safe from '../safe.ts';
 * testSecrets({
 *   plugin: safe,
 *   config: { url: 'https://safe.example' },
 *   respond: ({ url }) => (url.endsWith('/openai') ? { body: 'sk-of-the-safe-4711' } : { status: 404, body: 'none' }),
 *   right: [{ name: 'openai', text: 'sk-of-the-safe-4711' }],
 *   missing: ['none'],
 * });
 * ```
 */
export function testSecrets(kit: SecretsKit): void {
  const { describe, it } = findRunner(kit.runner);
  describe(`the manager of secrets ${nameOf(kit.plugin)}: what every one promises`, () => {
    requirePlugin(kit.plugin, 'secrets');
    if (!Array.isArray(kit.right) || kit.right.length === 0)
      throw new Error('the kit’s `right` is empty: give at least one secret that there is, { name, text }');
    testDefinition(kit);
    it('reads existing secrets, with the time of the next read', () =>
      withManager(kit, async ({ read }) => {
        for (const { name, text } of kit.right) {
          const { text: found, againMs } = await read(name);
          assert.equal(found, text, name);
          assert.ok(againMs === undefined || againMs > 0, `${name}: againMs is ${againMs}`);
        }
      }));
    it('reads them concurrently as in sequence', () =>
      withManager(kit, async ({ read }) => {
        const found = await Promise.all([...kit.right, ...kit.right].map(({ name }) => read(name)));
        assert.deepEqual(
          found.map(({ text }) => text),
          [...kit.right, ...kit.right].map(({ text }) => text),
        );
      }));
    it('writes nothing to the console, reads no environment variable, and shows no secret in a URL', () =>
      withManager(kit, ({ read, manager, logged }) =>
        watchedAsync(async () => {
          for (const { name } of kit.right) await read(name);
          assertHides(manager.requests.map(({ url }) => url).join(' '), secretsOf(kit), 'an address');
          assertHides(logged.join(' '), secretsOf(kit), 'the log');
        }),
      ));
    it('gives the reason for a missing one, without a secret', () =>
      withManager(kit, async ({ failure, logged }) => {
        for (const name of kit.missing) assertSaysWhy(kit, await failure(name), logged, name);
      }));
    it('handles wrong references without a secret in its messages, and contacts no other host', () =>
      withManager(kit, async ({ read, manager, logged }) => {
        for (const { name } of kit.right) await read(name);
        const origins = new Set(manager.requests.map(({ url }) => new URL(url).origin));
        for (const name of HOSTILE) {
          const error = await read(name).then(() => undefined, asError);
          if (error) assertSaysWhy(kit, error, logged, name);
        }
        const others = manager.requests.filter(({ url }) => !origins.has(new URL(url).origin));
        assert.deepEqual(others, [], 'a reference leads to another place');
        // A URL with dot segments has another path: the plugin must encode or reject them.
        const climbed = manager.requests.filter(({ url }) => /^[^?]*\/sys\/seal/.test(url));
        assert.deepEqual(climbed, [], 'a reference leads out of its folder');
        assert.ok(!manager.requests.some(({ headers }) => 'x-injected' in headers), 'a reference adds a header');
      }));
    describe('a manager', () => {
      for (const [what, response] of BROKEN)
        it(`that ${what} is an Error with the reason, without a secret`, () =>
          withManager(kit, async (subject) => {
            subject.respond = () => response;
            for (const { name } of kit.right) assertSaysWhy(kit, await subject.failure(name), subject.logged, name);
          }));
      it('that is interrupted is an Error with the reason, without a secret', () =>
        withManager(kit, async (subject) => {
          let isCut = false;
          subject.respond = (request) => {
            const response = kit.respond(request);
            if (typeof response.body === 'string') return response;
            isCut = true;
            return { ...response, body: JSON.stringify(response.body).slice(0, -1) };
          };
          for (const { name } of kit.right) {
            const error = await subject.read(name).then(() => undefined, asError);
            if (error) assertSaysWhy(kit, error, subject.logged, name);
            else assert.ok(!isCut, `${name}: a part of a response is taken for all of it`);
          }
        }));
      it('that never responds is abandoned in time', () =>
        withManager(kit, async (subject) => {
          subject.respond = () => undefined;
          subject.manager.hurry(50);
          const failure = subject.failure(kit.right[0]?.name ?? '');
          const error = await soon(failure, 'a request to the manager has no end: give it a timeout');
          assert.ok(subject.manager.longestMs <= MOST_MS, `it is waited for ${subject.manager.longestMs} ms`);
          assertSaysWhy(kit, error, subject.logged, 'never');
        }));
    });
  });
}

async function withManager(kit: SecretsKit, run: (subject: Subject) => Promise<void>): Promise<void> {
  const manager = await openIssuer((request) => (subject.respond ?? kit.respond)(request));
  const logged: string[] = [];
  const log = (fields: unknown, message?: string): void =>
    void logged.push(`${JSON.stringify(fields)} ${message ?? ''}`);
  const logger: PluginApi['log'] = { debug: log, info: log, warn: log, error: log, child: () => logger };
  const reader = openReader(kit, { baseDir: '/nowhere', log: logger, http: manager.api.http });
  const subject: Subject = {
    ...{ manager, logged, respond: undefined },
    read: async (name) => reader.read(name),
    failure: (name) => subject.read(name).then(() => assert.fail(`${name}: there is no such secret`), asError),
  };
  try {
    await run(subject);
  } finally {
    manager.close();
  }
}

function openReader({ plugin, config = {} }: SecretsKit, context: object): SecretsReader {
  const options = structuredClone(config);
  const problem = configCheck(plugin)(options);
  assert.equal(problem, undefined, problem);
  assert.equal(typeof plugin.secrets, 'function', 'the plugin has no `secrets`');
  return plugin.secrets?.(deepFreeze(options) as never, context as never) ?? assert.fail('`secrets` gives no reader');
}

function asError(error: unknown): Error {
  if (error instanceof assert.AssertionError) throw error;
  assert.ok(error instanceof Error, 'what it rejects with is no Error');
  return error;
}

function assertSaysWhy(kit: SecretsKit, error: Error, logged: readonly string[], name: string): void {
  assert.ok(error.message.trim() !== '', `${name}: the error says nothing`);
  assert.ok(!(error instanceof TypeError), `${name}: that is a bug, and no reason: ${error.stack}`);
  assertHides(`${error.message} ${logged.join(' ')}`, secretsOf(kit), 'an error or the log');
}

/** Secrets known to the kit. */
function secretsOf({ right, secrets = [] }: SecretsKit): readonly string[] {
  return [...secrets, ...right.map(({ text }) => text)];
}
