import {
  type DialectDefinition,
  definePlugin,
  GatewayError,
  isObject,
  type JsonObject,
  type PluginApi,
  type Principal,
  type RouteContext,
  readArray,
  readString,
  type Target,
} from '../../contract/index.ts';
import { geminiError } from '../formats/google/errors.ts';
import {
  INTERACTION_REQUEST,
  type InteractionBody,
  readInteraction,
  type Step,
  stepsOf,
} from '../formats/google/read-interactions.ts';
import { INTERACTION, streamInteraction, writeInteraction } from '../formats/google/write-interactions.ts';
import { SSE_KEEP_ALIVE } from '../formats/google/write-stream.ts';
import { KEPT_ID, keepOptions, type StoreMode, storageKey, storedForMs } from './kit/keep.ts';
import { modelNamesSchema, readModelNames } from './kit/model-names.ts';

/** Newer clients of Google's omit `beta`. */
const PATHS = Object.freeze(['/v1beta/interactions', '/v1/interactions']);

/** Google's Interactions API. Source: https://ai.google.dev/api/interactions-api */
const interactions: DialectDefinition<InteractionBody> = {
  name: 'interactions',
  request: INTERACTION_REQUEST,
  response: INTERACTION,
  routes: PATHS.map((path) => ({
    path,
    summary: 'Interaction in Google’s format; the model is `provider/model` or an alias',
    description:
      'Returns server-sent events if `stream` is true. The interaction is stored for requests that continue it; `store: false` disables this.',
  })),
  prefixes: PATHS,
  credentials: { headers: ['x-goog-api-key'], query: ['key'] },
  isSubscription: (credential) => credential.startsWith('ya29.'),
  keepAlive: SSE_KEEP_ALIVE,
  read: readInteraction,
  write: writeInteraction,
  stream: streamInteraction,
  error: geminiError,
};

/** Interaction with its complete input. */
interface StoredInteraction {
  readonly input: readonly Step[];
  readonly interaction: JsonObject;
  /** Target that generated it. */
  readonly target?: Target;
}

/** Stores interactions for requests that continue them, by account and user, within the storage of their account. */
class InteractionStore {
  readonly #api: Pick<PluginApi, 'stores' | 'log'>;
  readonly #mode: StoreMode;
  readonly #ttlMs: number;

  constructor(api: Pick<PluginApi, 'stores' | 'log'>, mode: StoreMode, retention: string) {
    this.#api = api;
    this.#mode = mode;
    this.#ttlMs = storedForMs(mode, retention);
  }

