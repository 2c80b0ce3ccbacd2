import type {
  Credential,
  Endpoint,
  ModelInfo,
  NativeRow,
  Provider,
  Schema,
  Timeouts,
} from '../../../contract/index.ts';
import { OptionError, parseDuration, problemsOf } from '../../../contract/index.ts';
import type { ProviderConfig } from './provider-config.ts';

const TOKEN_PRICES = Object.freeze({
  input: { type: 'number', minimum: 0 },
  output: { type: 'number', minimum: 0 },
  cached_input: { type: 'number', minimum: 0 },
  cache_write: { type: 'number', minimum: 0 },
  cache_write_1h: { type: 'number', minimum: 0 },
  audio_input: { type: 'number', minimum: 0 },
  cached_audio_input: { type: 'number', minimum: 0 },
  audio_output: { type: 'number', minimum: 0 },
  image_input: { type: 'number', minimum: 0 },
  cached_image_input: { type: 'number', minimum: 0 },
  image_output: { type: 'number', minimum: 0 },
} as const);

/** Schema of a price, and of a row of prices with a validity period. */
const PRICE = Object.freeze({
  ...TOKEN_PRICES,
  characters: { type: 'number', minimum: 0 },
  seconds: { type: 'number', minimum: 0 },
  fees: {
    type: 'object',
    description:
      'Price in US dollars for one of each unit other than tokens: `requests`, `web_search_requests`, `seconds`, …',
    additionalProperties: { type: 'number', minimum: 0, maximum: 1000 },
  },
  regions: {
    type: 'object',
    description: 'Factors for these rates, by the region that the response reports.',
    additionalProperties: { type: 'number', exclusiveMinimum: 0, maximum: 100 },
  },
  tiers: {
    type: 'array',
    maxItems: 10,
    description: 'Rates that replace those above for prompts with more tokens.',
    items: {
      type: 'object',
      additionalProperties: false,
      required: ['input_tokens_above', 'input', 'output'],
      properties: { input_tokens_above: { type: 'integer', minimum: 1 }, ...TOKEN_PRICES },
    },
  },
  service_tiers: {
    type: 'object',
    description:
      'Prices by service tier. Tiers that are not listed are not sent; if a response reports one, its price is unknown.',
    additionalProperties: {
      type: 'object',
      additionalProperties: false,
      required: ['input', 'output'],
      properties: TOKEN_PRICES,
    },
  },
} as const);

/** Validity period of a row. */
const TERM = Object.freeze({
  from: {
    type: 'string',
    anyOf: [{ format: 'date' }, { format: 'date-time' }],
    description: 'First day or instant of this row, in UTC. Default: no start.',
  },
  until: {
    type: 'string',
    anyOf: [{ format: 'date' }, { format: 'date-time' }],
    description: 'Day or instant at which this row ends (exclusive). Default: no end.',
  },
  hours: {
    type: 'string',
    maxLength: 200,
    description: 'Hours of a week in UTC at which this row applies instead: `mon-fri 01:00-04:00, daily 23:00-24:00`.',
  },
} as const);

