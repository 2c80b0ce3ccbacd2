import { definePlugin, type HttpRequest, readArray, readObject, readString } from '../../core/index.ts';
import { anthropicFailure, anthropicRateLimits } from '../formats/anthropic/errors.ts';
import { anthropicResponse, anthropicStream } from '../formats/anthropic/read-response.ts';
import { ANTHROPIC_FIELDS } from '../formats/anthropic/tables.ts';
import { anthropicRequest, type BetaRules, betaNames, nativeMessages } from '../formats/anthropic/write-request.ts';
import { lenientChat, nativeRows, PROVIDER_OPTIONS, type ProviderConfig, readProviderOptions } from './kit/index.ts';

/**
 * The API version, chosen on purpose: 2023-06-01 takes everything the later 2026-10-21 takes, and sampling fields for the
 * models that have them as well. See docs/decisions/anthropic-version.md.
 */
const API_VERSION = '2023-06-01';

/** Typed as `object`, since `ProviderConfig` is its type: none is to be computed from the schema. */
const CONFIG_SCHEMA: object = {
  type: 'object',
  additionalProperties: false,
  properties: {
    ...PROVIDER_OPTIONS,
    betas: {
      type: 'object',
      additionalProperties: false,
      description: 'Which betas of the vendor callers may ask for.',
      properties: {
        deny: {
          type: 'array',
          items: { type: 'string', minLength: 1 },
          description: 'Names that are refused with 400.',
        },
      },
    },
  },
};

/** Anthropic Claude over its Messages API. Source: https://platform.claude.com/docs/en/api/messages */
export default definePlugin({
  name: 'anthropic',
  kind: 'provider',
  apiVersion: 1,
  configSchema: CONFIG_SCHEMA,
  setup(api, config) {
    const options = readProviderOptions(config as ProviderConfig, {
      baseUrl: 'https://api.anthropic.com',
      credential: { header: 'x-api-key' },
      apiKeyEnv: 'ANTHROPIC_API_KEY',
      headers: { 'anthropic-version': API_VERSION },
    });
    const rules = readBetaRules(config, options.headers);
    const rows = { messages: nativeMessages(rules) };
    const native = nativeRows(config as ProviderConfig, () => rows);
    api.provider({
      specVersion: 1,
      vendor: 'anthropic',
      priceFactors: { cache_write_1h: 2 },
      ...options,
      // Paths begin with /v1, whether the operator wrote it into the base URL or not.
      baseUrl: options.baseUrl.replace(/\/v1$/, ''),
      chat: lenientChat({
        request: (input, call) => anthropicRequest(input, call, rules),
        response: (body, call) => anthropicResponse(body, call),
        stream: (call) => anthropicStream(call),
      }),
      ...(native && { native }),
      fields: ANTHROPIC_FIELDS,
      listModels: { request: listRequest, response: listedModels },
      error: anthropicFailure,
      rateLimits: anthropicRateLimits,
    });
  },
});

function readBetaRules(config: unknown, headers: Readonly<Record<string, string>> | undefined): BetaRules {
  const deny = readArray(readObject(readObject(config)['betas'])['deny']).map(String);
  const [, always] = Object.entries(headers ?? {}).find(([name]) => name.toLowerCase() === 'anthropic-beta') ?? [];
  return { deny, always: betaNames(always) };
}

/** The largest page there is. */
function listRequest(): HttpRequest {
  return { method: 'GET', path: '/v1/models?limit=1000' };
}

function listedModels(body: unknown): readonly string[] {
  return readArray(readObject(body)['data']).flatMap((model) => readString(readObject(model)['id']) ?? []);
}
