import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { useTempFolder } from '../support/folders.ts';
import { checkTypes } from '../support/type-check.ts';

/** Third-party programs. `@ts-expect-error` marks lines that must not compile; it is an error itself if they do. */
const PROGRAMS: Readonly<Record<string, { readonly title: string; readonly text: string }>> = {
  narrow: {
    title: 'operations: ["chat"] narrows what a hook is handed',
    text: `
import { definePlugin } from 'tollgate';
export default definePlugin({
  name: 'x', kind: 'policy', apiVersion: 1,
  setup(api) {
    api.hook('prepare', { operations: ['chat'], handler: (call, request) => ({ ...request, messages: [...request.messages], temperature: 0.5 }) });
    api.hook('receive', { operations: ['chat'], handler(call, response) { const first: string | null | undefined = response.choices[0]?.message.content; void first; void call.request.messages; return undefined; } });
    api.hook('finish', { operations: ['chat'], handler(call) { const operation: 'chat' = call.operation; void operation; } });
    api.hook('answer', { operations: ['chat'], handler: () => ({ response: { id: 'x', object: 'chat.completion', created: 1, model: 'm', choices: [] }, cost: 5 }) });
    // @ts-expect-error -- no such operation
    api.hook('admit', { operations: ['chatt'], handler() {} });
    // @ts-expect-error -- no such hook
    api.hook('prepair', () => undefined);
    // @ts-expect-error -- no such order
    api.hook('admit', { order: 'first', handler() {} });
    // @ts-expect-error -- the request is read only
    api.hook('prepare', { operations: ['chat'], handler(call, request) { request.model = 'x'; return request; } });
  },
});`,
  },
  added: {
    title: 'operations and services that a plugin adds are known, also where its file comes before those of the kits',
    text: `
import type { Operations, Services } from 'tollgate';
import type { EmbeddingRequest } from 'tollgate/codec';
declare module 'tollgate' {
  interface Operations { readonly words: { readonly request: { readonly model: string }; readonly response: { readonly n: number }; readonly offer: never } }
  interface Services { readonly glossary: { explain(word: string): string } }
}
export const known: readonly (keyof Operations)[] = ['words', 'embeddings', 'chat'];
export const service: keyof Services = 'glossary';
// @ts-expect-error -- no plugin added it
export const unknown: keyof Operations = 'nothing';
export type { EmbeddingRequest };`,
  },
  others: {
    title: 'without operations a hook sees what all operations have, once others are known',
    text: `
import type { EmbeddingRequest } from 'tollgate/codec';
import { definePlugin } from 'tollgate';
export default definePlugin({
  name: 'x', kind: 'policy', apiVersion: 1,
  setup(api) {
    api.hook('admit', (call) => {
      // @ts-expect-error -- embeddings have none
      const messages: readonly object[] = call.request.messages;
      void messages;
      if (call.operation === 'chat') return;
    });
    api.hook('admit', { operations: ['embeddings'], handler(call) { const request: EmbeddingRequest = call.request; void request.input; } });
  },
});`,
  },
  kinds: {
    title: 'the API of a plugin offers what its kind may do',
    text: `
import { definePlugin } from 'tollgate';
definePlugin({ name: 'x', kind: 'policy', apiVersion: 1, setup(api) {
  // @ts-expect-error -- a policy is no provider
  api.provider({});
  // @ts-expect-error -- nor an operation
  api.operation({});
  // @ts-expect-error -- nor a dialect
  api.dialect({});
  // @ts-expect-error -- nor a store
  api.store(async () => ({}));
} });
definePlugin({ name: 'x', kind: 'store', apiVersion: 1, setup(api) {
  // @ts-expect-error -- a store is set up before there are calls
  api.hook('admit', () => undefined);
  // @ts-expect-error -- nor are there documents
  api.keyv('x');
  api.store(async () => { throw new Error('none'); });
} });
definePlugin({ name: 'x', kind: 'auth', apiVersion: 1, setup(api) {
  api.hook('authenticate', async ({ method, path, headers, address, rawBody }) => {
    const bytes: Uint8Array = await rawBody();
    return headers['x-a'] === address + method + path + String(bytes.length) ? { credential: 'key', userId: 'u', account: 'u' } : undefined;
  });
  // @ts-expect-error -- an auth plugin is no provider
  api.provider({});
} });
definePlugin({ name: 'x', kind: 'provider', apiVersion: 1, setup(api) { void api.provider; void api.offer; } });
definePlugin({ name: 'x', kind: 'operation', apiVersion: 1, setup(api) { void api.operation; } });
definePlugin({ name: 'x', kind: 'dialect', apiVersion: 1, setup(api) { void api.dialect; } });
// @ts-expect-error -- no such kind
definePlugin({ name: 'x', kind: 'polcy', apiVersion: 1, setup() {} });`,
  },
  config: {
    title: 'the config of a plugin has the types of its schema',
    text: `
import { definePlugin } from 'tollgate';
export default definePlugin({
  name: 'x', kind: 'policy', apiVersion: 1,
  configSchema: { type: 'object', required: ['words'], additionalProperties: false, properties: { words: { type: 'array', items: { type: 'string' } }, level: { enum: ['low', 'high'], default: 'low' }, day: { type: 'string', anyOf: [{ format: 'date' }, { format: 'date-time' }] } } },
  check({ words }, { baseDir }) { return words.includes(baseDir) ? [{ path: '/words', message: 'is odd' }] : []; },
  setup(api, config) {
    const [word] = config.words;
    const level: 'low' | 'high' = config.level;
    const day: string | undefined = config.day;
    void word?.length; void level; void day; void api;
    // @ts-expect-error -- not in the schema
    void config.wrods;
  },
});`,
  },
  codec: {
    title: 'a codec plugin fits testProvider, and reads its options under exactOptionalPropertyTypes',
    text: `
import { definePlugin } from 'tollgate';
import { PROVIDER_OPTIONS, readProviderOptions } from 'tollgate/codec';
import { testProvider } from 'tollgate/conformance';
const plugin = definePlugin({
  name: 'acme', kind: 'provider', apiVersion: 1,
  configSchema: { type: 'object', additionalProperties: false, properties: { ...PROVIDER_OPTIONS, region: { type: 'string' } } },
  setup(api, config) {
    api.provider({
      specVersion: 1, vendor: 'acme',
      ...readProviderOptions(config, { baseUrl: 'https://api.acme.example', models: [{ id: 'a' }] }),
      error: () => ({ class: 'upstream_error', message: '' }),
      chat: {
        request: (input) => ({ path: '/chat', body: input }),
        response: () => { throw new Error('none'); },
        stream: () => ({ push: () => [], end: () => ({ chunks: [], complete: true }) }),
      },
    });
  },
});
export default plugin;
testProvider({ plugin, fixtures: new URL('file:///nowhere/') });`,
  },
  third: {
    title: 'a third party adds an operation by declaration merging with tollgate',
    text: `
import { definePlugin, type Offer, type Schema } from 'tollgate';
interface Ranking { readonly model: string; readonly query: string; readonly texts: readonly string[] }
interface RankOffer extends Offer { readonly rank: (body: unknown) => readonly number[] }
declare module 'tollgate' {
  interface Operations { readonly rank: { readonly request: Ranking; readonly response: { readonly order: readonly number[] }; readonly offer: RankOffer } }
}
const RANKING: Schema = { type: 'object', required: ['model', 'query', 'texts'] };
export default definePlugin({ name: 'rank', kind: 'operation', apiVersion: 1, setup(api) {
  api.operation({
    name: 'rank', request: RANKING,
    estimate: ({ texts }) => ({ units: { texts: texts.length }, cost: undefined }),
    async attempt({ request, offer, sendForJson, meter }) {
      const order = offer.rank(await sendForJson({ path: '/rank', body: request }));
      meter({ units: { texts: request.texts.length }, cost: 0 });
      return { order };
    },
    isResponse: (value): value is { readonly order: readonly number[] } => typeof value === 'object' && value !== null && 'order' in value,
  });
} });
export const policy = definePlugin({ name: 'x', kind: 'policy', apiVersion: 1, setup(api) {
  api.hook('receive', { operations: ['rank'], handler: (call, { order }) => ({ order: order.toReversed().slice(0, call.request.texts.length) }) });
} });`,
  },
};

describe('the types of the contract (D54)', function () {
  this.timeout(120_000);
  const folder = useTempFolder('types');

  /** Output of tsc for one program alone: it must not know the imports of another. */
  async function check(name: string, text: string): Promise<string> {
    writeFileSync(path.join(folder, `${name}.ts`), text);
    const stdout = await checkTypes(folder, `${name}.ts`);
    // Errors in this repository's kits are reported by its own type check.
    return stdout
      .split('\n')
      .filter((line) => line.includes(`${name}.ts`))
      .join('\n');
  }

  for (const [name, { title, text }] of Object.entries(PROGRAMS))
    it(title, async () => {
      expect(await check(name, text)).to.equal('');
    });

  it('speech is not an operation for a program that imports only tollgate', async () => {
    const text = `
import { definePlugin, type Operation } from 'tollgate';
const chat: Operation = 'chat';
// @ts-expect-error -- typed after importing tollgate/speech
const speech: Operation = 'speech';
definePlugin({ name: 'x', kind: 'policy', apiVersion: 1, setup(api) {
  // @ts-expect-error -- so are its hooks
  api.hook('admit', { operations: ['speech'], handler() {} });
  void chat; void speech;
} });`;
    expect(await check('alone', text)).to.equal('');
  });
});
