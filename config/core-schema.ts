import { BUDGET } from '../contract/budget-rules.ts';
import type { BudgetRule } from '../contract/budgets.ts';
import { type FromSchema, isObject, type Schema } from '../contract/json.ts';
import { limit, NAME, PLAN_SCHEMA } from '../contract/plan-schema.ts';
import type { Plan, PluginKind } from '../contract/plugin.ts';
import type { TagRules } from '../contract/units.ts';
import { type EgressRules, egressOptionsOf } from './egress.ts';
import { type ModelRoute, ROUTE_SCHEMA } from './model-routes.ts';
import { TLS_SCHEMA, type TlsConfig } from './tls.ts';

/** `plans:`, a map of plans by name. */
const PLANS = {
  type: 'object',
  default: {},
  description: 'Limits by plan name. A key, a claim of a token or an account says which plan a user has.',
  additionalProperties: PLAN_SCHEMA,
} as const;

const duration = (description: string, value: string) =>
  ({ type: 'string', format: 'duration', default: value, description }) as const;
const size = (description: string, value: string) =>
  ({ type: ['string', 'integer'], format: 'size', default: value, description }) as const;
const choice = <const V extends readonly string[]>(description: string, values: V, value: V[number]) =>
  ({ type: 'string', enum: values, default: value, description }) as const;
const map = <const P extends Readonly<Record<string, Schema>>>(description: string, properties: P) =>
  ({ type: 'object', additionalProperties: false, default: {}, description, properties }) as const;

const SERVER = map('Where and how the gateway listens.', {
  host: {
    ...NAME,
    format: 'host',
    default: '127.0.0.1',
    description: 'The address to listen on; `0.0.0.0` or `::` opens it to the network.',
  },
  port: { ...limit('The TCP port; 0 takes any free one.'), maximum: 65_535, default: 8787 },
  basePath: {
    type: 'string',
    format: 'base-path',
    default: '/',
    description:
      'What all paths of the gateway begin with, such as `/llm`, where a proxy in front passes paths on as they came: API, console, docs, health and metrics are below it, and nothing is elsewhere.',
  },
  bodyLimit: size('The largest request body, as `32mb`, `512kb` or bytes. Routes may have lower limits.', '32mb'),
  requestTimeout: duration('How long a request may take to arrive, headers and body; does not cut the answer.', '60s'),
  drainTimeout: duration('How long open answers may go on after SIGTERM before they end in an error.', '25s'),
  drainDelay: duration(
    'The wait between "not ready" and closing the listener, so that load balancers notice; connections are taken meanwhile.',
    '2s',
  ),
  keepAlive: duration(
    'How long an idle connection stays open; behind a load balancer more than its own idle time.',
    '65s',
  ),
  sseKeepAlive: duration('The silence in a stream after which a comment is sent.', '15s'),
  maxConnections: { ...limit('Open connections of one worker; more are refused.'), minimum: 1, default: 10_000 },
  failedCredentials: {
    ...limit(
      'Wrong credentials that one address (of IPv6 the first 64 bits) may send in a minute to one worker; then they get 429. 0 does not limit them.',
    ),
    default: 30,
  },
  cors: map('Which web pages may call the gateway from a browser.', {
    origins: {
      type: 'array',
      items: { ...NAME, format: 'origin' },
      default: [],
      description: 'Allowed origins, such as `https://chat.example`; `*` allows all, none means no CORS.',
    },
  }),
  idempotency: map('What is kept for requests with an `Idempotency-Key`.', {
    keepFor: duration('How long the response to one is given again; `0s` ignores the header.', '24h'),
    maxSize: size(
      'The largest response that is kept; a request whose response is larger is refused when it is repeated.',
      '1mb',
    ),
  }),
  workers: {
    anyOf: [
      { type: 'integer', minimum: 1, maximum: 256 },
      { type: 'string', enum: ['auto'] },
    ],
    default: 1,
    description: 'Processes that share the port: a number, or `auto` for one per processor.',
  },
  watch: {
    type: 'boolean',
    default: false,
    description:
      'Whether a change of the configuration’s files reloads it, `.env` and files that it refers to included.',
  },
  trustProxy: {
    anyOf: [{ type: 'boolean' }, { type: 'integer', minimum: 1, maximum: 10 }],
    default: false,
    description: 'How many proxies stand in front and may be believed about the client address; `true` is 1.',
  },
  tls: TLS_SCHEMA,
});

