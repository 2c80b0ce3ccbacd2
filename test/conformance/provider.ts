import assert from 'node:assert/strict';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { FORMATS } from '../../contract/schema-formats.ts';
import { testResponses } from './provider-answers.ts';
import { testEffects } from './provider-effects.ts';
import { testErrors } from './provider-errors.ts';
import { testFailures } from './provider-failures.ts';
import { testLists } from './provider-lists.ts';
import { testMessages } from './provider-messages.ts';
import { testPublishedFields } from './provider-published.ts';
import { testRequests } from './provider-requests.ts';
import { testStreams } from './provider-streams.ts';
import {
  CALL,
  createSubject,
  decodeStream,
  type ProviderKit,
  type ProviderSubject,
  registerProvider,
  SECRET,
  setUpProvider,
} from './provider-subject.ts';
import { findRunner, nameOf, requirePlugin } from './runner.ts';
import { watched } from './watched.ts';

export type { ProviderKit } from './provider-subject.ts';

/**
 * Runs the tests that every provider must pass. Its requests follow its field rules. Its responses and streams have
 * OpenAI's exact shape, however the bytes are split. Its errors are classified.
 *
 * ```ts
 * import { testProvider } from 'tollgate/conformance';
 * import acme from '../acme.ts';
 * testProvider({ plugin: acme, fixtures: new URL('./fixtures/acme/', import.meta.url) });
 * ```
 */
export function testProvider(kit: ProviderKit): void {
  const { describe, it } = findRunner(kit.runner);

  describe(`${nameOf(kit.plugin)}: what every provider promises`, () => {
    requirePlugin(kit.plugin, 'provider');
    const subject = createSubject(kit);
    const { name, provider } = subject;
    describe('the plugin', () => {
      it('is a provider of this plugin version, named in kebab-case', () => {
        assert.deepEqual([kit.plugin.kind, kit.plugin.apiVersion, provider.specVersion], ['provider', 1, 1]);
        assert.match(name, /^[a-z][a-z0-9-]{0,39}$/);
      });
      it('accepts the options of every provider, and no unknown ones', () => {
        const check = configChecker(kit.plugin.configSchema ?? {});
        assert.ok(check({ ...kit.config, apiKey: SECRET, models: ['m'], prices: { '*': { input: 1, output: 2 } } }));
        assert.ok(!check({ ...kit.config, apiKye: SECRET }));
      });
      it('is set up without a key: it is "not configured" until there is one', () => {
        const { credential } = setUpProvider(kit.plugin, { ...kit.config });
        assert.equal(credential?.value, undefined);
      });
      it('uses its key only in the credential', () => {
        const { credential, ...rest } = provider;
        assert.equal(credential?.value, SECRET);
        assert.ok(!JSON.stringify(rest).includes(SECRET));
      });
      it('has an absolute base URL without a trailing slash', () => {
        assert.match(new URL(provider.baseUrl).protocol, /^https?:$/);
        assert.ok(!provider.baseUrl.endsWith('/'));
      });
      it('uses the configured base URL', () => {
        const { baseUrl } = setUpProvider(kit.plugin, { ...kit.config, baseUrl: 'https://relay.example/v1/' });
        assert.match(baseUrl, /^https:\/\/relay\.example(\/v1)?$/);
      });
      if (kit.request)
        it('resolves its request to the one that `request` writes', async () => {
          const { chat } = registerProvider(kit.plugin, { apiKey: SECRET, ...kit.config }).provider;
          const input = { model: CALL.model, messages: [{ role: 'user', content: 'Hello' }] } as const;
          assert.deepEqual(await chat?.request(input, CALL), kit.request?.(input, CALL));
        });
      it('writes nothing to the console, and reads no environment variable', () => watched(() => useAll(subject)));
    });
    testRequests(subject);
    testEffects(subject);
    testPublishedFields(subject);
    testMessages(subject);
    testResponses(subject);
    testStreams(subject);
    testErrors(subject);
    testFailures(subject);
    testLists(subject);
  });
}

/** Sets the plugin up and calls each part of its codec once; other tests check the results. */
function useAll({ kit, fixtures }: ProviderSubject): void {
  const provider = setUpProvider(kit.plugin, { apiKey: SECRET, ...kit.config }, kit.request);
  const uses: (() => unknown)[] = [
    () => provider.chat?.request({ model: CALL.model, messages: [{ role: 'user', content: 'Hello' }] }, CALL),
    () => provider.error(429, { error: { message: 'slow down' } }, {}),
    ...fixtures('chat', '.json').map(
      ({ text }) =>
        () =>
          provider.chat?.response(JSON.parse(text), CALL),
    ),
    ...fixtures('stream', '.sse').map(
      ({ text }) =>
        () =>
          decodeStream(provider, [new TextEncoder().encode(text)]),
    ),
  ];
  for (const use of uses)
    try {
      use();
    } catch {
      // Another test reports this error.
    }
}

/** The only Ajv of this process: it compiles the schema of schemas once. */
let settingsAjv: Ajv2020 | undefined;

function configChecker(schema: object): (config: unknown) => boolean {
  settingsAjv ??= createSettingsAjv();
  return settingsAjv.compile(schema);
}

function createSettingsAjv(): Ajv2020 {
  const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, addUsedSchema: false, code: { optimize: false } });
  ajv.addVocabulary(['secret']);
  for (const format of Object.keys(FORMATS)) ajv.addFormat(format, true);
  return ajv;
}
