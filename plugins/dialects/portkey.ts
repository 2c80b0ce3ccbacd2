import {
  type ChatRequest,
  callContext,
  type DialectDefinition,
  definePlugin,
  GatewayError,
  isObject,
  type JsonObject,
  type ListedModel,
  type PluginApi,
  parseJson,
  type RouteContext,
  readArray,
  readObject,
  readString,
  type Schema,
} from '../../contract/index.ts';
import type { EmbeddingRequest } from '../formats/kit/index.ts';
import { readChatRequest } from '../formats/openai-chat/request.ts';
import { CHAT_SHAPE } from './kit/chat-shape.ts';

type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;
type Aliases = () => readonly string[];

/** Destination of a request by its headers: a provider, or an alias in place of its model. */
interface Wanted {
  readonly provider?: string;
  readonly model: string;
  /** Settings of a config that this gateway decides itself. */
  readonly dropped: readonly string[];
  /** Fields that a config sets, whatever the caller sends. */
  readonly override: JsonObject;
}

/** Headers with a vendor's URL or credentials, which only the operator may set. */
const OF_OPERATOR =
  /^x-portkey-(?:custom-host|forward-headers|azure-|aws-|vertex-|workers-ai-|huggingface-|oracle-|snowflake-)/;

/** Config fields without effect here, because this gateway decides them itself. */
const LEFT_OUT: readonly string[] = Object.freeze(['retry', 'cache', 'request_timeout', 'metadata']);
const READ: ReadonlySet<string> = new Set([
  ...[...LEFT_OUT, 'provider', 'virtual_key', 'override_params', 'strategy', 'targets'],
  ...['strict_open_ai_compliance', 'name', 'weight'],
]);

const headerOf = (headers: Headers, name: string): string | undefined => readString([headers[name]].flat()[0]);

function refusal(message: string, param: string): GatewayError {
  return new GatewayError('invalid_request', message, { param });
}

/** Portkey writes a provider of its catalogue as `@name`, also before a model. */
function plain(name: string): string {
  return name.replace(/^@/, '');
}

/** Reads Portkey's headers. Source: https://portkey.ai/docs/api-reference/inference-api/headers */
function readWanted(headers: Headers, requested: string, aliases: Aliases): Wanted {
  for (const name of Object.keys(headers))
    if (OF_OPERATOR.test(name))
      throw refusal(
        `\`${name}\` is not supported. Remove it; the operator configures addresses and credentials of vendors.`,
        name,
      );
  const config = headerOf(headers, 'x-portkey-config');
  const named = headerOf(headers, 'x-portkey-virtual-key') ?? headerOf(headers, 'x-portkey-provider');
  if (config === undefined) return targetOf(named, requested);
  if (!config.trim().startsWith('{')) return aliasOf(config.trim(), requested, aliases());
  const value = parseJson(config);
  if (!isObject(value))
    throw refusal('`x-portkey-config` must be the name of an alias or a JSON object.', 'x-portkey-config');
  return inlineOf(value, named, requested);
}

function targetOf(named: string | undefined, requested: string, config: Partial<Wanted> = {}): Wanted {
  const model = plain(requested);
  return { dropped: [], override: {}, ...config, ...(named !== undefined && { provider: plain(named) }), model };
}

/** Alias for a config stored at Portkey, by its id, as created by `tollgate config import portkey`. */
function aliasOf(id: string, requested: string, aliases: readonly string[]): Wanted {
  const own = { dropped: [], override: {} };
  if (aliases.includes(id)) return { ...own, model: id };
  if (aliases.includes(`${id}/*`)) return { ...own, model: `${id}/${plain(requested)}` };
  throw refusal(
    `Alias "${id.slice(0, 80)}" for this Portkey config not found. Create it with \`tollgate config import portkey\` from a file of that name.`,
    'x-portkey-config',
  );
}

/** Reads a config in the header: one target. Only the operator may configure several. */
function inlineOf(given: JsonObject, named: string | undefined, requested: string): Wanted {
  const config = snakeCase(given);
  const targets = readArray(config['targets']);
  const { mode } = readObject(config['strategy']);
  const only = targets.length === 1 ? snakeCase(readObject(targets[0])) : {};
  if (targets.length > 1 || (typeof mode === 'string' && mode !== 'single' && targets.length !== 1))
    throw refusal(
      `Strategy "${String(mode ?? 'single').slice(0, 40)}" is not supported in a header. Create an alias with \`tollgate config import portkey\`.`,
      'x-portkey-config',
    );
  const all = { ...config, ...only };
  const unknown = Object.keys(all).find((field) => !READ.has(field));
  if (unknown !== undefined)
    throw refusal(
      `\`${unknown.slice(0, 60)}\` of \`x-portkey-config\` is not supported in a header. Remove it; the operator configures it.`,
      'x-portkey-config',
    );
  const override = readOverride(readObject(all['override_params']));
  const target = readString(all['virtual_key']) ?? readString(all['provider']) ?? named;
  const dropped = LEFT_OUT.filter((field) => all[field] !== undefined).map((field) => `x-portkey-config.${field}`);
  return targetOf(target, readString(override['model']) ?? requested, { dropped, override });
}

