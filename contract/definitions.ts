/**
 * Definitions that plugins may register, as data: their members and, for small unions, the values. TypeScript checks each table
 * against its type in both directions: a member or value that only one of the two has does not compile. At run time a definition is
 * checked against its table, so misspelled members of plugins in JavaScript fail at startup. `docs/decisions/definitions.md`
 * explains why these are tables and not JSON Schemas.
 */
import type { OperationTexts, UnseenTexts } from './call.ts';
import type { Command, CommandOption, Subcommand } from './command.ts';
import type { DialectDefinition, DialectModels, DialectNative, DialectRoute, PathAlias } from './dialect.ts';
import type { HookObject } from './hooks.ts';
import type { AgentDefinition, OperationDefinition, OperationFile, OperationRoute } from './operation.ts';
import type { Announcement, PersonalData, Plugin, SignInLink } from './plugin.ts';
import type {
  ChatCodec,
  Credential,
  FieldTable,
  ModelInfo,
  Offer,
  PassThroughAuth,
  PooledKey,
  Price,
  PriceRow,
  Provider,
  ProviderEffect,
  Timeouts,
} from './provider.ts';
import type { FormLimits, Route, UpgradeOptions } from './route.ts';
import type { GaugeDefinition } from './units.ts';

/** Members of an object and their shapes; others are rejected. */
export interface Members {
  readonly members: Readonly<Record<string, Shape>>;
  /** For values that plugins create by classes: unlisted fields belong to the class. */
  readonly isClass?: boolean;
}

/** Shape of a value. `any` has a schema or a check of its own, or belongs to the plugin. */
export type Shape =
  | 'any'
  | 'boolean'
  | 'function'
  | 'number'
  | 'text'
  | { readonly oneOf: Readonly<Record<string, true>> }
  | { readonly list: Shape }
  | { readonly byName: Shape }
  | { readonly either: readonly Shape[] }
  | Members;

/** Shape of a member: unions of texts list all values, functions are functions, and other types are free. */
type ShapeOf<V> = [V] extends [string]
  ? string extends V
    ? 'text'
    : { readonly oneOf: Readonly<Record<V, true>> }
  : [V] extends [boolean]
    ? 'boolean'
    : [V] extends [number]
      ? number extends V
        ? 'number'
        : Shape
      : [V] extends [(...args: never[]) => unknown]
        ? 'function'
        : Exclude<Shape, 'text' | 'boolean' | 'number' | 'function'>;

type Table<T> = { readonly [K in keyof T]-?: ShapeOf<NonNullable<T[K]>> };

const define = <T>(members: Table<T>, isClass = false): Members =>
  Object.freeze({ members: Object.freeze(members as Members['members']), isClass });

const listOf = (list: Shape): { readonly list: Shape } => ({ list });
const byName = (each: Shape): { readonly byName: Shape } => ({ byName: each });
const either = (...shapes: readonly Shape[]): { readonly either: readonly Shape[] } => ({ either: shapes });
const TEXTS = listOf('text');

const FORM = define<FormLimits>({ maxFileBytes: 'number', readsWhole: 'boolean', maxFiles: 'number' });

const ROUTE = define<Route>({
  method: { oneOf: { GET: true, POST: true, PUT: true, PATCH: true, DELETE: true } },
  path: 'text',
  summary: 'text',
  description: 'text',
  auth: either({ oneOf: { none: true } }, listOf({ oneOf: { key: true, token: true } })),
  isFallback: 'boolean',
  isIdempotent: 'boolean',
  isProbe: 'boolean',
  isEndless: 'boolean',
  permission: 'text',
  role: { oneOf: { admin: true } },
  scope: 'text',
  body: 'any',
  bodyOptional: 'boolean',
  maxBodyBytes: 'number',
  form: FORM,
  query: 'any',
  responses: byName(
    either(
      'text',
      define<{ readonly description: string; readonly schema?: object; readonly contentType?: string }>({
        description: 'text',
        schema: 'any',
        contentType: 'text',
      }),
    ),
  ),
  errorNote: 'function',
  handler: 'function',
});

const UPGRADE = define<UpgradeOptions>({ keyProtocol: 'text' });

