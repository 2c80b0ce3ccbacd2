import {
  type ChatCodec,
  definePlugin,
  OptionError,
  type Provider,
  type ProviderEffects,
  problemsOf,
} from '../../contract/index.ts';
import { ANTHROPIC_EFFECTS, ANTHROPIC_FIELDS, ANTHROPIC_INNER } from '../formats/anthropic/tables.ts';
import { CLAUDE as CLAUDE_CODEC, isClaude } from '../formats/bedrock/claude.ts';
import { createFrameReader } from '../formats/bedrock/event-stream.ts';
import { bedrockFailure, converseResponse, converseStream } from '../formats/bedrock/read-response.ts';
import { CONVERSE_FIELDS } from '../formats/bedrock/tables.ts';
import { converseRequest } from '../formats/bedrock/write-request.ts';
import {
  AWS_HOSTS,
  AWS_OPTION,
  type AwsOptions,
  awsCredential,
  lenientChat,
  PROVIDER_OPTIONS,
  type ProviderConfig,
  readApiKeys,
  readAws,
  readProviderOptions,
  readTurnOrder,
  SYSTEM_ORDER_OPTION,
} from './kit/index.ts';
import { chooseWire, type ProviderWire } from './kit/wires.ts';

const REGION = '^[a-z]{2,4}(-[a-z]{1,12}){1,3}-\\d{1,2}$';

/** Typed as `object`: its type is `BedrockConfig`, so none needs to be inferred from the schema. */
const CONFIG_SCHEMA: object = {
  type: 'object',
  additionalProperties: false,
  properties: {
    ...PROVIDER_OPTIONS,
    ...SYSTEM_ORDER_OPTION,
    aws: AWS_OPTION,
    region: {
      type: 'string',
      pattern: REGION,
      description:
        'Region of the models, such as `eu-central-1`. Requests are sent only to its host. Default: the region of `aws`.',
    },
  },
};

interface BedrockConfig extends ProviderConfig {
  readonly aws?: AwsOptions;
  readonly region?: string;
}

/**
 * Model names that refer to other resources. Source: `modelId` of
 * https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html
 */
const MODEL_EFFECTS: ProviderEffects = Object.freeze({
  model: [
    {
      does: 'tool',
      name: 'preset',
      values: /:prompt\//,
      note: 'a prompt of the operator’s account, with its model and tools',
    },
    { does: 'model', name: '*', values: /:(?:default-)?prompt-router\//, note: 'the vendor chooses' },
  ],
} satisfies ProviderEffects);

const CONVERSE_CODEC: ChatCodec = Object.freeze({
  request: converseRequest,
  response: converseResponse,
  stream: converseStream,
  reader: createFrameReader,
});

/** Claude uses Anthropic's format, all other models Converse. Bedrock has no passthrough for client formats. */
function wiresOf({ turnOrder }: BedrockConfig): Pick<Provider, 'chat' | 'effects' | 'fields'> {
  const leniency = { turnOrder: readTurnOrder(turnOrder), systemApart: true };
  const converse: ProviderWire = {
    codec: lenientChat(CONVERSE_CODEC, {
      ...leniency,
      lacksFields: ANTHROPIC_INNER.lacksFields ?? [],
      innerFields: [],
    }),
    fields: CONVERSE_FIELDS,
    effects: MODEL_EFFECTS,
  };
  const claude: ProviderWire = {
    codec: lenientChat(CLAUDE_CODEC, { ...leniency, ...ANTHROPIC_INNER }),
    fields: ANTHROPIC_FIELDS,
    effects: { ...MODEL_EFFECTS, ...ANTHROPIC_EFFECTS },
  };
  const { native: _, ...wires } = chooseWire(converse, {
    wire: claude,
    when: 'Claude, in its own format',
    example: { model: 'anthropic.claude-sonnet-4-5-20250929-v1:0' },
    has: isClaude,
  });
  return wires;
}

/**
 * Models of Amazon Bedrock, with a Bedrock API key or signed requests. Source:
 * https://docs.aws.amazon.com/bedrock/latest/APIReference
 */
export default definePlugin({
  name: 'bedrock',
  kind: 'provider',
  apiVersion: 1,
  hosts: AWS_HOSTS,
  configSchema: CONFIG_SCHEMA,
  check: (config) =>
    problemsOf(
      () => readAddress(config as BedrockConfig),
      () => readApiKeys(config),
    ),
  setup(api, config) {
    const own = config as BedrockConfig;
    const baseUrl = readAddress(own);
    api.provider({
      specVersion: 1,
      vendor: 'bedrock',
      priceFactors: { cache_write_1h: 2 },
      ...(!own.models && { anyModel: true }),
      ...readProviderOptions(own, { baseUrl, apiKeyEnv: 'AWS_BEARER_TOKEN_BEDROCK', remoteMedia: 'refuse' }),
      ...(own.aws && { credential: awsCredential(api, own.aws, baseUrl) }),
      ...wiresOf(own),
      error: bedrockFailure,
    });
  },
});

/** Base URL: the one with signing, or the region's host. Throws for incompatible options. */
function readAddress({ region, aws, baseUrl, apiKey, apiKeys }: BedrockConfig): string {
  if (aws) readAws(aws, apiKey ?? apiKeys);
  if (region !== undefined && aws?.region !== undefined && aws.region !== region)
    throw new OptionError(
      '/region',
      `is not the \`region\` of \`aws\``,
      'A signature is valid for one region. Remove one of the two.',
    );
  const called = region ?? aws?.region;
  if (baseUrl !== undefined) return baseUrl.replace(/\/+$/, '');
  if (called === undefined) throw new OptionError('', 'needs `region`', 'Each region of Bedrock has its own address.');
  return `https://bedrock-runtime.${called}.amazonaws.com${called.startsWith('cn-') ? '.cn' : ''}`;
}
