import { assertOpenAi } from '../support/formats/openai-schemas.ts';
import { loadProviders } from '../support/plugins/all-providers.ts';
import { testProvider } from './provider.ts';

const FIXTURES = new URL('../fixtures/', import.meta.url);

/** Error events of providers whose streams differ from OpenAI's. */
const ERROR_EVENTS: Readonly<Record<string, string>> = {
  bedrock:
    'event: throttlingException\ndata: {"__type":"ThrottlingException","message":"Too many tokens, please wait."}\n\n',
  gemini: 'data: {"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}\n\n',
  vertex: 'data: {"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}\n\n',
  anthropic: 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n',
};

/** Possible future models, for providers that treat unknown names as other vendors' models. */
const UNKNOWN_MODELS: Readonly<Record<string, string>> = {
  anthropic: 'claude-sonnet-9',
  gemini: 'gemini-9-new',
  openai: 'gpt-9-new',
  vertex: 'gemini-9-new',
};

/** OpenAI's own schemas. */
const VALIDATE = {
  response: (value: unknown) => assertOpenAi('response', value),
  chunk: (value: unknown) => assertOpenAi('chunk', value),
  embeddings: (value: unknown) => assertOpenAi('embeddings', value),
};

for (const { name, plugin, config } of await loadProviders()) {
  const errorEvent = ERROR_EVENTS[name];
  testProvider({
    plugin,
    config,
    fixtures: new URL(`${name}/`, FIXTURES),
    validate: VALIDATE,
    ...(errorEvent !== undefined && { errorEvent }),
    ...(UNKNOWN_MODELS[name] !== undefined && { unknownModel: UNKNOWN_MODELS[name] }),
  });
}

it('the answers above also validate against OpenAI’s own OpenAPI document', () => {
  assertOpenAi('error', { error: { message: 'm', type: 't', param: null, code: 'c' } });
});
