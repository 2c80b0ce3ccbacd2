import { OPENAI_MODELS, openaiCompatible } from './openai-compatible.ts';

/**
 * Azure OpenAI: `model` is the deployment's name, which should begin with the model's for rules and prices to be found.
 * Sources: openai SDK `azure.ts`, vercel/ai `packages/azure`.
 */
export default openaiCompatible({
  name: 'azure',
  baseUrl: '',
  apiKeyEnv: 'AZURE_OPENAI_API_KEY',
  credential: { header: 'api-key' },
  anyModel: true,
  variants: OPENAI_MODELS,
  toolIds: { valid: /^.{1,40}$/s, length: 40 },
  keepsStop: true,
  streamOptions: { include_obfuscation: false },
  embeddings: {},
  options: {
    resource: {
      type: 'string',
      pattern: '^[A-Za-z0-9][A-Za-z0-9-]{0,62}$',
      description: 'The name in `https://{resource}.openai.azure.com`.',
    },
    apiVersion: {
      type: 'string',
      pattern: '^[0-9A-Za-z.-]{1,40}$',
      description: 'Uses the older addresses by deployment with this `api-version`; without it, `/openai/v1`.',
    },
  },
  configure: ({ baseUrl, resource, apiVersion }) => {
    const host = typeof resource === 'string' ? `https://${resource}.openai.azure.com` : undefined;
    const root = baseUrl ?? (host && `${host}/openai${apiVersion === undefined ? '/v1' : ''}`);
    if (root === undefined) throw new TypeError('the provider azure needs `resource` or `baseUrl`');
    if (typeof apiVersion !== 'string') return { baseUrl: root };
    const version = `?api-version=${encodeURIComponent(apiVersion)}`;
    return {
      baseUrl: root,
      path: (operation, model) =>
        operation === 'models'
          ? `/models${version}`
          : `/deployments/${encodeURIComponent(model)}/${operation}${version}`,
    };
  },
});
