import { randomBytes } from 'node:crypto';
import {
  type ChatCodec,
  type Credential,
  definePlugin,
  type JsonObject,
  type Log,
  type Offer,
  type Provider,
  problemsOf,
  type StreamDecoder,
} from '../../../contract/index.ts';
import type { SpeechProvider } from '../../tts/kit/index.ts';
import { PROVIDER_OPTIONS, type ProviderConfig, readApiKeys, TURN_ORDER_OPTION } from '../kit/index.ts';
import { drop, OPENAI_ONLY, openaiCompatible, pass, refuse, rename } from '../openai-compatible.ts';
import { type AiClient, createClient } from './client.ts';
import { FAILURES } from './failures.ts';
import { IMAGES } from './images.ts';
import { DROPPED_EVENT } from './models.ts';
import { speechOffer } from './speech.ts';
import { TRANSCRIPTION } from './transcription.ts';

const { native: _native, refreshModels: _refresh, affinity: _affinity, ...SHARED } = PROVIDER_OPTIONS;

/** Typed as `object`: its type is `AiConfig`. */
const CONFIG_SCHEMA: object = {
  type: 'object',
  additionalProperties: false,
  required: ['package'],
  properties: {
    ...SHARED,
    ...TURN_ORDER_OPTION,
    package: {
      type: 'string',
      minLength: 1,
      maxLength: 256,
      description:
        'Provider package of the AI SDK, such as `@ai-sdk/cohere`, or a path. Install it next to the configuration.',
    },
    factory: {
      type: 'string',
      minLength: 1,
      maxLength: 100,
      description: 'Function of the package that creates its provider. Default: its only `create…`.',
    },
    options: {
      type: 'object',
      secret: true,
      description: 'Argument of that function. `apiKey`, `apiKeys`, `baseUrl` and `fetch` are set by the gateway.',
    },
    providerOptions: {
      type: 'object',
      description: 'Options of every call, by the name that the package gives itself: `{ cohere: { thinking: … } }`.',
      additionalProperties: { type: 'object' },
    },
    hosts: {
      type: 'array',
      minItems: 1,
      maxItems: 32,
      items: { type: 'string', pattern: '^[A-Za-z0-9.-]{1,253}(?::\\d{1,5})?$' },
      description: 'Hosts that the package may call. Default: the host of the first request of each call.',
    },
    vendor: {
      type: 'string',
      pattern: '^[a-z0-9-]{1,60}$',
      description: 'Vendor whose models and prices apply, such as `cohere`. Default: from the name of the package.',
    },
    windows: {
      type: 'object',
      description: 'Context windows in tokens, by model, for models that the table does not know.',
      additionalProperties: { type: 'integer', minimum: 1, maximum: 100_000_000 },
    },
    ownTransport: {
      type: 'boolean',
      description:
        'Allows a package with connections of its own. Key pool, hosts, `send` hooks and recording then do not apply. Default: `false`.',
    },
  },
};

interface AiConfig extends ProviderConfig {
  readonly package: string;
  readonly factory?: string;
  readonly options?: JsonObject;
  readonly providerOptions?: JsonObject;
  readonly hosts?: readonly string[];
  readonly vendor?: string;
  readonly windows?: Readonly<Record<string, number>>;
  readonly ownTransport?: boolean;
}

function readConfig(config: Readonly<Record<string, unknown>>): AiConfig {
  return { ...config, package: String(config['package']) } as AiConfig;
}

/** Vendors whose name differs from their package's. */
const VENDORS: Readonly<Record<string, string>> = Object.freeze({
  'amazon-bedrock': 'bedrock',
  google: 'gemini',
  'google-vertex': 'vertex',
  moonshotai: 'moonshot',
  togetherai: 'together',
});

function vendorOf({ vendor, package: name }: AiConfig): string {
  const [, short = 'ai-sdk'] = /(?:^|node_modules\/)(?:@[^/]+\/)?([a-z0-9-]+)(?:\/|$)/.exec(name) ?? [];
  return vendor ?? VENDORS[short] ?? short;
}

/**
 * Any vendor by a provider package of the AI SDK, which is installed next to the configuration. The gateway speaks
 * OpenAI's form with this plugin's client, and the client the AI SDK's with the package.
 * Source: https://ai-sdk.dev/providers/community-providers/custom-providers
 */
export default definePlugin({
  name: 'ai-sdk',
  kind: 'provider',
  apiVersion: 1,
  configSchema: CONFIG_SCHEMA,
  check: (config, { baseDir }) =>
    problemsOf(
      () => readApiKeys(config),
      () => clientOf(readConfig(config), randomKey(), baseDir, undefined).open(),
    ),
  async setup(api, config) {
    const own = readConfig(config);
    const placeholder = randomKey();
    const ai = clientOf(own, placeholder, api.settings.baseDir, api.log);
    const offered = (offer: Provider): Provider => {
      const provider = outfit(offer, own, placeholder, ai);
      api.offer('images', { ...provider, codec: IMAGES });
      api.offer('transcription', { ...provider, codec: TRANSCRIPTION });
      speech = speechOffer(provider);
      return provider;
    };
    let speech: SpeechProvider | undefined;
    // Registered before the import, which a codec does not need.
    await openaiCompatible({ ...SPEC, outfit: offered }).setup(api, config);
    const opened = await ai.open();
    // Providers of speech are listed, so only packages with speech are.
    if (speech && opened.has('speech')) api.offer('speech', speech);
  },
});

