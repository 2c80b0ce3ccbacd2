import {
  type ChatCodec,
  definePlugin,
  type FieldTable,
  type HttpRequest,
  OptionError,
  type Provider,
  problemsOf,
  type ResponseHeaders,
  readObject,
  type UpstreamFailure,
} from '../../contract/index.ts';
import { anthropicFailure } from '../formats/anthropic/errors.ts';
import { anthropicResponse, anthropicStream } from '../formats/anthropic/read-response.ts';
import { ANTHROPIC_EFFECTS, ANTHROPIC_FIELDS, ANTHROPIC_INNER } from '../formats/anthropic/tables.ts';
import { anthropicRequest, type BetaRules, nativeMessages } from '../formats/anthropic/write-request.ts';
import { geminiFailure } from '../formats/google/errors.ts';
import { geminiResponse } from '../formats/google/read-response.ts';
import { geminiStream } from '../formats/google/read-stream.ts';
import { GEMINI_EFFECTS, GEMINI_FIELDS, GEMINI_LENIENCY } from '../formats/google/tables.ts';
import { geminiRequest, nativeRow } from '../formats/google/write-request.ts';
import {
  GOOGLE_OPTION,
  type GoogleOptions,
  googleCredential,
  LIVE_HOSTS,
  lenientChat,
  nativeRows,
  PROVIDER_OPTIONS,
  type ProviderConfig,
  readApiKeys,
  readGoogle,
  readProviderOptions,
  readTurnOrder,
  SYSTEM_ORDER_OPTION,
} from './kit/index.ts';
import { chooseWire, type ProviderWire } from './kit/wires.ts';

/** Typed as `object`: its type is `VertexConfig`, so none needs to be inferred from the schema. */
const CONFIG_SCHEMA: object = {
  type: 'object',
  additionalProperties: false,
  properties: {
    ...PROVIDER_OPTIONS,
    ...SYSTEM_ORDER_OPTION,
    google: GOOGLE_OPTION,
    project: {
      type: 'string',
      pattern: '^[a-z0-9][a-z0-9:.-]{4,62}$',
      description: 'Google Cloud project that runs the models and is billed.',
    },
    location: {
      type: 'string',
      pattern: '^[a-z]{2,20}(-[a-z]{2,20}\\d{1,2})?$',
      default: 'global',
      description: 'Location of the models, such as `europe-west4`. `global`, `us` and `eu` cover several regions.',
    },
  },
};

interface VertexConfig extends ProviderConfig {
  readonly google?: GoogleOptions;
  readonly project?: string;
  readonly location?: string;
}

/** Gemini's table without the rules that apply only to its own API. */
const FIELDS: FieldTable = Object.freeze({
  ...GEMINI_FIELDS,
  fields: {
    ...GEMINI_FIELDS.fields,
    store: { rule: 'dropped', note: 'Vertex AI has no such field.', neutral: [false] },
  },
} satisfies FieldTable);

/**
 * Since July 1, 2026, Gemini 3 and later cost 10 % more everywhere except `global`.
 * https://cloud.google.com/vertex-ai/generative-ai/pricing
 */
const REGIONAL = Object.freeze({ models: /^gemini-(?:[3-9]|flash|pro)/, by: 1.1 });

/** Google's models are below their publisher; tuned ones (`endpoints/…`) are below the project. */
const placed = (path: string): string => (path.startsWith('/models/') ? `/publishers/google${path}` : path);

const GEMINI_CODEC: ChatCodec = Object.freeze({
  request(input, call): HttpRequest {
    const written = geminiRequest(input, call, FIELDS);
    return { ...written, path: placed(written.path) };
  },
  response: geminiResponse,
  stream: geminiStream,
} satisfies ChatCodec);

const GEMINI: Omit<ProviderWire, 'codec'> = Object.freeze({
  fields: FIELDS,
  effects: {
    ...GEMINI_EFFECTS,
    modelArmorConfig: [{ does: 'tool', name: 'modelArmorConfig', note: 'a template of the operator’s account' }],
  },
  native(model, stream) {
    const { gemini: row } = nativeRow(model, stream, {});
    if (!row) return {};
    const { count, path } = row;
    return { gemini: { ...row, path: placed(path), ...(count && { count: { ...count, path: placed(count.path) } }) } };
  },
} satisfies Omit<ProviderWire, 'codec'>);

/** Source: https://platform.claude.com/docs/en/build-with-claude/claude-on-vertex-ai */
const VERSION = 'vertex-2023-10-16';
const NO_BETAS: BetaRules = Object.freeze({ deny: [], always: [] });