const LOGGING = map('What the gateway logs, on standard output.', {
  level: choice('The least important lines to write.', ['debug', 'info', 'warn', 'error', 'silent'], 'info'),
  format: choice('`auto` is `pretty` on a terminal and `json` elsewhere.', ['auto', 'json', 'pretty'], 'auto'),
});

const STORE = {
  anyOf: [
    { type: 'string' },
    {
      type: 'object',
      description: 'The long form, with options of the store in addition to `url`, `adapter` or `plugin`.',
      properties: {
        url: { type: 'string', description: 'The same as the short form.' },
        adapter: { ...NAME, description: 'A Keyv adapter: an npm package or a path.' },
        plugin: { ...NAME, description: 'A store plugin: an npm package or a path.' },
      },
    },
  ],
  description: 'Where keys, balances and limits live',
} as const satisfies Schema;

const TARGET = { ...NAME, description: '`provider/model`' } as const;

/** The top-level keys that are core's own. */
export const CORE_PROPERTIES = Object.freeze({
  $schema: { type: 'string', description: 'For editors; not read.' },
  $import: {
    anyOf: [NAME, { type: 'array', items: NAME }],
    description: 'Files that are merged below this one, relative to it.',
  },
  server: SERVER,
  logging: LOGGING,
  store: STORE,
  models: {
    type: 'object',
    default: {},
    description:
      'Aliases: a name for one `provider/model`, for a list of them that is tried in order, or for a map with `targets` and rules. One that ends in `*` stands for all names that begin so; a `*` in its targets is the name.',
    additionalProperties: {
      anyOf: [TARGET, { type: 'array', minItems: 1, maxItems: 16, items: TARGET }, ROUTE_SCHEMA],
    },
  },
  plans: PLANS,
  defaultPlan: { ...NAME, description: 'The plan of users whose key and token name none.' },
  budgets: {
    type: 'array',
    default: [],
    maxItems: 1000,
    items: BUDGET,
    description:
      'What may be spent, by calendar period: each is shared by all calls that match what it names, or by all calls.',
  },
  billing: choice(
    '`track` books what calls cost, `enforce` also refuses them when the balance is used up.',
    ['off', 'track', 'enforce'],
    'track',
  ),
  audit: map('The log of what operators changed.', {
    keepFor: duration('How long an entry is kept.', '730d'),
  }),
  tags: {
    type: 'object',
    default: {},
    maxProperties: 50,
    description:
      'What calls may be booked under, by `x-tollgate-tag: team=search` of a request or by its key: each name with its values, or `*` for any.',
    additionalProperties: {
      anyOf: [
        { type: 'string', enum: ['*'] },
        { type: 'array', minItems: 1, maxItems: 1000, uniqueItems: true, items: NAME },
      ],
    },
  },
  plugins: {
    type: 'array',
    items: NAME,
    default: [],
    description: 'Plugins that only add hooks or routes and need no options: npm packages or paths.',
  },
} as const satisfies Readonly<Record<string, Schema>>);

/** Core's part of a configuration as its schema leaves it: every default applied, texts with units still texts. */
export type CoreValues = FromSchema<{ readonly type: 'object'; readonly properties: typeof CORE_PROPERTIES }>;

type ServerValues = CoreValues['server'];

/** `server:`, with durations in milliseconds and sizes in bytes. */
export interface ServerConfig
  extends Pick<ServerValues, 'host' | 'port' | 'maxConnections' | 'failedCredentials' | 'cors' | 'workers' | 'watch'> {
  /** What all paths begin with, such as `/llm`; empty where they do not. */
  readonly basePath: string;
  readonly bodyLimitBytes: number;
  readonly requestTimeoutMs: number;
  readonly drainTimeoutMs: number;
  readonly drainDelayMs: number;
  readonly keepAliveMs: number;
  readonly sseKeepAliveMs: number;
  readonly idempotency: { readonly keepForMs: number; readonly maxBytes: number };
  /** How many proxies in front are believed about the client's address; 0 believes no proxy. */
  readonly trustProxy: number;
  /** Undefined for plain HTTP. */
  readonly tls?: TlsConfig;
}

const names = (description: string) =>
  ({ type: 'array', minItems: 1, maxItems: 1000, items: NAME, description }) as const;