function randomKey(): string {
  return `tollgate-key-${randomBytes(24).toString('hex')}`;
}

/** The key is a placeholder for the package; the connection replaces it. */
function clientOf(config: AiConfig, placeholder: string, baseDir: string, log: Log | undefined): AiClient {
  const { package: name, factory, options = {}, apiKey, apiKeys, baseUrl } = config;
  const { hosts = [], ownTransport = false, providerOptions = {} } = config;
  const hasKey = apiKey !== undefined || apiKeys !== undefined;
  return createClient({
    ...{ package: name, factory, baseDir, hosts, ownTransport, providerOptions, log },
    settings: {
      // Streams of `@ai-sdk/openai-compatible` have usage only when it is asked for; other packages ignore it.
      includeUsage: true,
      ...options,
      // Replicate's has another name.
      ...(hasKey && { apiKey: placeholder, apiToken: placeholder }),
      ...(baseUrl !== undefined && { baseURL: baseUrl.replace(/\/+$/, '') }),
    },
  });
}

/** Adds what only this plugin has to an offer. */
function outfit(offer: Provider, config: AiConfig, placeholder: string, { client }: AiClient): Provider {
  const { credential, keys, models, addModels, ...rest } = offer;
  // The package writes the key into a header of its choice.
  const placed = (given: Credential): Credential => ({ ...given, required: false, placeholder });
  const withWindow = ({ id, ...facts }: NonNullable<Offer['models']>[number]) => {
    const contextWindow = config.windows?.[id];
    return { id, ...facts, ...(contextWindow !== undefined && { contextWindow }) };
  };
  return {
    ...rest,
    vendor: vendorOf(config),
    client,
    ...(config.ownTransport === true && { ownConnections: config.package }),
    ...(models && { models: models.map(withWindow) }),
    ...(addModels && { addModels: addModels.map(withWindow) }),
    ...(credential && { credential: placed(credential) }),
    ...(keys && { keys: keys.map((key) => ({ ...key, credential: placed(key.credential) })) }),
    ...(config.hosts && { hosts: config.hosts }),
    ...(offer.chat && { chat: withDropped(offer.chat) }),
  };
}

/** Reads the fields that a package ignored from the event of this plugin's streams. */
function withDropped(codec: ChatCodec): ChatCodec {
  return {
    ...codec,
    stream(call): StreamDecoder {
      const decoder = codec.stream(call);
      const dropped: string[] = [];
      return {
        push(event) {
          if (event.event !== DROPPED_EVENT) return decoder.push(event);
          const names: unknown = JSON.parse(event.data);
          if (Array.isArray(names)) dropped.push(...names.map(String));
          return [];
        },
        end() {
          const ended = decoder.end();
          return dropped.length > 0 ? { ...ended, dropped } : ended;
        },
        progress: () => decoder.progress?.() ?? 'open',
      };
    },
  };
}

const SPEC = Object.freeze({
  name: 'ai-sdk',
  baseUrl: 'http://ai-sdk.invalid',
  keyRequired: false,
  listsModels: false,
  // Clients of this wire get no answers unchanged: none is the vendor's own.
  wire: {},
  streamUsage: 'always',
  replay: 'reasoning_content',
  // The package's own metadata, and thoughts without any.
  detailFormats: () => ['none'],
  roles: { developer: 'system' },
  media: ['input_audio'],
  files: { data: ['*'] },
  extras: ['top_k'],
  fields: {
    ...OPENAI_ONLY,
    logit_bias: refuse('no token biases', {}),
    logprobs: drop(undefined, false),
    max_completion_tokens: rename('max_tokens'),
    n: refuse('one choice per response', 1),
    parallel_tool_calls: drop(undefined, true),
    reasoning_effort: pass('for packages with specification v4; others do not get it, which is reported'),
    response_format: pass(
      'a package that ignores it is refused with `unsupported_model`, and the next target is tried',
    ),
    tools: pass('`strict` is reported as dropped for packages with specification v2'),
    top_logprobs: drop(),
    user: drop(),
  },
  // Encodings are made of the vectors.
  embeddings: { fields: { user: drop() } },
  lacks: { 'log probabilities': 'the AI SDK has no field for them' },
  errors: {
    codes: {
      ...FAILURES,
      ai_nosuchmodelerror: 'model_not_found',
      ai_unsupportedfunctionalityerror: 'model_not_found',
      ai_loadapikeyerror: 'authentication',
      ai_loadsettingerror: 'authentication',
      nottaken: 'model_not_found',
      unknownkind: 'model_not_found',
      unknownversion: 'upstream_error',
      own_transport: 'upstream_error',
    },
    messages: [
      { status: [400], text: /^too many tokens/i, is: 'context_length' },
      { status: [429], text: /capacity exceeded/i, is: 'overloaded' },
    ],
  },
} satisfies Parameters<typeof openaiCompatible>[0]);
