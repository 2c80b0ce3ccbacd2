import {
  definePlugin,
  type HttpRequest,
  isPublicHost,
  type ModelInfo,
  OptionError,
  type PassThroughAuth,
  type Provider,
  problemsOf,
  readArray,
  readObject,
} from '../../contract/index.ts';
import { anthropicFailure, anthropicRateLimits } from '../formats/anthropic/errors.ts';
import { anthropicResponse, anthropicStream } from '../formats/anthropic/read-response.ts';
import {
  ANTHROPIC_EFFECTS,
  ANTHROPIC_FIELDS,
  ANTHROPIC_INNER,
  anthropicTraits,
  isClaudeToken,
} from '../formats/anthropic/tables.ts';
import { anthropicRequest, type BetaRules, betaNames, nativeMessages } from '../formats/anthropic/write-request.ts';
import {
  AWS_HOSTS,
  AWS_OPTION,
  type AwsOptions,
  awsCredential,
  ENTRA_HOSTS,
  ENTRA_OPTION,
  type EntraOptions,
  entraCredential,
  lenientChat,
  listedModel,
  nativeRows,
  PROVIDER_OPTIONS,
  type ProviderConfig,
  readApiKeys,
  readAws,
  readEntra,
  readProviderOptions,
  readTurnOrder,
  SYSTEM_ORDER_OPTION,
} from './kit/index.ts';

/**
 * API version: 2023-06-01 accepts everything that 2026-10-21 accepts, plus sampling fields for the models that
 * support them. See docs/decisions/anthropic-version.md.
 */
const API_VERSION = '2023-06-01';

const OWN_HOST = 'api.anthropic.com';

/** Typed as `object`: its type is `ProviderConfig`, so none needs to be inferred from the schema. */
const CONFIG_SCHEMA: object = {
  type: 'object',
  additionalProperties: false,
  properties: {
    ...PROVIDER_OPTIONS,
    ...SYSTEM_ORDER_OPTION,
    aws: AWS_OPTION,
    entra: ENTRA_OPTION,
    passThroughAuth: {
      type: 'boolean',
      description:
        'Sends the token of a caller’s own Claude subscription (`sk-ant-oat…`) to Anthropic instead of your key. Budgets in money do not count these calls. Default: off.',
    },
    betas: {
      type: 'object',
      additionalProperties: false,
      description: 'Beta features of the vendor that callers may request.',
      properties: {
        deny: {
          type: 'array',
          items: { type: 'string', minLength: 1 },
          description: 'Betas that are rejected with status 400.',
        },
      },
    },
  },
};

/** Batches cost half: https://platform.claude.com/docs/en/build-with-claude/batch-processing */
const BATCH_FACTOR = 0.5;

/** Anthropic Claude over its Messages API. Source: https://platform.claude.com/docs/en/api/messages */
export default definePlugin({
  name: 'anthropic',
  kind: 'provider',
  apiVersion: 1,
  hosts: [...new Set([...AWS_HOSTS, ...ENTRA_HOSTS])],
  configSchema: CONFIG_SCHEMA,
  check: (config) =>
    problemsOf(
      () => readSigning(config),
      () => readApiKeys(config),
    ),
  setup(api, config) {
    const { aws, entra } = readSigning(config);
    const options = readProviderOptions(config as ProviderConfig, {
      baseUrl: `https://${OWN_HOST}`,
      credential: { header: 'x-api-key' },
      apiKeyEnv: 'ANTHROPIC_API_KEY',
      headers: { 'anthropic-version': API_VERSION },
    });
    const rules = readBetaRules(config, options.headers);
    const passThroughAuth = readPassThrough(config, options.baseUrl, rules);
    const rows = { messages: nativeMessages(rules) };
    const native = nativeRows(config as ProviderConfig, () => rows);
    const provider: Provider = {
      specVersion: 1,
      vendor: 'anthropic',
      priceFactors: { cache_write_1h: 2 },
      ...options,
      ...(aws && { credential: awsCredential(api, aws, options.baseUrl) }),
      ...(entra && { credential: entraCredential(api, entra) }),
      // Paths begin with /v1, whether or not the operator's base URL includes it.
      baseUrl: options.baseUrl.replace(/\/v1$/, ''),
      chat: lenientChat(
        {
          request: (input, call) => anthropicRequest(input, call, rules),
          response: (body, call) => anthropicResponse(body, call),
          stream: (call) => anthropicStream(call),
        },
        {
          turnOrder: readTurnOrder((config as ProviderConfig).turnOrder),
          systemApart: true,
          ...ANTHROPIC_INNER,
        },
      ),
      ...(native && { native }),
      ...(passThroughAuth && { passThroughAuth }),
      fields: ANTHROPIC_FIELDS,
      effects: ANTHROPIC_EFFECTS,
      // Claude 4.6 and later respond 400 to a final assistant turn.
      continues: (model) => (/claude-/i.test(model) && anthropicTraits(model).prefill ? { trims: true } : undefined),
      listModels: { request: listRequest, response: listedModels },
      error: anthropicFailure,
      rateLimits: anthropicRateLimits,
    };
    api.provider(provider);
    // A batch uses one key, the operator's. The effects of its requests were checked one by one.
    const { keys: _, passThroughAuth: __, effects: ___, ...one } = provider;
    if (native && !aws)
      api.offer('batches', {
        ...one,
        wire: 'anthropic',
        factor: BATCH_FACTOR,
        paths: { messages: '/v1/messages' },
        response: (_dialect, body, call) => anthropicResponse(body, call),
      });
  },
});

