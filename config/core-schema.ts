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

/** Top-level keys of core. */
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

/** Core's part of a configuration after validation: defaults applied, texts with units not yet parsed. */
export type CoreValues = FromSchema<{ readonly type: 'object'; readonly properties: typeof CORE_PROPERTIES }>;

type ServerValues = CoreValues['server'];

/** `server:`, with durations in milliseconds and sizes in bytes. */
export interface ServerConfig
  extends Pick<ServerValues, 'host' | 'port' | 'maxConnections' | 'failedCredentials' | 'cors' | 'workers' | 'watch'> {
  /** Prefix of all paths, such as `/llm`; empty for none. */
  readonly basePath: string;
  readonly bodyLimitBytes: number;
  readonly requestTimeoutMs: number;
  readonly drainTimeoutMs: number;
  readonly drainDelayMs: number;
  readonly keepAliveMs: number;
  readonly sseKeepAliveMs: number;
  readonly idempotency: { readonly keepForMs: number; readonly maxBytes: number };
  /** Number of trusted proxies in front of the gateway for the client's address; 0 trusts none. */
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

/** Calls for which a policy's hooks run, and whether the hooks may act. */
export interface InstanceScope {
  readonly when?: FromSchema<typeof WHEN>;
  readonly mode?: 'enforce' | 'log';
  /** True if calls continue while `prepare` hooks inspect their requests; the response waits for the hooks. */
  readonly beside?: boolean;
  /** True if responses report the actions of its hooks. */
  readonly showVerdicts?: boolean;
}

/** Core options for policies. */
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

/** Position of a plugin in the configuration. */
export interface InstanceRef {
  /** Section of the plugin; `plugins` is the list of plugins without options. */
  readonly group: Group | 'plugins' | 'store';
  readonly kind: PluginKind;
  /** Name of the instance: its key. */
  readonly name: string;
  /** Import target: a built-in name, an npm package, a path or a URL. */
  readonly plugin: string;
  /** JSON pointer to its options. */
  readonly pointer: string;
}

/** Plugin instance to set up. */
export interface PluginInstance extends InstanceRef {
  /** Options: interpolated, validated, defaults applied, frozen; without core's own. */
  readonly config: Readonly<Record<string, unknown>>;
  /** Configured time limit and failure mode of its hooks. */
  readonly hooks?: { readonly timeoutMs?: number; readonly onFailure?: 'open' | 'closed' };
  /** Calls for which its hooks run, and whether they act. */
  readonly scope?: InstanceScope;
  /** Rules for outbound connections; undefined for direct ones. */
  readonly egress?: EgressRules;
  /** False if the gateway starts without the instance when its set-up fails. Default true. */
  readonly isRequired?: boolean;
}

/** Core option of every instance in a group. */
const REQUIRED_OPTION: Readonly<Record<string, Schema>> = Object.freeze({
  required: {
    type: 'boolean',
    description:
      'Whether the gateway does not start when this plugin cannot be loaded or set up; with `false` it starts without it. Default true.',
  },
});

/**
 * Core options of instances of these kinds, in addition to the plugin's own. A plugin's option of the same name takes
 * precedence.
 */
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

/** Core options that an instance of a plugin accepts. */
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

/** Configuration without problems: interpolated, validated, defaults applied, frozen. */
export interface GatewayConfig extends Pick<CoreValues, 'logging' | 'billing'> {
  /** Display name of the file. */
  readonly file: string;
  readonly isDefault: boolean;
  /** Base of relative paths. Absolute. */
  readonly baseDir: string;
  readonly server: ServerConfig;
  /** The store's plugin and its options. */
  readonly store: PluginInstance;
  /** Aliases; every value lists `provider/model` in the order of attempts. */
  readonly models: Readonly<Record<string, readonly string[]>>;
  /** The same aliases, with the rules to choose a target. */
  readonly routes: Readonly<Record<string, ModelRoute>>;
  readonly plans: Readonly<Record<string, Plan>>;
  readonly defaultPlan: string | undefined;
  readonly budgets: readonly BudgetRule[];
  readonly auditKeepForMs: number;
  /** Tags for cost allocation: the allowed values of each name. */
  readonly tags: TagRules;
  /** In the order of the file; built-in plugins that are on by default come first. */
  readonly instances: readonly PluginInstance[];
  /** Effective configuration for `config print`, secrets masked. */
  readonly printable: () => Readonly<Record<string, unknown>>;
  /** Effective configuration with secrets, for comparison; never shown. */
  readonly plain: () => Readonly<Record<string, unknown>>;
  /**
   * Sources of values by JSON pointer: `env PORT`, `file /run/secrets/key`, `tollgate.config.yaml:3`; else a default.
   */
  readonly sources: ReadonlyMap<string, string>;
}

interface GroupRow {
  readonly kind: PluginKind;
  readonly noun: string;
  /** True if built-in plugins are on by default; the configuration turns them off with `false`. */
  readonly isOn?: boolean;
  /** Sentence shown by editors. */
  readonly description: string;
}

/** Sections of a configuration that contain plugins. */
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

/** Returns the row of a group; undefined for any other section. */
export function findGroup(section: string): (GroupRow & { readonly group: Group }) | undefined {
  const group = GROUP_NAMES.find((name) => name === section);
  return group && { group, ...GROUPS[group] };
}

/** Valid instance names: they become part of URLs, log lines and metric labels. */
export const INSTANCE_NAME = /^(?!\d+$)[a-z0-9][a-z0-9._-]{0,62}$/;

/** Schema of a plugin. `name` is its name in the configuration: a built-in name, package or path. */
export interface PluginSchema {
  readonly kind: PluginKind;
  readonly name: string;
  readonly schema: Schema;
  /** Top-level key that holds the plugin's options in place of its key in the group. */
  readonly section?: string;
}