/** Options of every provider, for a plugin's `configSchema.properties`. */
export const PROVIDER_OPTIONS = Object.freeze({
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is what a configuration holds
  apiKey: { type: 'string', secret: true, description: 'The vendor’s API key, as `${NAME}` or `${file:/path}`.' },
  apiKeys: {
    type: 'array',
    minItems: 1,
    maxItems: 32,
    description:
      'Several API keys instead of `apiKey`. Calls are spread over them; a conversation keeps its key. A key that is rejected or over its limit is skipped for a time.',
    items: {
      type: 'object',
      additionalProperties: false,
      required: ['name', 'key'],
      properties: {
        name: {
          type: 'string',
          pattern: '^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$',
          description: 'Name of the key in records, metrics and `tollgate targets`.',
        },
        // biome-ignore lint/suspicious/noTemplateCurlyInString: it is what a configuration holds
        key: { type: 'string', minLength: 1, secret: true, description: 'The key, as `${NAME}` or `${file:/path}`.' },
        weight: {
          type: 'number',
          minimum: 0,
          maximum: 1_000_000,
          description: 'Share of the calls; 0 is a backup for when the others are skipped. Default: 1.',
        },
      },
    },
  },
  baseUrl: {
    type: 'string',
    format: 'url',
    description: 'Replaces the vendor’s base URL. The key is sent only to this host.',
  },
  models: {
    type: 'array',
    items: { type: 'string', minLength: 1 },
    description: 'Replaces the model list. `"*"` accepts every name; `"+name"` adds to the built-in list.',
  },
  refreshModels: {
    type: 'string',
    format: 'duration',
    description: 'Interval at which the vendor’s model list is fetched and added, such as `24h`. Default: never.',
  },
  prices: {
    type: 'object',
    description: 'US dollars per million tokens by model prefix, or `*`. Use a list for prices with a start or end.',
    additionalProperties: {
      anyOf: [
        { type: 'object', additionalProperties: false, properties: PRICE },
        {
          type: 'array',
          minItems: 1,
          maxItems: 50,
          items: {
            type: 'object',
            additionalProperties: false,
            required: ['input', 'output'],
            properties: { ...PRICE, ...TERM },
          },
        },
      ],
    },
  },
  timeouts: {
    type: 'object',
    additionalProperties: false,
    description: 'Deadlines of one attempt.',
    properties: {
      connect: { type: 'string', format: 'duration' },
      firstByte: { type: 'string', format: 'duration' },
      firstToken: { type: 'string', format: 'duration' },
      idle: { type: 'string', format: 'duration' },
      total: { type: 'string', format: 'duration' },
    },
  },
  headers: {
    type: 'object',
    description: 'Extra request headers.',
    propertyNames: {
      pattern: "^[\\w!#$%&'*+.^`|~-]{1,100}$",
      description: 'Use letters, digits and dashes, such as x-team.',
    },
    additionalProperties: { type: 'string', format: 'header-value' },
  },
  native: {
    anyOf: [
      { type: 'boolean' },
      {
        type: 'object',
        additionalProperties: false,
        properties: { references: { enum: ['allow', 'refuse'] } },
      },
    ],
    description:
      'Passes requests in the vendor’s format through unchanged. Default: `true`. `{ references: allow }` lets requests name files and containers of your account, which all callers share.',
  },
  affinity: {
    type: 'string',
    minLength: 1,
    maxLength: 128,
    description:
      'Name shared by providers with the same vendor account. Data that the vendor encrypted for one of them, such as reasoning, is also sent to the others.',
  },
  remoteMedia: {
    enum: ['allow', 'refuse'],
    description:
      'Allows URLs of images and files in requests. `refuse` accepts data URLs only; default for servers on your own network, which would fetch URLs from there.',
  },
  countFactor: {
    type: 'number',
    exclusiveMinimum: 0,
    maximum: 10,
    description: 'Factor for estimated input tokens of this provider’s models. Default: 1.',
  },
} as const satisfies Record<string, Schema>);

export interface EndpointDefaults {
  readonly baseUrl: string;
  /** Header of the key; default: `authorization: Bearer`. */
  readonly credential?: Pick<Credential, 'header' | 'prefix'>;
  /** Environment variable that usually holds the key, for messages. */
  readonly apiKeyEnv?: string;
  /** False for vendors that also accept calls without a key. */
  readonly keyRequired?: boolean;
  readonly headers?: Readonly<Record<string, string>>;
  readonly models?: readonly ModelInfo[];
  /** For servers that are usually on the operator's own network; default: `allow`. */
  readonly remoteMedia?: 'allow' | 'refuse';
}

/** Result of {@link readProviderOptions}. */
export type ConfiguredProvider = Omit<Endpoint, 'error'> &
  Pick<
    Provider,
    'models' | 'addModels' | 'anyModel' | 'prices' | 'refreshModelsMs' | 'affinity' | 'remoteMedia' | 'countFactor'
  >;

