import { definePlugin, type HttpRequest, type Offer, readArray, readObject, readString } from '../../../core/index.ts';
import { lenientChat, nativeRows, PROVIDER_OPTIONS, type ProviderConfig, readProviderOptions } from '../kit/index.ts';
import { geminiEmbedRequest, geminiEmbedResponse } from './embeddings.ts';
import { geminiFailure } from './errors.ts';
import { GEMINI_FIELDS, GEMINI_FIELDS_WITH_CACHE } from './fields.ts';
import { geminiRequest, nativeRow } from './request.ts';
import { geminiResponse } from './response.ts';
import { geminiStream } from './stream.ts';

/** Typed as `object`, so that nobody computes a type from it: `ProviderConfig` is that type. */
const CONFIG_SCHEMA: object = {
  type: 'object',
  additionalProperties: false,
  properties: {
    ...PROVIDER_OPTIONS,
    cachedContent: {
      type: 'boolean',
      description:
        'Lets callers name cached contents (`cached_content`) and files of this account, which all of them share.',
    },
  },
};

/** What the vendor takes as the name of a function: it may not begin with a digit or a dash. */
const TOOL_NAMES = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/;

interface GeminiConfig extends ProviderConfig {
  readonly cachedContent?: boolean;
}

/** Google Gemini in its native format. Source: https://ai.google.dev/api */
export default definePlugin({
  name: 'gemini',
  kind: 'provider',
  apiVersion: 1,
  configSchema: CONFIG_SCHEMA,
  setup(api, config) {
    const own = config as GeminiConfig;
    const fields = own.cachedContent === true ? GEMINI_FIELDS_WITH_CACHE : GEMINI_FIELDS;
    const endpoint: Offer = {
      specVersion: 1,
      vendor: 'gemini',
      ...readProviderOptions(own, {
        baseUrl: 'https://generativelanguage.googleapis.com/v1beta',
        credential: { header: 'x-goog-api-key' },
        apiKeyEnv: 'GEMINI_API_KEY',
      }),
      error: geminiFailure,
    };
    const native = nativeRows(own, (model, stream) => nativeRow(model, stream, own.cachedContent === true));
    api.provider({
      ...endpoint,
      chat: lenientChat(
        {
          request: (input, call) => geminiRequest(input, call, fields),
          response: geminiResponse,
          stream: geminiStream,
        },
        { toolNames: TOOL_NAMES },
      ),
      fields,
      ...(native && { native }),
      listModels: { request: listRequest, response: listedModels },
    });
    api.offer('embeddings', { ...endpoint, codec: { request: geminiEmbedRequest, response: geminiEmbedResponse } });
  },
});

/** The largest page there is: it holds every model. */
function listRequest(): HttpRequest {
  return { method: 'GET', path: '/models?pageSize=1000' };
}

/** Names of models that chat or embed, without `models/`. */
function listedModels(body: unknown): readonly string[] {
  return readArray(readObject(body)['models']).flatMap((model) => {
    const { name, supportedGenerationMethods: methods } = readObject(model);
    const usable = readArray(methods).some((method) => method === 'generateContent' || method === 'embedContent');
    const id = readString(name)?.replace(/^models\//, '');
    return usable && id ? [id] : [];
  });
}
