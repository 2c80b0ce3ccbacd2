import { type DialectDefinition, type DialectRoute, definePlugin, type Schema } from '../../../core/index.ts';
import { geminiError } from './errors.ts';
import { SSE_KEEP_ALIVE } from './frames.ts';
import { GEMINI_MODELS } from './models.ts';
import { GEMINI_NATIVE } from './native.ts';
import { readGemini, STREAM_METHOD } from './read.ts';
import { COUNT_REQUEST, COUNT_RESPONSE, GENERATE_REQUEST, GENERATE_RESPONSE } from './schema.ts';
import { streamGemini } from './stream.ts';
import type { GeminiBody } from './types.ts';
import { writeGemini } from './write.ts';

const DESCRIPTION =
  'Google’s own format, in camelCase or snake_case. The model is all between `/models/` and the last colon: `provider/model`, an alias, or a name that one provider lists.';

const CONFIG_SCHEMA = {
  type: 'object',
  additionalProperties: false,
  properties: {
    models: {
      type: 'object',
      description:
        'Model names of this format’s clients, each with the `provider/model`, or a list of them, that it stands for.',
      additionalProperties: {
        type: ['string', 'array'],
        items: { type: 'string', minLength: 1 },
        minItems: 1,
        minLength: 1,
      },
    },
  },
} as const satisfies Schema;

interface GeminiConfig {
  readonly models?: Readonly<Record<string, string | readonly string[]>>;
}

/** The three methods of a model, below `/v1beta` and `/v1`. */
function routesOf(version: string): readonly DialectRoute[] {
  const base = `/${version}/models/*model\\:`;
  return [
    { path: `${base}generateContent`, summary: 'A response in Gemini’s format', description: DESCRIPTION },
    {
      path: base + STREAM_METHOD,
      summary: 'A response in Gemini’s format, piece by piece',
      description: `${DESCRIPTION} Server-sent events with \`alt=sse\`, else one JSON array.`,
    },
    {
      path: `${base}countTokens`,
      summary: 'The number of tokens of an input, in Gemini’s format',
      description: 'Takes `contents`, or all of a request as `generateContentRequest`. Costs nothing.',
      action: 'count',
      request: COUNT_REQUEST,
      response: COUNT_RESPONSE,
    },
  ];
}

/** Gemini's own format. Source: https://ai.google.dev/api/generate-content */
const gemini: DialectDefinition<GeminiBody> = {
  name: 'gemini',
  request: GENERATE_REQUEST,
  response: GENERATE_RESPONSE,
  routes: [...routesOf('v1beta'), ...routesOf('v1')],
  prefixes: ['/v1beta'],
  credentials: { headers: ['x-goog-api-key'], query: ['key'] },
  models: GEMINI_MODELS,
  keepAlive: SSE_KEEP_ALIVE,
  read: readGemini,
  write: writeGemini,
  stream: streamGemini,
  count: (inputTokens) => ({ totalTokens: inputTokens }),
  native: GEMINI_NATIVE,
  error: geminiError,
};

export default definePlugin({
  name: 'gemini',
  kind: 'dialect',
  apiVersion: 1,
  configSchema: CONFIG_SCHEMA as object,
  setup(api, config) {
    const { models = {} } = config as GeminiConfig;
    const aliases = Object.fromEntries(Object.entries(models).map(([name, targets]) => [name, [targets].flat()]));
    api.dialect({ ...gemini, aliases });
  },
});