  /** Puts the earlier conversation before the request that continues it. */
  readonly expand: NonNullable<DialectDefinition<InteractionBody>['expand']> = async (input, caller) => {
    const { body } = input;
    const id = readString(body['previous_interaction_id']);
    if (id === undefined || id === '') return input;
    if (this.#mode === 'off') throw storeIsOff();
    const before = await this.get(caller, id);
    if (!before) throw notStored(id);
    const steps = [...before.input, ...(readArray(before.interaction['steps']) as readonly Step[])];
    const expanded = { ...input, body: { ...body, input: [...steps, ...stepsOf(body['input'])] } };
    return before.target ? { ...expanded, follows: before.target } : expanded;
  };

  readonly remember: NonNullable<DialectDefinition<InteractionBody>['remember']> = async (
    interaction,
    { input: { body }, responder },
    caller,
  ) => {
    if (this.#mode === 'off' || body['store'] === false || !isObject(interaction)) return;
    const id = readString(interaction['id']);
    if (id === undefined || !KEPT_ID.test(id) || interaction['status'] === 'failed') return;
    const target = responder?.();
    const stored: StoredInteraction = { input: stepsOf(body['input']), interaction, ...(target && { target }) };
    const { stores, log } = this.#api;
    try {
      if (!(await stores.stored.set(caller.account, keyOf(caller, id), stored, this.#ttlMs)))
        log.info({ account: caller.account }, 'interaction is too large to store; it cannot be continued');
    } catch (err) {
      // The interaction is complete and paid for, so the caller gets it. The next request reports that it is not
      // stored.
      log.warn({ err }, 'interaction could not be stored; it cannot be continued');
    }
  };

  async get(caller: Principal, id: string): Promise<StoredInteraction | undefined> {
    return KEPT_ID.test(id) ? this.#api.stores.stored.get<StoredInteraction>(keyOf(caller, id)) : undefined;
  }

  /** Returns true if it existed. */
  async remove(caller: Principal, id: string): Promise<boolean> {
    return KEPT_ID.test(id) && (await this.#api.stores.stored.delete(caller.account, keyOf(caller, id)));
  }
}

function keyOf(caller: Principal, id: string): string {
  return storageKey('interactions', caller, id);
}

function notStored(id: string): GatewayError {
  return new GatewayError(
    'previous_response_not_found',
    `Interaction${KEPT_ID.test(id) ? ` \`${id}\`` : ''} not found: it does not exist or has expired. Send all steps as \`input\`.`,
    { param: 'previous_interaction_id' },
  );
}

function storeIsOff(): GatewayError {
  return new GatewayError(
    'invalid_request',
    '`previous_interaction_id` is not supported, since this gateway does not store interactions. Send all steps as `input`; operators can enable it with `dialects: { interactions: { store: short } }`.',
    { param: 'previous_interaction_id' },
  );
}

function notFound(): GatewayError {
  return new GatewayError(
    'not_found',
    'Interaction not found. It was deleted, has expired or belongs to another user.',
  );
}

/** Routes by which callers read and delete their stored interactions. */
function addStoreRoutes(api: Pick<PluginApi, 'route'>, store: InteractionStore, path: string): void {
  const find = async ({ state, params }: RouteContext): Promise<StoredInteraction> => {
    const stored = await store.get(state.principal, params['id'] ?? '');
    if (!stored) throw notFound();
    return stored;
  };
  api.route({
    method: 'GET',
    path,
    auth: ['key'],
    summary: 'Get a stored interaction of the caller',
    description: 'Returns the whole interaction; `include_input=true` adds all preceding steps.',
    query: {
      type: 'object',
      properties: {
        include_input: { enum: ['true', 'false'] },
        stream: { type: 'string', maxLength: 8 },
        last_event_id: { type: 'string', maxLength: 256 },
      },
    },
    responses: { 200: { description: 'The interaction.', schema: INTERACTION } },
    async handler(ctx) {
      const query = new URLSearchParams(ctx.querystring);
      if (query.get('stream') === 'true')
        throw new GatewayError('invalid_request', 'A stored interaction cannot be streamed. Remove `stream`.', {
          param: 'stream',
        });
      const { interaction, input } = await find(ctx as RouteContext);
      ctx.body = query.get('include_input') === 'true' ? { ...interaction, input } : interaction;
    },
  });
  api.route({
    method: 'DELETE',
    path,
    auth: ['key'],
    summary: 'Delete an interaction of the caller',
    responses: { 200: { description: 'Deleted.', schema: { type: 'object' } } },
    async handler(ctx) {
      if (!(await store.remove(ctx.state.principal, ctx.params['id'] ?? ''))) throw notFound();
      ctx.body = {};
    },
  });
  api.route({
    method: 'POST',
    path: `${path}/cancel`,
    auth: ['key'],
    summary: 'Not supported: interactions do not run in the background',
    description: 'Interactions with `background` are rejected. Others end when their request is closed.',
    responses: { 200: { description: 'Never.', schema: INTERACTION } },
    async handler(ctx) {
      await find(ctx as RouteContext);
      throw new GatewayError(
        'invalid_request',
        'Only interactions with `background: true` can be cancelled. Close the request to stop this one.',
      );
    },
  });
}

export default definePlugin({
  name: 'interactions',
  kind: 'dialect',
  apiVersion: 1,
  configSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      ...keepOptions('an interaction', 'interactions'),
      models: modelNamesSchema('gemini-3.8-flash'),
    },
  },
  setup(api, config) {
    const { store: mode, retention } = config;
    const store = new InteractionStore(api, mode, retention);
    const { expand, remember } = store;
    api.dialect({ ...interactions, aliases: readModelNames(config), expand, remember });
    if (mode !== 'off') for (const path of PATHS) addStoreRoutes(api, store, `${path}/:id`);
  },
});
