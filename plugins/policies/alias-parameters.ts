import { type Call, type ChatRequest, definePlugin, OptionError } from '../../contract/index.ts';

/** Default parameters of calls of one alias. */
interface Parameters {
  readonly system?: string;
  readonly override?: boolean;
  readonly values: readonly (readonly [field: string, value: unknown])[];
}

const PARAMETERS = {
  type: 'object',
  additionalProperties: false,
  minProperties: 1,
  properties: {
    system: {
      type: 'string',
      minLength: 1,
      maxLength: 100_000,
      description: 'The first system message, before those of the caller.',
    },
    reasoning_effort: {
      enum: ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'],
      description: 'How hard the model thinks; a model gets the nearest that it takes.',
    },
    temperature: { type: 'number', minimum: 0, maximum: 2 },
    top_p: { type: 'number', minimum: 0, maximum: 1 },
    verbosity: { enum: ['low', 'medium', 'high'], description: 'How long the response is, for models that know it.' },
    override: {
      type: 'boolean',
      description:
        'Whether these hold in place of what a caller says, too. Default `false`: where the caller says nothing.',
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
        description: 'By the name of an alias, as `models` has it, patterns such as `claude-*` too.',
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
      const wrong = [...byAlias.keys()].find((name) => !providersOf.has(name));
      if (wrong === undefined) return;
      const known = [...providersOf.keys()].slice(0, 20).join(', ');
      throw new OptionError(
        `/models/${wrong.replaceAll('~', '~0').replaceAll('/', '~1')}`,
        'is no alias of "models"',
        `Its parameters would never be used. There are: ${known || 'none'}.`,
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
    api.hook('prepare', {
      operations: ['chat', 'count'],
      handler(call, request) {
        const alias = aliasOf(call as Call<'chat'>, request as ChatRequest);
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
