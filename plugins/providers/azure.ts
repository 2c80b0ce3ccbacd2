import { OptionError, type PluginApi } from '../../contract/index.ts';
import { ENTRA_HOSTS, ENTRA_OPTION, type EntraOptions, entraCredential, readEntra } from './kit/index.ts';
import { OPENAI_EFFECTS, OPENAI_MODELS, openaiCompatible } from './openai-compatible.ts';

/**
 * Azure OpenAI: `model` is the name of the deployment. Rules are selected by the model that the name begins with, or
 * by `deployments`. Prices are selected by the exact model, with or without a date, or by `deployments`. Sources:
 * openai SDK `azure.ts`, vercel/ai `packages/azure`.
 */
export default openaiCompatible({
  name: 'azure',
  baseUrl: '',
  apiKeyEnv: 'AZURE_OPENAI_API_KEY',
  media: ['input_audio'],
  openAiTools: true,
  credential: { header: 'api-key' },
  anyModel: true,
  variants: OPENAI_MODELS,
  effects: {
    ...OPENAI_EFFECTS,
    data_sources: [{ does: 'tool', name: 'data_sources', note: 'searches an index that the caller names' }],
  },
  stores: 'always',
  toolIds: { valid: /^[A-Za-z0-9_-]{1,40}$/, length: 40 },
  files: { data: ['application/pdf'], ids: true },
  keepsStop: true,
  streamOptions: { include_obfuscation: false },
  embeddings: {},
  // https://learn.microsoft.com/en-us/azure/foundry/reference/rest/batches-create-batch; with `apiVersion`
  // https://github.com/MicrosoftDocs/azure-docs articles/ai-services/openai/includes/batch/batch-rest.md
  operations: ['batches', 'images', 'realtime', 'transcription'],
  reasoningSummary: 'auto',
  lacks: {
    'reasoning content':
      'chat completions return only the number of reasoning tokens; requests sent by the Responses API get summaries',
  },
  responsesPath: () => '/responses',
  hosts: ENTRA_HOSTS,
  options: {
    entra: ENTRA_OPTION,
    resource: {
      type: 'string',
      pattern: '^[A-Za-z0-9][A-Za-z0-9-]{0,62}$',
      description: 'The name in `https://{resource}.openai.azure.com`.',
    },
    apiVersion: {
      type: 'string',
      pattern: '^[0-9A-Za-z.-]{1,40}$',
      description: 'Uses the older paths by deployment with this `api-version`. Default: `/openai/v1`.',
    },
    deployments: {
      type: 'object',
      additionalProperties: { type: 'string', minLength: 1 },
      description:
        'Model of each deployment whose name does not begin with the model, for example `prod: gpt-6.1-sol`. Rules and prices of that model apply.',
    },
  },
  configure: ({ apiKey, apiKeys, entra, baseUrl, resource, apiVersion, deployments }) => {
    const signIn = entra as EntraOptions | undefined;
    if (signIn && (apiKey ?? apiKeys) !== undefined)
      throw new OptionError('/entra', 'cannot be combined with `apiKey`', 'Remove one of them.');
    if (signIn) readEntra(signIn);
    const host = typeof resource === 'string' ? `https://${resource}.openai.azure.com` : undefined;
    const root = baseUrl ?? (host && `${host}/openai${apiVersion === undefined ? '/v1' : ''}`);
    if (root === undefined)
      throw new OptionError('', 'needs `resource` or `baseUrl`', 'Each Azure account has its own address.');
    const models = new Map(Object.entries((deployments ?? {}) as Readonly<Record<string, string>>));
    const modelOf = (name: string): string => models.get(name) ?? name;
    const addModels = [...models].map(([id, base]) => ({ id, base }));
    const shared = {
      baseUrl: root,
      modelOf,
      addModels,
      ...(signIn && { liveCredential: (api: PluginApi) => entraCredential(api, signIn) }),
    };
    if (typeof apiVersion !== 'string') return shared;
    const version = `?api-version=${encodeURIComponent(apiVersion)}`;
    return {
      ...shared,
      // Older versions reject the field, and store nothing unless requested.
      stores: 'asked',
      // Realtime websockets of older versions have other events.
      operations: ['batches', 'images', 'transcription'],
      responsesPath: () => `/responses${version}`,
      path: (operation, model) =>
        operation === 'models' || operation === 'batches'
          ? `/${operation}${version}`
          : `/deployments/${encodeURIComponent(model)}/${operation}${version}`,
    };
  },
});