/** Fields that a config may set, with their range. */
const OVERRIDES: Readonly<Record<string, readonly [least: number, most: number]>> = Object.freeze({
  temperature: [0, 2],
  top_p: [0, 1],
  presence_penalty: [-2, 2],
  frequency_penalty: [-2, 2],
  max_tokens: [1, 2_147_483_647],
  max_completion_tokens: [1, 2_147_483_647],
});

/** Fields that a config sets in place of the caller. They are in no body, so they are checked here. */
function readOverride(given: JsonObject): JsonObject {
  for (const [name, value] of Object.entries(given)) {
    if (name === 'model' && readString(value) !== undefined) continue;
    const [least, most] = (Object.hasOwn(OVERRIDES, name) ? OVERRIDES[name] : undefined) ?? [];
    const isWhole = !name.startsWith('max_') || Number.isInteger(value);
    const fits =
      typeof value === 'number' && least !== undefined && most !== undefined && value >= least && value <= most;
    if (!fits || !isWhole)
      throw refusal(
        `\`override_params.${name.slice(0, 60)}\` of \`x-portkey-config\` is not supported or out of range. Set it in the body.`,
        'x-portkey-config',
      );
  }
  return given;
}

/** Its SDKs also write fields in camelCase. */
function snakeCase(value: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), each]),
  );
}

const openAiModel = ({ id, ownedBy, created }: ListedModel): object => ({
  id,
  object: 'model',
  created,
  owned_by: ownedBy,
});

/** Portkey's dialect: OpenAI's format, with headers for routing. */
function portkeyDialect(aliases: Aliases): DialectDefinition<ChatRequest> {
  return {
    ...CHAT_SHAPE,
    name: 'portkey',
    routes: [
      {
        path: '/portkey/v1/chat/completions',
        summary: 'Chat completion for clients of Portkey',
        description:
          'OpenAI’s format. `x-portkey-virtual-key`, `x-portkey-provider` and `x-portkey-config` select the target.',
      },
    ],
    prefixes: ['/portkey'],
    credentials: { headers: ['x-portkey-api-key'] },
    models: {
      path: '/portkey/v1/models',
      list: (models) => ({ object: 'list', data: models.map(openAiModel) }),
      one: openAiModel,
    },
    read({ body, headers }) {
      const { provider, model, dropped, override } = readWanted(headers, body.model, aliases);
      const read = readChatRequest({ ...body, ...override, model });
      const left = [...(read.dropped ?? []), ...dropped];
      return { ...read, ...(left.length > 0 && { dropped: left }), ...(provider !== undefined && { provider }) };
    },
  };
}

export default definePlugin({
  name: 'portkey',
  kind: 'dialect',
  apiVersion: 1,
  configSchema: { type: 'object', additionalProperties: false },
  setup(api) {
    const aliases = (): readonly string[] => api.models.aliases().map(([name]) => name);
    api.dialect(portkeyDialect(aliases));
    addEmbeddings(api, aliases);
  },
});

/** Fields that this dialect reads; the operation `embeddings`, which may be disabled, checks the rest. */
const EMBEDDING_REQUEST: Schema = {
  examples: [{ model: 'echo/echo-embedding', input: ['Hello there'] }],
  type: 'object',
  required: ['model', 'input'],
  properties: { model: { type: 'string', minLength: 1, maxLength: 256 }, input: { type: ['string', 'array'] } },
};

function addEmbeddings(api: PluginApi, aliases: Aliases): void {
  api.route({
    method: 'POST',
    path: '/portkey/v1/embeddings',
    auth: ['key'],
    isIdempotent: true,
    summary: 'Embeddings for clients of Portkey',
    body: EMBEDDING_REQUEST,
    responses: { 200: { description: 'One embedding for each input.', schema: { type: 'object' } } },
    async handler(ctx) {
      const { state, headers } = ctx as RouteContext;
      const sent = state.body as EmbeddingRequest;
      const { provider, model } = readWanted(headers, sent.model, aliases);
      const { response, headers: reported } = await api.models.call(
        'embeddings',
        { ...sent, model },
        {
          ...callContext(state),
          ...(provider !== undefined && { targets: [{ provider, model }] }),
        },
      );
      ctx.set(reported);
      ctx.body = response;
    },
  });
}
