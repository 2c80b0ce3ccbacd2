import { type JsonObject, readObject } from '../../core/index.ts';
import { drop, openaiCompatible } from './openai-compatible.ts';

/** Sources: OpenRouterTeam/docs and its OpenAPI document (2026-08). */
export default openaiCompatible({
  name: 'openrouter',
  baseUrl: 'https://openrouter.ai/api/v1',
  apiKeyEnv: 'OPENROUTER_API_KEY',
  fields: {
    // It would reach models that the caller's key may not use, at a price nobody looked up.
    models: drop('fallbacks are the gateway’s: use an alias'),
    route: drop('fallbacks are the gateway’s: use an alias'),
  },
  extras: ['provider'],
  variants: [
    {
      when: 'models of `openai/` and `anthropic/`',
      models: /^~?(openai|anthropic)\//,
      example: { model: 'anthropic/claude-sonnet-5' },
      roles: {},
    },
  ],
  roles: { developer: 'system' },
  replay: 'reasoning',
  detailFormats: formatsOf,
  historyTools: /^~?anthropic\//,
  files: { data: ['application/pdf'], urls: true },
  cacheMarks: true,
  streamUsage: 'always',
  usageCost,
  embeddings: {},
  options: {
    referer: { type: 'string', description: 'Your site, sent as `HTTP-Referer` for OpenRouter’s rankings.' },
    title: { type: 'string', description: 'Your app’s name, sent as `X-OpenRouter-Title`.' },
  },
  configure: ({ referer, title }) => ({
    headers: {
      ...(typeof referer === 'string' && { 'http-referer': referer }),
      ...(typeof title === 'string' && { 'x-openrouter-title': title }),
    },
  }),
  errors: {
    codes: { not_found: 'model_not_found', unmapped: 'upstream_error' },
    messages: [{ status: [400], text: /is not a valid model ID$/, is: 'model_not_found' }],
  },
});

/** Whose reasoning the model behind it can read, by the vendor in the model's name. */
const FORMATS: Readonly<Record<string, readonly string[]>> = Object.freeze({
  anthropic: ['anthropic'],
  google: ['gemini'],
  openai: ['responses', 'azure'],
  'x-ai': ['xai'],
});

function formatsOf(model: string): readonly string[] {
  const vendor = /^~?([^/]+)\//.exec(model)?.[1] ?? '';
  return (Object.hasOwn(FORMATS, vendor) ? FORMATS[vendor] : undefined) ?? [];
}

/** Credits, which are dollars; with a key of the operator's own for the vendor behind, that vendor's bill comes on top. */
function usageCost({ cost, is_byok: ownKey, cost_details: details }: JsonObject): number | undefined {
  if (typeof cost !== 'number') return undefined;
  const upstream = readObject(details)['upstream_inference_cost'];
  return ownKey === true && typeof upstream === 'number' ? cost + upstream : cost;
}