/** Configured half of a {@link Provider} or speech vendor: URL, keys, models and timeouts. */
export function readProviderOptions(config: ProviderConfig, defaults: EndpointDefaults): ConfiguredProvider {
  const { header, prefix } = defaults.credential ?? { header: 'authorization', prefix: 'Bearer ' };
  const { affinity, countFactor, remoteMedia = defaults.remoteMedia } = config;
  const credentialOf = (value: string | undefined): Credential => ({
    header,
    ...(prefix !== undefined && { prefix }),
    value: value || undefined,
    required: defaults.keyRequired ?? true,
    ...(defaults.apiKeyEnv && { env: defaults.apiKeyEnv }),
  });
  const keys = readApiKeys(config).map(({ name, key, weight = 1 }) => ({
    name,
    weight,
    credential: credentialOf(key),
  }));
  return {
    baseUrl: (config.baseUrl ?? defaults.baseUrl).replace(/\/+$/, ''),
    credential: keys[0]?.credential ?? credentialOf(config.apiKey),
    ...(keys.length > 1 && { keys }),
    headers: { ...defaults.headers, ...config.headers },
    ...(config.timeouts && { timeouts: readTimeouts(config.timeouts) }),
    ...(config.prices && { prices: config.prices }),
    ...(config.refreshModels !== undefined && { refreshModelsMs: parseDuration(config.refreshModels) }),
    ...(affinity !== undefined && { affinity }),
    ...(remoteMedia !== undefined && { remoteMedia }),
    ...(countFactor !== undefined && { countFactor }),
    ...readModels(config.models, defaults.models),
  };
}

/**
 * Keys of a provider with several; throws an {@link OptionError} for incompatible options. Part of a plugin's
 * `check`.
 */
export function readApiKeys(
  config: Pick<ProviderConfig, 'apiKey' | 'apiKeys'>,
): NonNullable<ProviderConfig['apiKeys']> {
  const { apiKey, apiKeys = [] } = config;
  if (apiKeys.length > 0 && apiKey !== undefined)
    throw new OptionError(
      '/apiKeys',
      'cannot be combined with `apiKey`',
      'Move that key into the list and give it a name.',
    );
  const twice = apiKeys.findIndex(({ name }, at) => apiKeys.findIndex((other) => other.name === name) < at);
  if (twice >= 0)
    throw new OptionError(
      `/apiKeys/${twice}/name`,
      `repeats the name "${apiKeys[twice]?.name}"`,
      'Give each key a unique name.',
    );
  if (apiKeys.length > 0 && apiKeys.every(({ weight = 1 }) => weight === 0))
    throw new OptionError('/apiKeys', 'has no key with a weight over 0', 'Set a weight for at least one.');
  return apiKeys;
}

/** Function `check` of a plugin with the options of every provider. */
export function checkApiKeys(config: object): ReturnType<typeof problemsOf> {
  return problemsOf(() => readApiKeys(config));
}

function readTimeouts(timeouts: NonNullable<ProviderConfig['timeouts']>): Partial<Timeouts> {
  const { connect, firstByte, firstToken, idle, total } = timeouts;
  return {
    ...(connect !== undefined && { connectMs: parseDuration(connect) }),
    ...(firstByte !== undefined && { firstByteMs: parseDuration(firstByte) }),
    ...(firstToken !== undefined && { firstTokenMs: parseDuration(firstToken) }),
    ...(idle !== undefined && { idleMs: parseDuration(idle) }),
    ...(total !== undefined && { totalMs: parseDuration(total) }),
  };
}

/** `["*"]` accepts any name, `["a"]` replaces the list, `["+a"]` adds to it. */
function readModels(
  names: readonly string[] | undefined,
  builtIn: readonly ModelInfo[] | undefined,
): Pick<Provider, 'models' | 'addModels' | 'anyModel'> {
  const listed = names ?? [];
  const replacing = listed.filter((name) => name !== '*' && !name.startsWith('+')).map((id) => ({ id }));
  const adding = listed
    .filter((name) => name.startsWith('+') && name.length > 1)
    .map((name) => ({ id: name.slice(1) }));
  const models = replacing.length > 0 ? replacing : builtIn;
  return {
    ...(models && { models }),
    ...(adding.length > 0 && { addModels: adding }),
    ...(listed.includes('*') && { anyModel: true }),
  };
}

type Native = NonNullable<Provider['native']>;

/**
 * Member `native` of a provider: passthrough rows of its vendor, with the operator's option `native`. Undefined if
 * passthrough is disabled.
 */
export function nativeRows({ native = true }: Pick<ProviderConfig, 'native'>, rows: Native): Native | undefined {
  if (native === false) return undefined;
  if (native === true || native.references !== 'allow') return rows;
  return (model, stream) =>
    Object.fromEntries(
      Object.entries(rows(model, stream)).map(([dialect, row]) => [dialect, row && withReferences(row)]),
    );
}

function withReferences(row: NativeRow): NativeRow {
  return { ...row, references: true };
}