/** `when:` of a policy. */
const WHEN = {
  type: 'object',
  minProperties: 1,
  additionalProperties: false,
  description:
    'For which calls its hooks run: those that have one of each list. A name that ends in `*` stands for all that begin so. Default: all calls.',
  properties: {
    keys: names('Ids or names of keys.'),
    users: names('Users.'),
    accounts: names('Accounts that pay.'),
    plans: names('Plans.'),
    tags: names('Tags, as `team=search`.'),
    models: names('Models or aliases that requests name, or `provider/model` of one of their targets.'),
    providers: names('Providers of one of the targets.'),
    operations: names('Operations, as `chat` or `embeddings`.'),
    dialects: names('Formats in which callers write, as `chat` or `messages`.'),
  },
} as const satisfies Schema;

/** For which calls the hooks of a policy run, and whether what they say holds. */
export interface InstanceScope {
  readonly when?: FromSchema<typeof WHEN>;
  readonly mode?: 'enforce' | 'log';
  /** Whether calls go on while its `prepare` hooks look at their requests, and wait for them before their responses. */
  readonly beside?: boolean;
  /** Whether responses say what its hooks did. */
  readonly showVerdicts?: boolean;
}

/** The options of core that policies take. */
const SCOPE_OPTIONS: Readonly<Record<string, Schema>> = Object.freeze({
  when: WHEN,
  mode: {
    enum: ['enforce', 'log'],
    description:
      'Whether its hooks change and refuse (`enforce`, the default), or what they would do is only logged (`log`).',
  },
  beside: {
    type: 'boolean',
    description: 'Whether calls go on to providers while it looks at requests; responses wait for it. Default false.',
  },
  showVerdicts: {
    type: 'boolean',
    description: 'Whether responses say in `x-tollgate-verdicts` what its hooks did. Default false.',
  },
});

/** A plugin's place in the configuration. */
export interface InstanceRef {
  /** The section it stands in; `plugins` is the list of those without options. */
  readonly group: Group | 'plugins' | 'store';
  readonly kind: PluginKind;
  /** The instance's name: its key. */
  readonly name: string;
  /** What to import: a built-in name, an npm package, a path or a URL. */
  readonly plugin: string;
  /** A JSON pointer to its options. */
  readonly pointer: string;
}

/** One plugin to set up. */
export interface PluginInstance extends InstanceRef {
  /** Interpolated, validated, defaults applied, frozen; without the keys that core takes. */
  readonly config: Readonly<Record<string, unknown>>;
  /** How its hooks are bounded, where the configuration says so. */
  readonly hooks?: { readonly timeoutMs?: number; readonly onFailure?: 'open' | 'closed' };
  /** For which calls its hooks run, and whether they act. */
  readonly scope?: InstanceScope;
  /** How its connections leave; undefined for directly. */
  readonly egress?: EgressRules;
  /** False where the gateway starts without it when it cannot be set up. Default true. */
  readonly isRequired?: boolean;
}

/** The option of core that every instance in a group takes. */
const REQUIRED_OPTION: Readonly<Record<string, Schema>> = Object.freeze({
  required: {
    type: 'boolean',
    description:
      'Whether the gateway does not start when this plugin cannot be loaded or set up; with `false` it starts without it. Default true.',
  },
});

/** The options of core that an instance of these kinds takes next to its plugin's own. One of the same name that the plugin has is the plugin's. */
const HOOK_OPTIONS: Readonly<Record<string, Schema>> = Object.freeze({
  timeout: {
    type: 'string',
    format: 'duration',
    description: 'How long one of its hooks may take that gives a promise; default 30s.',
  },
  onFailure: {
    enum: ['open', 'closed'],
    description:
      'Whether a call goes on (`open`) or ends (`closed`, the default) when one of its hooks fails or takes too long.',
  },
});

/** Which options of core an instance of a plugin takes. */
export function coreOptionsOf({
  kind,
  schema,
  section,
}: Pick<PluginSchema, 'schema' | 'section'> & { readonly kind?: string }): Readonly<Record<string, Schema>> {
  if (section !== undefined) return {};
  const own = isObject(schema['properties']) ? schema['properties'] : {};
  const ofKind = {
    ...(kind !== undefined && kind !== 'store' && REQUIRED_OPTION),
    ...((kind === 'policy' || kind === 'auth') && HOOK_OPTIONS),
    ...(kind === 'policy' && SCOPE_OPTIONS),
  };
  const options = Object.entries(ofKind).filter(([name]) => !Object.hasOwn(own, name));
  return { ...Object.fromEntries(options), ...egressOptionsOf(schema) };
}