/** Credentials in place of a key for Claude on AWS, which requires signed requests, or on Microsoft Foundry. */
interface SignIn {
  readonly aws?: AwsOptions;
  readonly entra?: EntraOptions;
}

function readSigning(config: unknown): SignIn {
  const { aws, entra, apiKey, apiKeys } = config as ProviderConfig & SignIn;
  const key = apiKey ?? apiKeys;
  if (aws) readAws(aws, key);
  if (!entra) return { ...(aws && { aws }) };
  const other = aws ? '`aws`' : key === undefined ? undefined : 'an `apiKey`';
  if (other !== undefined) throw new OptionError('/entra', `cannot be combined with ${other}`, 'Remove one of them.');
  readEntra(entra);
  return { entra };
}

function readBetaRules(config: unknown, headers: Readonly<Record<string, string>> | undefined): BetaRules {
  const deny = readArray(readObject(readObject(config)['betas'])['deny']).map(String);
  const [, always] = Object.entries(headers ?? {}).find(([name]) => name.toLowerCase() === 'anthropic-beta') ?? [];
  return { deny, always: betaNames(always) };
}

/** Beta that the vendor requires with a subscription token. */
const TOKEN_BETA = 'oauth-2025-04-20';

/** Client headers by which the vendor bills a subscription. */
const CLIENT_HEADERS = Object.freeze(['user-agent', 'x-app']);

/**
 * Passes the token of a caller's own subscription on, if the operator allows it. Another company's server must not
 * receive it.
 */
function readPassThrough(config: unknown, baseUrl: string, { always }: BetaRules): PassThroughAuth | undefined {
  if (readObject(config)['passThroughAuth'] !== true) return undefined;
  const { hostname } = new URL(baseUrl);
  if (hostname !== OWN_HOST && isPublicHost(hostname))
    throw new OptionError(
      'passThroughAuth',
      'needs the vendor’s own `baseUrl`',
      `Callers’ tokens are sent only to ${OWN_HOST} or to a proxy on your own network.`,
    );
  return {
    isToken: isClaudeToken,
    credential: { header: 'authorization', prefix: 'Bearer ' },
    headers(sent, caller) {
      const betas = [...new Set([...betaNames(sent['anthropic-beta']), ...always, TOKEN_BETA])];
      const reported = CLIENT_HEADERS.flatMap((name) => {
        const value = caller[name];
        return typeof value === 'string' ? [[name, value.slice(0, MAX_REPORTED)]] : [];
      });
      return { ...Object.fromEntries(reported), ...sent, 'anthropic-beta': betas.join(',') };
    },
  };
}

const MAX_REPORTED = 200;

/** Requests the largest possible page. */
function listRequest(): HttpRequest {
  return { method: 'GET', path: '/v1/models?limit=1000' };
}

function listedModels(body: unknown): readonly ModelInfo[] {
  return readArray(readObject(body)['data']).flatMap((model) => {
    const { id, max_input_tokens: contextWindow, max_tokens: maxOutput } = readObject(model);
    return typeof id === 'string' ? [listedModel(id, { contextWindow, maxOutput })] : [];
  });
}
