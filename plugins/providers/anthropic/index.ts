import { definePlugin, type HttpRequest, readArray, readObject, readString } from '../../../core/index.ts';
import { lenientChat, PROVIDER_OPTIONS, type ProviderConfig, readProviderOptions } from '../kit/index.ts';
import { anthropicFailure } from './errors.ts';
import { ANTHROPIC_FIELDS } from './fields.ts';
import { anthropicRateLimits } from './rate-limits.ts';
import { anthropicRequest } from './request.ts';
import { anthropicResponse } from './response.ts';
import { anthropicStream } from './stream.ts';

/**
 * The API version, chosen on purpose: 2023-06-01 takes everything the later 2026-10-21 takes, and sampling fields for the
 * models that have them as well. See docs/decisions/anthropic-version.md.
 */
const API_VERSION = '2023-06-01';

/** Typed as `object`, so that nobody computes a type from it: `ProviderConfig` is that type. */
const CONFIG_SCHEMA: object = { type: 'object', additionalProperties: false, properties: PROVIDER_OPTIONS };

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
    api.provider({
      specVersion: 1,
      vendor: 'anthropic',
      priceFactors: { cache_write_1h: 2 },
      ...options,
      // Paths begin with /v1, whether the operator wrote it into the base URL or not.
      baseUrl: options.baseUrl.replace(/\/v1$/, ''),
      chat: lenientChat({ request: anthropicRequest, response: anthropicResponse, stream: anthropicStream }),
      fields: ANTHROPIC_FIELDS,
      listModels: { request: listRequest, response: listedModels },
      error: anthropicFailure,
      rateLimits: anthropicRateLimits,
    });
  },
});

/** The largest page there is. */
function listRequest(): HttpRequest {
  return { method: 'GET', path: '/v1/models?limit=1000' };
}

function listedModels(body: unknown): readonly string[] {
  return readArray(readObject(body)['data']).flatMap((model) => readString(readObject(model)['id']) ?? []);
}
