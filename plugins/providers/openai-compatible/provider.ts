import { type ChatCodec, isObject, type Plugin, type Provider, readString } from '../../../core/index.ts';
import {
  createResponsesCodec,
  lenientChat,
  PROVIDER_OPTIONS,
  type ProviderConfig,
  readProviderOptions,
} from '../kit/index.ts';
import { createEmbedCodec } from './embeddings.ts';
import { classifyError } from './errors.ts';
import { fieldTable } from './field-table.ts';
import { createRequestMapper } from './request.ts';
import { readResponse } from './response.ts';
import type { CompatibleSpec, Differences } from './spec.ts';
import { decodeStream } from './stream.ts';

/**
 * Makes a provider plugin of a vendor that speaks OpenAI's chat completions, with its differences as data:
 *
 * ```ts
 * export default openaiCompatible({
 *   name: 'acme',
 *   baseUrl: 'https://api.acme.example/v1',
 *   apiKeyEnv: 'ACME_API_KEY',
 *   models: [{ id: 'acme-1' }],
 *   fields: { max_completion_tokens: rename('max_tokens'), seed: drop() },
 * });
 * ```
 */
export function openaiCompatible(spec: CompatibleSpec): Plugin<object, 'provider'> {
  const { name, apiKeyEnv, options = {}, requiredOptions = [], configure } = spec;
  return {
    name,
    kind: 'provider',
    apiVersion: 1,
    configSchema: {
      type: 'object',
      additionalProperties: false,
      properties: { ...PROVIDER_OPTIONS, ...options },
      ...(requiredOptions.length > 0 && { required: requiredOptions }),
    },
    setup(api, config) {
      const own = config as ProviderConfig & Readonly<Record<string, unknown>>;
      const differences = { ...spec, ...configure?.(own) };
      const provider = createProvider(name, differences, own, apiKeyEnv);
      api.provider(provider);
      const codec = createEmbedCodec(differences);
      if (codec) api.offer('embeddings', { ...provider, codec });
    },
  };
}

function createProvider(
  vendor: string,
  differences: Differences,
  config: ProviderConfig & Readonly<Record<string, unknown>>,
  apiKeyEnv: string | undefined,
): Provider {
  const { baseUrl, credential, keyRequired, headers, models, timeouts, transport, listsModels = true } = differences;
  const configured = readProviderOptions(config, {
    baseUrl,
    ...(credential && { credential }),
    ...(keyRequired !== undefined && { keyRequired }),
    ...(apiKeyEnv && { apiKeyEnv }),
    ...(headers && { headers }),
    ...(models && { models }),
  });
  return {
    specVersion: 1,
    vendor,
    ...(differences.anyModel && !config.models && { anyModel: true }),
    ...configured,
    ...(differences.addModels && { addModels: [...differences.addModels, ...(configured.addModels ?? [])] }),
    ...(timeouts && { timeouts: { ...timeouts, ...configured.timeouts } }),
    ...(transport && { transport }),
    fields: fieldTable(differences),
    chat: createChatCodec(differences),
    ...(differences.responsesPath && config['native'] !== false && { native: nativeRows(differences) }),
    ...(listsModels && { listModels: modelLister(differences) }),
    error: (status, body, responseHeaders) => classifyError(status, body, responseHeaders, differences.errors),
  };
}

/** How the vendor speaks other formats than chat itself. */
function nativeRows({ responsesPath, errors, usageCost }: Differences): NonNullable<Provider['native']> {
  const codec = createResponsesCodec((body) => classifyError(200, body, {}, errors), usageCost);
  return (model) => {
    const path = responsesPath?.(model);
    return path === undefined ? {} : { responses: { path, headers: betaHeaders, codec } };
  };
}

/** What a caller says of OpenAI's betas, but for that of the websocket: this is none. */
function betaHeaders(caller: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const betas = (caller['openai-beta'] ?? '').split(',').map((beta) => beta.trim());
  const kept = betas.filter((beta) => /^[\w.=-]+$/.test(beta) && !beta.startsWith('responses_websockets'));
  return kept.length > 0 ? { 'openai-beta': kept.join(',') } : {};
}

function createChatCodec(differences: Differences): ChatCodec {
  const codec: ChatCodec = {
    request: createRequestMapper(differences),
    response: (body, call) => readResponse(body, call, differences),
    stream: (call) => decodeStream(call, differences),
  };
  const { unlimited, fields } = differences;
  return lenientChat(codec, {
    ...(unlimited !== undefined && { unlimited }),
    ownFunctions: fields?.['functions'] !== undefined,
  });
}

function modelLister({ path }: Differences): NonNullable<Provider['listModels']> {
  return {
    request: () => ({ method: 'GET', path: path?.('models', '') ?? '/models' }),
    response(body) {
      // OpenAI: { data: […] }; Together: a bare list; Ollama's own and others: { models: […] }.
      const rows: unknown = isObject(body) ? (body['data'] ?? body['models']) : body;
      return (Array.isArray(rows) ? rows : []).flatMap((row: unknown) => {
        const id = isObject(row) ? (readString(row['id']) ?? readString(row['name'])) : readString(row);
        return id === undefined ? [] : [id];
      });
    },
  };
}
