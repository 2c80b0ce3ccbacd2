/**
 * The public entry `tollgate/openai-compatible`: a provider plugin made of data, for every vendor that speaks
 * OpenAI's chat completions. The default export is the plugin `openai-compatible` itself, for any base URL.
 */
import { isPublicHost } from '../../core/index.ts';
import { openaiCompatible } from './openai-compatible/provider.ts';
import { type CompatibleRules, drop, rename } from './openai-compatible/rules.ts';

export { type Effort, nearestEffort } from './kit/index.ts';
export { classifyError, type ErrorRules, readVendorError, type VendorError } from './openai-compatible/errors.ts';
export type { FileRules } from './openai-compatible/files.ts';
export { shortId } from './openai-compatible/messages.ts';
export { OPENAI_MODELS } from './openai-compatible/openai-models.ts';
export { openaiCompatible } from './openai-compatible/provider.ts';
export { CHAT_FIELDS, refusal } from './openai-compatible/request.ts';

export {
  type CompatibleRule,
  type CompatibleRules,
  drop,
  type Emulation,
  emulate,
  mapped,
  OPENAI_ONLY,
  pass,
  RESPONSES_API,
  refuse,
  rename,
  within,
} from './openai-compatible/rules.ts';
export type { CompatibleSpec, Differences, RoleRules, Variant } from './openai-compatible/spec.ts';

/** Any server that speaks the wire: vLLM, llama.cpp, LM Studio, a relay. What it does not take, the operator says. */
export default openaiCompatible({
  name: 'openai-compatible',
  baseUrl: '',
  keyRequired: false,
  anyModel: true,
  unlimited: true,
  roles: { developer: 'system' },
  replay: 'reasoning_content',
  // Which documents a server takes is its own to say.
  files: { data: ['*'], ids: true },
  embeddings: {},
  requiredOptions: ['baseUrl'],
  options: {
    drop: { type: 'array', items: { type: 'string' }, description: 'Request fields that the server does not take.' },
    rename: {
      type: 'object',
      additionalProperties: { type: 'string', minLength: 1 },
      description: 'Request fields that the server calls otherwise, as `max_completion_tokens: max_tokens`.',
    },
    developerRole: { type: 'boolean', description: 'Sends the role `developer` as it is, not as `system`.' },
  },
  configure: ({ baseUrl = '', drop: dropped, rename: renamed, developerRole }) => ({
    ...(URL.canParse(baseUrl) && !isPublicHost(new URL(baseUrl).hostname) && { remoteMedia: 'refuse' }),
    fields: operatorRules(dropped as readonly string[] | undefined, renamed as Readonly<Record<string, string>>),
    ...(developerRole === true && { roles: {} }),
  }),
});

function operatorRules(
  dropped: readonly string[] = [],
  renamed: Readonly<Record<string, string>> = {},
): CompatibleRules {
  return {
    ...Object.fromEntries(dropped.map((field) => [field, drop('by the configuration')])),
    ...Object.fromEntries(Object.entries(renamed).map(([field, to]) => [field, rename(to, 'by the configuration')])),
  };
}
