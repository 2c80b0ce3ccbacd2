import { readdirSync } from 'node:fs';
import type { Plugin } from '../../core/index.ts';
import { assertOpenAi, hasOpenAiSchemas } from '../support/openai-schemas.ts';
import { testProvider } from './provider.ts';

const FOLDER = new URL('../../plugins/providers/', import.meta.url);
const FIXTURES = new URL('../fixtures/', import.meta.url);

/** Options without which a provider cannot be set up. */
const CONFIG: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  azure: { resource: 'acme' },
  'openai-compatible': { baseUrl: 'http://127.0.0.1:8000/v1' },
};

/** An error event for providers whose stream is not OpenAI's. */
const ERROR_EVENTS: Readonly<Record<string, string>> = {
  gemini: 'data: {"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}\n\n',
  anthropic: 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n',
};

/** OpenAI's own schemas, where their document is at hand. */
const VALIDATE = {
  response: (value: unknown) => assertOpenAi('response', value),
  chunk: (value: unknown) => assertOpenAi('chunk', value),
  embeddings: (value: unknown) => assertOpenAi('embeddings', value),
};

/** Every provider of the folder; a new one is tested by being there. */
const plugins: readonly Plugin[] = await Promise.all(
  readdirSync(FOLDER, { withFileTypes: true })
    .filter((entry) => entry.name.endsWith('.ts') || entry.isDirectory())
    .map((entry) => new URL(entry.isDirectory() ? `${entry.name}/index.ts` : entry.name, FOLDER))
    .filter((url) => !url.pathname.endsWith('/openai-compatible/index.ts'))
    .map(async (url) => ((await import(url.href)) as { readonly default: Plugin }).default),
);

for (const plugin of plugins) {
  const { name } = plugin;
  const errorEvent = ERROR_EVENTS[name];
  testProvider({
    plugin,
    fixtures: new URL(`${name}/`, FIXTURES),
    ...(hasOpenAiSchemas && { validate: VALIDATE }),
    ...(CONFIG[name] && { config: CONFIG[name] }),
    ...(errorEvent !== undefined && { errorEvent }),
  });
}

(hasOpenAiSchemas ? it : it.skip)('the answers above also validate against OpenAI’s own OpenAPI document', () => {
  assertOpenAi('error', { error: { message: 'm', type: 't', param: null, code: 'c' } });
});