const claudePath = (model: string, stream: boolean): string =>
  `/publishers/anthropic/models/${encodeURIComponent(model)}:${stream ? 'streamRawPredict' : 'rawPredict'}`;

/** Anthropic's body without the model, which is in the path. */
function claudeBody(body: object): object {
  const { model: _model, ...rest } = readObject(body);
  return { ...rest, anthropic_version: VERSION };
}

const CLAUDE_CODEC: ChatCodec = Object.freeze({
  request(input, call): HttpRequest {
    const written = anthropicRequest(input, call, NO_BETAS);
    return { ...written, path: claudePath(call.model, call.stream), body: claudeBody(written.body ?? {}) };
  },
  response: (body, call) => anthropicResponse(body, call),
  stream: (call) => anthropicStream(call),
} satisfies ChatCodec);

const CLAUDE: Omit<ProviderWire, 'codec'> = Object.freeze({
  fields: ANTHROPIC_FIELDS,
  effects: ANTHROPIC_EFFECTS,
  native(model, stream) {
    const { count: _count, headers, body: fitBody, ...row } = nativeMessages(NO_BETAS);
    return {
      messages: {
        ...row,
        path: claudePath(model, stream),
        headers: ({ 'anthropic-version': _version, ...others }) => headers?.(others) ?? {},
        body(body) {
          const fitted = fitBody?.(body) ?? { body };
          return { ...fitted, body: claudeBody(fitted.body) };
        },
      },
    };
  },
} satisfies Omit<ProviderWire, 'codec'>);

/** Gemini and Claude, each in its own format. */
function wiresOf({ turnOrder }: VertexConfig): ReturnType<typeof chooseWire> {
  const leniency = { turnOrder: readTurnOrder(turnOrder), systemApart: true };
  return chooseWire(
    { ...GEMINI, codec: lenientChat(GEMINI_CODEC, { ...leniency, ...GEMINI_LENIENCY }) },
    {
      wire: { ...CLAUDE, codec: lenientChat(CLAUDE_CODEC, { ...leniency, ...ANTHROPIC_INNER }) },
      when: 'Claude',
      example: { model: 'claude-sonnet-4-5@20250929' },
      has: (model) => model.startsWith('claude-'),
    },
  );
}

/** Errors from Claude itself are in Anthropic's format. */
function failureOf(status: number, body: unknown, headers: ResponseHeaders): UpstreamFailure {
  return (readObject(body)['type'] === 'error' ? anthropicFailure : geminiFailure)(status, body, headers);
}

/** Gemini and Claude on Google Cloud. Source: https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference */
export default definePlugin({
  name: 'vertex',
  kind: 'provider',
  apiVersion: 1,
  hosts: LIVE_HOSTS,
  configSchema: CONFIG_SCHEMA,
  check: (config) =>
    problemsOf(
      () => readAddress(config as VertexConfig),
      () => readApiKeys(config),
    ),
  setup(api, config) {
    const own = config as VertexConfig;
    const { native: rows, ...wires } = wiresOf(own);
    const native = nativeRows(own, rows);
    const provider: Provider = {
      specVersion: 1,
      vendor: 'vertex',
      priceFactors: { cache_write_1h: 2 },
      ...((own.location ?? 'global') !== 'global' && { dearerPlace: REGIONAL }),
      ...(!own.models && { anyModel: true }),
      ...readProviderOptions(own, { baseUrl: readAddress(own) }),
      ...(own.google && { credential: googleCredential(api, own.google) }),
      ...wires,
      ...(native && { native }),
      error: failureOf,
    };
    api.provider(provider);
  },
});

/** Base URL: each location has its own host. Throws for incompatible options. */
function readAddress({ google, project, location = 'global', baseUrl, apiKey, apiKeys }: VertexConfig): string {
  if (google && (apiKey ?? apiKeys) !== undefined)
    throw new OptionError('/google', 'cannot be combined with `apiKey`', 'Remove one of them.');
  if (google) readGoogle(google);
  if (baseUrl !== undefined) return baseUrl.replace(/\/+$/, '');
  if (project === undefined)
    throw new OptionError('', 'needs `project`', 'Set the project that runs the models and is billed.');
  const isMany = location === 'us' || location === 'eu';
  const host = isMany
    ? `aiplatform.${location}.rep.googleapis.com`
    : `${location === 'global' ? '' : `${location}-`}aiplatform.googleapis.com`;
  return `https://${host}/v1/projects/${encodeURIComponent(project)}/locations/${location}`;
}