const OPTIONS = listOf(define<CommandOption>({ flags: 'text', summary: 'text', required: 'boolean' }));
const ARGS = listOf(define<NonNullable<Subcommand['args']>[number]>({ name: 'text', summary: 'text' }));
const COMMAND = define<Command>({
  name: 'text',
  summary: 'text',
  args: ARGS,
  options: OPTIONS,
  run: 'function',
  subcommands: listOf(
    define<Subcommand>({ name: 'text', summary: 'text', args: ARGS, options: OPTIONS, run: 'function' }),
  ),
  changesStore: 'boolean',
});

const HOOK = define<HookObject<'admit'>>({
  handler: 'function',
  order: { oneOf: { pre: true, post: true } },
  operations: TEXTS,
});

const AGENT = define<AgentDefinition>(
  {
    name: 'text',
    when: 'text',
    instructions: 'text',
    model: 'text',
    temperature: 'number',
    maxTokens: 'number',
    tools: TEXTS,
    actions: 'boolean',
    memory: 'boolean',
    run: 'function',
    forget: 'function',
  },
  true,
);

const OPERATION_ROUTE = define<OperationRoute>(
  {
    path: 'text',
    otherPaths: TEXTS,
    summary: 'text',
    description: 'text',
    body: 'any',
    files: byName(
      define<OperationFile>({ field: 'text', maxBytes: 'number', maxFiles: 'number', optional: 'boolean' }),
    ),
    response: define<NonNullable<OperationRoute['response']>>({ description: 'text', schema: 'any' }),
    read: 'function',
    events: 'function',
    write: 'function',
  },
  true,
);

// Plugins add names by declaration merging; `isResponse` is a type guard, which a plain function type does not accept.
const OPERATION = define<
  Omit<OperationDefinition, 'name' | 'isResponse'> & { readonly name: string; isResponse(value: unknown): boolean }
>(
  {
    name: 'text',
    request: 'any',
    response: 'any',
    texts: define<OperationTexts>({
      request: TEXTS,
      response: TEXTS,
      unseen: define<UnseenTexts>({
        sides: listOf({ oneOf: { request: true, response: true } }),
        what: 'text',
        instead: 'text',
      }),
    }),
    routes: listOf(OPERATION_ROUTE),
    maxUsage: 'function',
    readUsage: 'function',
    estimate: 'function',
    attempt: 'function',
    isResponse: 'function',
  },
  true,
);

/** Rates by unit and other members of a price. The values are checked where prices are read. */
const PRICE_MEMBERS: Table<Price> = {
  input: 'number',
  output: 'number',
  cached_input: 'number',
  cache_write: 'number',
  cache_write_1h: 'number',
  audio_input: 'number',
  cached_audio_input: 'number',
  audio_output: 'number',
  image_input: 'number',
  cached_image_input: 'number',
  image_output: 'number',
  tiers: listOf('any'),
  service_tiers: byName('any'),
  fees: byName('number'),
  regions: byName('number'),
  characters: 'number',
  seconds: 'number',
};
const PRICE_ROW = define<PriceRow>({ ...PRICE_MEMBERS, from: 'text', until: 'text', hours: 'text' });
const PRICES = either(PRICE_ROW, listOf(PRICE_ROW));

const MODEL = define<ModelInfo>({
  id: 'text',
  base: 'text',
  kind: 'text',
  contextWindow: 'number',
  maxOutput: 'number',
  maxCharacters: 'number',
  inputModalities: TEXTS,
  outputModalities: TEXTS,
  shutdown: 'text',
  price: PRICES,
});

const CREDENTIAL = define<Credential>(
  {
    header: 'text',
    prefix: 'text',
    value: 'text',
    required: 'boolean',
    env: 'text',
    placeholder: 'text',
    headers: 'function',
    refused: 'function',
  },
  true,
);

const EFFECT = define<ProviderEffect>({
  does: { oneOf: { tool: true, model: true, price: true, stores: true, residency: true } },
  at: 'text',
  values: 'any',
  name: 'text',
  note: 'text',
});

const OFFER_MEMBERS: Table<Offer> = {
  baseUrl: 'text',
  hosts: TEXTS,
  credential: CREDENTIAL,
  keys: listOf(define<PooledKey>({ name: 'text', weight: 'number', credential: CREDENTIAL })),
  headers: byName('text'),
  timeouts: define<Timeouts>({
    connectMs: 'number',
    firstByteMs: 'number',
    firstTokenMs: 'number',
    idleMs: 'number',
    totalMs: 'number',
  }),
  transport: 'function',
  client: 'function',
  ownConnections: 'text',
  proxyRoute: 'any',
  error: 'function',
  tierHeader: 'text',
  rateLimits: 'function',
  passThroughAuth: define<PassThroughAuth>({ isToken: 'function', credential: 'any', headers: 'function' }, true),
  effects: either('function', byName(listOf(EFFECT))),
  specVersion: 'any',
  vendor: 'text',
  models: listOf(MODEL),
  addModels: listOf(MODEL),
  anyModel: 'boolean',
  prices: byName(PRICES),
  priceFactors: define<{ readonly cache_write_1h: number }>({ cache_write_1h: 'number' }),
  dearerPlace: define<{ readonly models: RegExp; readonly by: number }>({ models: 'any', by: 'number' }),
};

