import { type JsonObject, readArray, readObject } from '../../contract/index.ts';
import { CONTINUE_OPTION, continuesAs } from '../formats/openai-chat/continue.ts';
import { drop, openaiCompatible, pass, RELAY_EFFECTS } from './openai-compatible.ts';

/** Sources: OpenRouterTeam/docs and its OpenAPI document (2026-08). */
export default openaiCompatible({
  name: 'openrouter',
  baseUrl: 'https://openrouter.ai/api/v1',
  apiKeyEnv: 'OPENROUTER_API_KEY',
  media: ['input_audio', 'video_url'],
  fields: {
    // It would reach models that the caller's key may not use, at an unchecked price.
    models: drop('use an alias of the gateway for fallbacks'),
    route: drop('use an alias of the gateway for fallbacks'),
    debug: drop('it would show requests of the operator’s account'),
  },
  extras: [
    ...[
      'image_config',
      'include_reasoning',
      'min_p',
      'plugins',
      'preset',
      'provider',
      'reasoning',
      'repetition_penalty',
    ],
    ...['session_id', 'stop_server_tools_when', 'structured_outputs', 'top_a', 'top_k', 'trace', 'transforms', 'usage'],
  ],
  effects: RELAY_EFFECTS,
  stores: 'asked',
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
  listedPrice,
  embeddings: { fields: { input_type: pass() } },
  options: {
    referer: { type: 'string', description: 'Your site, sent as `HTTP-Referer` for OpenRouter’s rankings.' },
    title: { type: 'string', description: 'Your app’s name, sent as `X-OpenRouter-Title`.' },
    ...CONTINUE_OPTION,
  },
  configure: ({ referer, title, continues }) => ({
    ...continuesAs(continues),
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

/** Reasoning formats that the model behind it reads, by the vendor in the model's name. */
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

/**
 * Cost in credits, which are dollars. With the operator's own key for the upstream vendor, that vendor's bill is
 * added.
 */
function usageCost({ cost, is_byok: ownKey, cost_details: details }: JsonObject): number | undefined {
  if (typeof cost !== 'number') return undefined;
  const upstream = readObject(details)['upstream_inference_cost'];
  return ownKey === true && typeof upstream === 'number' ? cost + upstream : cost;
}

/** Names of rates in its list, which are US dollars per token as texts, with the gateway's names. */
const LISTED_RATES = Object.freeze({
  prompt: 'input',
  completion: 'output',
  input_cache_read: 'cached_input',
  input_cache_write: 'cache_write',
  input_cache_write_1h: 'cache_write_1h',
  audio: 'audio_input',
  input_audio_cache: 'cached_audio_input',
  audio_output: 'audio_output',
  image_token: 'image_input',
});

/**
 * Price of a model in its list. Undefined for routers, whose price (-1) is that of the model they choose. Of prices
 * by time of day, each rate is the highest. Invalid numbers stay, for the reader of the list to reject.
 */
function listedPrice({ pricing }: JsonObject): unknown {
  const whole = readObject(pricing);
  if (whole['prompt'] === undefined || Number(whole['prompt']) === -1) return undefined;
  const overrides = readArray(whole['overrides']).map(readObject);
  const base = ratesOf(whole);
  for (const override of overrides.filter((each) => each['min_prompt_tokens'] === undefined))
    for (const [rate, value] of Object.entries(ratesOf(override)))
      base[rate] = Math.max(Number(base[rate] ?? 0), Number(value));
  const tiers = overrides.flatMap(({ min_prompt_tokens: above, ...override }) =>
    above === undefined ? [] : [{ ...base, ...ratesOf(override), input_tokens_above: above }],
  );
  const [requests, web_search_requests] = [whole['request'], whole['web_search']].map(dollars);
  const fees = { ...(requests ? { requests } : {}), ...(web_search_requests ? { web_search_requests } : {}) };
  return { ...base, ...(tiers.length > 0 && { tiers }), ...(Object.keys(fees).length > 0 && { fees }) };
}

/** US dollars per million tokens. A rate of 0 next to a price means "none". */
function ratesOf(pricing: JsonObject): Record<string, unknown> {
  const rates: Record<string, unknown> = {};
  for (const [name, rate] of Object.entries(LISTED_RATES)) {
    const usd = dollars(pricing[name]);
    if (usd === undefined || (usd === 0 && rate !== 'input' && rate !== 'output')) continue;
    rates[rate] = typeof usd === 'number' ? Number((usd * 1_000_000).toFixed(6)) : usd;
  }
  return rates;
}

function dollars(value: unknown): unknown {
  return typeof value === 'string' && /^\d+(\.\d+)?(e-?\d+)?$/i.test(value) ? Number(value) : value;
}
