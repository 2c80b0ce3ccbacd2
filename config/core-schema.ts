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
  description: 'Limits by plan name. A key, a claim of a token or an account sets the plan of a user.',
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

const SERVER = map('Server settings: address, port, limits and TLS.', {
  host: {
    ...NAME,
    format: 'host',
    default: '127.0.0.1',
    description: 'Listen address; `0.0.0.0` or `::` opens it to the network.',
  },
  port: { ...limit('TCP port; 0 selects a free one.'), maximum: 65_535, default: 8787 },
  basePath: {
    type: 'string',
    format: 'base-path',
    default: '/',
    description:
      'Prefix of all paths, such as `/llm`, for a proxy that forwards paths unchanged. API, console, docs, health and metrics are served only below it.',
  },
  bodyLimit: size(
    'Maximum size of a request body, such as `32mb`, `512kb` or bytes. Routes may have lower limits.',
    '32mb',
  ),
  requestTimeout: duration(
    'Timeout for receiving a request (headers and body). It does not limit the response.',
    '60s',
  ),
  drainTimeout: duration('Time for running responses after SIGTERM before they end with an error.', '25s'),
  drainDelay: duration(
    'Delay between "not ready" and closing the listener, for load balancers. Connections are still accepted.',
    '2s',
  ),
  keepAlive: duration(
    'Idle timeout of connections. Use more than the idle timeout of a load balancer in front.',
    '65s',
  ),
  sseKeepAlive: duration('Idle time in a stream after which a keep-alive comment is sent.', '15s'),
  maxConnections: {
    ...limit('Maximum number of open connections per worker; more are rejected.'),
    minimum: 1,
    default: 10_000,
  },
  failedCredentials: {
    ...limit(
      'Limit of invalid credentials per client address (IPv6: first 64 bits), worker and minute; then 429. 0 disables the limit.',
    ),
    default: 30,
  },
  cors: map('CORS: web pages that may call the gateway from a browser.', {
    origins: {
      type: 'array',
      items: { ...NAME, format: 'origin' },
      default: [],
      description:
        'Allowed origins, such as `https://chat.example`; `*` allows all. Without origins, CORS is disabled.',
    },
  }),
  idempotency: map('Stored responses for requests with an `Idempotency-Key`.', {
    keepFor: duration('Time for which a stored response is returned again; `0s` ignores the header.', '24h'),
    maxSize: size('Maximum size of a stored response. A repeated request with a larger response is rejected.', '1mb'),
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
    description: 'Reloads the configuration when its files change, including `.env` and referenced files.',
  },
  trustProxy: {
    anyOf: [{ type: 'boolean' }, { type: 'integer', minimum: 1, maximum: 10 }],
    default: false,
    description: 'Number of trusted proxies in front, for the client address; `true` is 1.',
  },
  console: map('Changes of this file by operators.', {
    write: {
      type: 'boolean',
      default: false,
      description:
        'Writes drafts of the console and the API to this file: aliases, model lists, plans, budgets and guardrails. Needs the scope `config:write`.',
    },
  }),
  tls: TLS_SCHEMA,
});

const LOGGING = map('Log on standard output.', {
  level: choice('Lowest level to write.', ['debug', 'info', 'warn', 'error', 'silent'], 'info'),
  format: choice('`auto` is `pretty` on a terminal, otherwise `json`.', ['auto', 'json', 'pretty'], 'auto'),
});

const STORE = {
  anyOf: [
    { type: 'string' },
    {
      type: 'object',
      description: 'Long form, with options of the store in addition to `url`, `adapter` or `plugin`.',
      properties: {
        url: { type: 'string', description: 'Same as the short form.' },
        adapter: { ...NAME, description: 'A Keyv adapter: an npm package or a path.' },
        plugin: { ...NAME, description: 'A store plugin: an npm package or a path.' },
      },
    },
  ],
  description: 'Store of keys, balances and limits',
} as const satisfies Schema;

const TARGET = { ...NAME, description: '`provider/model`' } as const;

/** Top-level keys of core. */
export const CORE_PROPERTIES = Object.freeze({
  $schema: { type: 'string', description: 'For editors; ignored.' },
  $import: {
    anyOf: [NAME, { type: 'array', items: NAME }],
    description: 'Base files, relative to this one, which overrides their values.',
  },
  server: SERVER,
  logging: LOGGING,
  store: STORE,
  models: {
    type: 'object',
    default: {},
    description:
      'Aliases: a name for one `provider/model`, a list of them, or a map with `targets` and rules. A trailing `*` matches a prefix; in targets, `*` is the name.',
    additionalProperties: {
      anyOf: [TARGET, { type: 'array', minItems: 1, maxItems: 16, items: TARGET }, ROUTE_SCHEMA],
    },
  },
  plans: PLANS,
  defaultPlan: { ...NAME, description: 'Plan of users without a plan in their key or token.' },
  budgets: {
    type: 'array',
    default: [],
    maxItems: 1000,
    items: BUDGET,
    description:
      'Budgets by calendar period. Each budget is shared by all calls that match its conditions, or by all calls.',
  },
  billing: choice(
    '`track` records the cost of calls; `enforce` also rejects calls without sufficient balance.',
    ['off', 'track', 'enforce'],
    'track',
  ),
  audit: map('Audit log of changes by operators.', {
    keepFor: duration('Storage time of an entry.', '730d'),
  }),
  tags: {
    type: 'object',
    default: {},
    maxProperties: 50,
    description:
      'Allowed tags, set by `x-tollgate-tag: team=search` of a request or by its key: each name with its values, or `*` for any.',
    additionalProperties: {
      anyOf: [
        { type: 'string', enum: ['*'] },
        { type: 'array', minItems: 1, maxItems: 1000, uniqueItems: true, items: NAME },
      ],
    },
  },
  endUsers: map('End users of an application that calls with a key of its own.', {
    header: {
      type: 'string',
      pattern: '^[A-Za-z0-9][A-Za-z0-9-]{0,99}$',
      description:
        'Header with the end user, such as `X-OpenWebUI-User-Email`. Without it, the fields `user`, `safety_identifier` and `metadata.user_id` name the end user.',
    },
    report: {
      type: 'boolean',
      default: false,
      description:
        'Counts usage by end user, for reports and budgets. Each end user adds rows to the sums of each hour.',
    },
  }),
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
  extends Pick<
    ServerValues,
    'host' | 'port' | 'maxConnections' | 'failedCredentials' | 'cors' | 'workers' | 'watch' | 'console'
  > {
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
    'Calls for which its hooks run: those that match one entry of each list. A trailing `*` matches all names with that prefix. Default: all calls.',
  properties: {
    keys: names('Ids or names of API keys.'),
    users: names('Users.'),
    accounts: names('Charged accounts.'),
    plans: names('Plans.'),
    tags: names('Tags, such as `team=search`.'),
    models: names('Requested models or aliases, or `provider/model` of one of their targets.'),
    providers: names('Providers of one of the targets.'),
    operations: names('Operations, such as `chat` or `embeddings`.'),
    dialects: names('Request formats, such as `chat` or `messages`.'),
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
      '`enforce` lets hooks change and reject calls; `log` only logs what they would do. Default: `enforce`.',
  },
  beside: {
    type: 'boolean',
    description: 'Runs request hooks in parallel to the provider call; the response waits for them. Default: false.',
  },
  showVerdicts: {
    type: 'boolean',
    description: 'Reports actions of its hooks in the response header `x-tollgate-verdicts`. Default: false.',
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
      'Stops the start if this plugin cannot be loaded or set up; with `false`, the gateway starts without it. Default: true.',
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
    description: 'Timeout of an asynchronous hook. Default: 30s.',
  },
  onFailure: {
    enum: ['open', 'closed'],
    description:
      'Continues (`open`) or rejects (`closed`) a call if one of its hooks fails or times out. Default: `closed`.',
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
  readonly endUsers: { readonly header: string | undefined; readonly report: boolean };
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
      'Policies for every call. Built-in ones are on by default; `false` disables one. Guardrails are off by default.',
  },
  auth: { kind: 'auth', noun: 'auth scheme', description: 'Authentication of callers.' },
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
    description: 'Operations other than chat. Built-in ones are on by default; `false` disables one.',
  },
  dialects: {
    kind: 'dialect',
    noun: 'dialect',
    isOn: true,
    description: 'Request formats of chats. Built-in ones are on by default; `false` disables one.',
  },
  secrets: { kind: 'secrets', noun: 'secret manager', description: 'Secret managers for references.' },
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