const OFFER = define<Offer>(OFFER_MEMBERS);

const PROVIDER = define<Provider>({
  ...OFFER_MEMBERS,
  chat: define<ChatCodec>(
    {
      request: 'function',
      response: 'function',
      stream: 'function',
      isOriginal: 'function',
      isInOrder: 'function',
      reader: 'function',
    },
    true,
  ),
  native: 'function',
  affinity: 'text',
  remoteMedia: { oneOf: { allow: true, refuse: true } },
  countFactor: 'number',
  fields: define<FieldTable>({
    fields: byName('any'),
    variants: listOf('any'),
    unknown: { oneOf: { passed: true, dropped: true } },
    extras: TEXTS,
    lacks: byName('text'),
  }),
  continues: 'function',
  refreshModelsMs: 'number',
  listModels: define<NonNullable<Provider['listModels']>>({ request: 'function', response: 'function' }, true),
});

const DIALECT = define<DialectDefinition>(
  {
    name: 'text',
    request: 'any',
    response: 'any',
    routes: listOf(
      define<DialectRoute>({
        path: 'text',
        summary: 'text',
        description: 'text',
        action: { oneOf: { chat: true, count: true } },
        native: 'text',
        request: 'any',
        response: 'any',
      }),
    ),
    prefixes: TEXTS,
    pathAliases: listOf(define<PathAlias>({ pattern: 'any', path: 'text', credentials: TEXTS, header: 'text' })),
    credentials: define<NonNullable<DialectDefinition['credentials']>>({ headers: TEXTS, query: TEXTS }),
    isSubscription: 'function',
    aliases: byName(TEXTS),
    models: define<DialectModels>({ path: 'text', header: 'text', list: 'function', one: 'function' }, true),
    demandsLimit: 'boolean',
    expand: 'function',
    servers: 'function',
    read: 'function',
    write: 'function',
    stream: 'function',
    count: 'function',
    native: define<DialectNative>(
      { headers: TEXTS, effects: byName('any'), patch: 'function', write: 'function', stream: 'function' },
      true,
    ),
    passes: { either: ['boolean', 'function'] },
    breaksOff: { either: ['boolean', 'function'] },
    remember: 'function',
    keepAlive: 'text',
    error: 'function',
  },
  true,
);

const PLUGIN = define<Plugin>({
  name: 'text',
  kind: {
    oneOf: {
      provider: true,
      auth: true,
      agent: true,
      tts: true,
      operation: true,
      dialect: true,
      store: true,
      policy: true,
      secrets: true,
    },
  },
  apiVersion: 'any',
  configSchema: 'any',
  hosts: TEXTS,
  permissions: TEXTS,
  provides: TEXTS,
  requires: TEXTS,
  processes: { oneOf: { one: true, many: true } },
  section: 'text',
  check: 'function',
  secrets: 'function',
  credentials: TEXTS,
  isCredential: 'function',
  commands: listOf(define<NonNullable<Plugin['commands']>[number]>({ name: 'text', summary: 'text' })),
  setup: 'function',
});

/** Definitions that plugins register, and the plugin itself. */
export const DEFINITIONS = Object.freeze({
  plugin: PLUGIN,
  route: ROUTE,
  upgrade: UPGRADE,
  command: COMMAND,
  hook: HOOK,
  agent: AGENT,
  operation: OPERATION,
  offer: OFFER,
  provider: PROVIDER,
  dialect: DIALECT,
  gauge: define<GaugeDefinition>({ name: 'text', help: 'text', read: 'function' }, true),
  personalData: define<PersonalData>({ name: 'text', count: 'function', erase: 'function' }, true),
  announcement: define<Announcement>({
    title: 'text',
    value: 'text',
    use: { oneOf: { key: true, 'key-command': true } },
  }),
  signInLink: define<SignInLink>({ title: 'text', makePath: 'function' }, true),
});