/** A configuration without problems: interpolated, validated, defaults applied, frozen. */
export interface GatewayConfig extends Pick<CoreValues, 'logging' | 'billing'> {
  /** The file's name for people. */
  readonly file: string;
  readonly isDefault: boolean;
  /** What relative paths are relative to. Absolute. */
  readonly baseDir: string;
  readonly server: ServerConfig;
  /** The store's plugin and its options. */
  readonly store: PluginInstance;
  /** Aliases; every value is a list of `provider/model`, in the order to try. */
  readonly models: Readonly<Record<string, readonly string[]>>;
  /** The same aliases, with the rules by which a target is chosen. */
  readonly routes: Readonly<Record<string, ModelRoute>>;
  readonly plans: Readonly<Record<string, Plan>>;
  readonly defaultPlan: string | undefined;
  readonly budgets: readonly BudgetRule[];
  readonly auditKeepForMs: number;
  /** What calls may be booked under: the values of each name. */
  readonly tags: TagRules;
  /** In the order of the file; built-in ones that are on without being mentioned come first. */
  readonly instances: readonly PluginInstance[];
  /** What `config print` shows: the effective configuration, secrets masked. */
  readonly printable: () => Readonly<Record<string, unknown>>;
  /** The same with its secrets: to be compared, never shown. */
  readonly plain: () => Readonly<Record<string, unknown>>;
  /** Where values came from, by JSON pointer: `env PORT`, `file /run/secrets/key`, `tollgate.config.yaml:3`; else a default. */
  readonly sources: ReadonlyMap<string, string>;
}

interface GroupRow {
  readonly kind: PluginKind;
  readonly noun: string;
  /** The built-in ones are on unless the configuration says `false`. */
  readonly isOn?: boolean;
  /** One sentence for editors. */
  readonly description: string;
}

/** The sections of a configuration that name plugins. */
export const GROUPS = Object.freeze({
  policies: {
    kind: 'policy',
    noun: 'policy',
    isOn: true,
    description:
      'What stands around every call. Built-in ones are on; `false` switches one off. Guardrails are on where they are named.',
  },
  auth: { kind: 'auth', noun: 'auth scheme', description: 'How callers prove who they are.' },
  providers: {
    kind: 'provider',
    noun: 'provider',
    description:
      'Vendors of models. The key is the path segment under `/api/core/` and the first part of `provider/model`.',
  },
  tts: {
    kind: 'tts',
    noun: 'speech vendor',
    description: 'Vendors of speech. The key is the path segment before `/tts`.',
  },
  agents: { kind: 'agent', noun: 'agent plugin', description: 'The multi-agent endpoints.' },
  operations: {
    kind: 'operation',
    noun: 'operation',
    isOn: true,
    description: 'What callers may request other than chat. Built-in ones are on; `false` switches one off.',
  },
  dialects: {
    kind: 'dialect',
    noun: 'dialect',
    isOn: true,
    description: 'The formats in which callers may write a chat. Built-in ones are on; `false` switches one off.',
  },
  secrets: { kind: 'secrets', noun: 'secret manager', description: 'Managers of secrets that references name.' },
} as const satisfies Record<string, GroupRow>);

export type Group = keyof typeof GROUPS;

export const GROUP_NAMES = Object.freeze(Object.keys(GROUPS) as Group[]);

/** The row of a group; undefined for any other section. */
export function findGroup(section: string): (GroupRow & { readonly group: Group }) | undefined {
  const group = GROUP_NAMES.find((name) => name === section);
  return group && { group, ...GROUPS[group] };
}

/** What an instance may be called: it becomes a part of URLs, log lines and metric labels. */
export const INSTANCE_NAME = /^(?!\d+$)[a-z0-9][a-z0-9._-]{0,62}$/;

/** A plugin's part of the schema. `name` is what the configuration calls the plugin: a built-in name, package or path. */
export interface PluginSchema {
  readonly kind: PluginKind;
  readonly name: string;
  readonly schema: Schema;
  /** The top-level key of the configuration that holds the plugin's options, instead of its place in the group. */
  readonly section?: string;
}
