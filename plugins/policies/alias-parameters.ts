import { type Call, type ChatRequest, definePlugin, OptionError } from '../../contract/index.ts';

/** Default parameters of calls of one alias. */
interface Parameters {
  readonly system?: string;
  readonly override?: boolean;
  readonly values: readonly (readonly [field: string, value: unknown])[];
}

/** Fields of a request that are the caller's alone. */
const NO_PARAMETERS = ['model', 'messages', 'input', 'contents', 'prompt', 'stream', 'tools'];

const PARAMETERS = {
  type: 'object',
  additionalProperties: true,
  propertyNames: { not: { enum: NO_PARAMETERS }, maxLength: 100 },
  minProperties: 1,
  maxProperties: 50,
  description:
    'Fields of requests and their values, also those of the vendor, such as `top_k`, `chat_template_kwargs` or `extra_body`.',
  properties: {
    system: {
      type: 'string',
      minLength: 1,
      maxLength: 100_000,
      description: 'System message before those of the caller.',
    },
    reasoning_effort: {
      enum: ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'],
      description: 'Reasoning effort; a model gets the nearest that it supports.',
    },
    temperature: { type: 'number', minimum: 0, maximum: 2 },
    top_p: { type: 'number', minimum: 0, maximum: 1 },
    verbosity: {
      enum: ['low', 'medium', 'high'],
      description: 'Verbosity of the response, for models that support it.',
    },
    override: {
      type: 'boolean',
      description: 'Also overrides the caller’s values. Default `false`: only if the caller sets none.',
    },
  },
} as const;

/** Adds an operator's parameters and system message to calls of an alias. */
export default definePlugin({
  name: 'alias-parameters',
  kind: 'policy',
  apiVersion: 1,
  configSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      models: {
        type: 'object',
        default: {},
        additionalProperties: PARAMETERS,
        description: 'Parameters by `provider/model` or by alias of `models`, including patterns such as `claude-*`.',
      },
    },
  },
  setup(api, config) {
    if (Object.keys(config.models).length === 0) return;
    const byAlias = new Map<string, Parameters>();
    const providersOf = new Map(
      api.models
        .aliases()
        .map(([alias, targets]) => [alias, new Set(targets.map((to) => to.slice(0, to.indexOf('/'))))]),
    );
    for (const [alias, { system, override = false, ...values }] of Object.entries(config.models))
      byAlias.set(alias, { ...(system !== undefined && { system }), override, values: Object.entries(values) });
    api.onRegistered(() => {
      const { catalog } = api.models;
      const isModel = (name: string): boolean => {
        const at = name.indexOf('/');
        return at > 0 && catalog.find(name.slice(0, at), name.slice(at + 1)) !== undefined;
      };
      const wrong = [...byAlias.keys()].find((name) => !providersOf.has(name) && !isModel(name));
      if (wrong === undefined) return;
      const known = [...providersOf.keys()].slice(0, 20).join(', ');
      throw new OptionError(
        `/models/${wrong.replaceAll('~', '~0').replaceAll('/', '~1')}`,
        'is not an alias in "models", and not a model of a provider',
        `Its parameters would never be used. Aliases: ${known || 'none'}.`,
      );
    });
    const patterns = [...providersOf.keys()]
      .filter((alias) => alias.endsWith('*'))
      .toSorted((one, other) => other.length - one.length);
    /**
     * Returns the alias of a call. A name on a provider's own path is that provider's model, whatever aliases exist.
     */
    const aliasOf = ({ targets }: Call<'chat'>, { model }: ChatRequest): string | undefined => {
      const alias = providersOf.has(model) ? model : patterns.find((each) => model.startsWith(each.slice(0, -1)));
      const providers = alias === undefined ? undefined : providersOf.get(alias);
      return targets.every(({ provider }) => providers?.has(provider)) ? alias : undefined;
    };
    /** Returns the only target of a call: the model that its name means, if it is no alias. */
    const modelOf = ({ targets: [only, more] }: Call<'chat'>): string | undefined =>
      only && !more ? `${only.provider}/${only.model}` : undefined;
    api.hook('prepare', {
      operations: ['chat', 'count'],
      handler(call, request) {
        const alias = aliasOf(call as Call<'chat'>, request as ChatRequest) ?? modelOf(call as Call<'chat'>);
        const parameters = alias === undefined ? undefined : byAlias.get(alias);
        return parameters && withParameters(request as ChatRequest, parameters);
      },
    });
  },
});

function withParameters(request: ChatRequest, { system, override, values }: Parameters): ChatRequest {
  const fields: Readonly<Record<string, unknown>> = request;
  const set = values.filter(([field]) => override === true || (fields[field] ?? undefined) === undefined);
  const messages =
    system === undefined ? request.messages : [{ role: 'system', content: system } as const, ...request.messages];
  return { ...request, messages, ...Object.fromEntries(set) };
}
