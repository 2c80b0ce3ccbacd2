import type { Schema } from '../contract/json.ts';
import { GROUP_NAMES, type Group } from './groups.ts';

/** Core's own part of the configuration's schema; `docs/config.md` and editors show the descriptions. */

const duration = (description: string, value: string): Schema => ({
  type: 'string',
  format: 'duration',
  default: value,
  description,
});

const SERVER: Schema = {
  type: 'object',
  additionalProperties: false,
  default: {},
  description: 'Where and how the gateway listens.',
  properties: {
    host: {
      type: 'string',
      minLength: 1,
      default: '127.0.0.1',
      description: 'The address to listen on; `0.0.0.0` or `::` opens it to the network.',
    },
    port: {
      type: 'integer',
      minimum: 0,
      maximum: 65_535,
      default: 8787,
      description: 'The TCP port; 0 takes any free one.',
    },
    bodyLimit: {
      type: ['string', 'integer'],
      format: 'size',
      default: '20mb',
      description: 'The largest request body, as `20mb`, `512kb` or bytes. Routes may have lower limits.',
    },
    requestTimeout: duration(
      'How long a request may take to arrive, headers and body; does not cut the answer.',
      '60s',
    ),
    drainTimeout: duration('How long open answers may go on after SIGTERM before they end in an error.', '25s'),
    drainDelay: duration('The wait between "not ready" and closing the listener, so that load balancers notice.', '0s'),
    keepAlive: duration(
      'How long an idle connection stays open; behind a load balancer more than its own idle time, such as `65s`.',
      '5s',
    ),
    sseKeepAlive: duration('The silence in a stream after which a comment is sent.', '15s'),
    maxConnections: {
      type: 'integer',
      minimum: 1,
      default: 10_000,
      description: 'Open connections of one worker; more are refused.',
    },
    cors: {
      type: 'object',
      additionalProperties: false,
      default: {},
      description: 'Which web pages may call the gateway from a browser.',
      properties: {
        origins: {
          type: 'array',
          items: { type: 'string', minLength: 1 },
          default: [],
          description: 'Allowed origins, such as `https://chat.example`; `*` allows all, none means no CORS.',
        },
      },
    },
    workers: {
      anyOf: [
        { type: 'integer', minimum: 1, maximum: 256 },
        { type: 'string', enum: ['auto'] },
      ],
      default: 1,
      description: 'Processes that share the port: a number, or `auto` for one per processor.',
    },
    trustProxy: {
      anyOf: [{ type: 'boolean' }, { type: 'integer', minimum: 1, maximum: 10 }],
      default: false,
      description: 'How many proxies stand in front and may be believed about the client address; `true` is 1.',
    },
  },
};

const LOGGING: Schema = {
  type: 'object',
  additionalProperties: false,
  default: {},
  description: 'What the gateway logs, on standard output.',
  properties: {
    level: {
      type: 'string',
      enum: ['debug', 'info', 'warn', 'error', 'silent'],
      default: 'info',
      description: 'The least important lines to write.',
    },
    format: {
      type: 'string',
      enum: ['auto', 'json', 'pretty'],
      default: 'auto',
      description: '`auto` is `pretty` on a terminal and `json` elsewhere.',
    },
  },
};

const limit = (description: string): Schema => ({ type: 'integer', minimum: 0, description });
const LIMITS = {
  rpm: limit('Requests a minute; 0 allows none.'),
  tpm: limit('Tokens a minute; 0 allows none.'),
  concurrency: limit('Calls at the same time; 0 allows none.'),
};

const PLANS: Schema = {
  type: 'object',
  default: {},
  description: 'Limits by plan name. A key, a claim of a token or an account says which plan a user has.',
  additionalProperties: {
    type: 'object',
    additionalProperties: false,
    properties: {
      ...LIMITS,
      providers: {
        type: 'object',
        description: 'Narrower limits by provider.',
        additionalProperties: { type: 'object', additionalProperties: false, properties: LIMITS },
      },
    },
  },
};

const TARGET: Schema = { type: 'string', minLength: 1, description: '`provider/model`' };

export const CORE_PROPERTIES: Readonly<Record<string, Schema>> = Object.freeze({
  $schema: { type: 'string', description: 'For editors; not read.' },
  server: SERVER,
  logging: LOGGING,
  store: {
    anyOf: [
      { type: 'string' },
      {
        type: 'object',
        description: 'The long form, with options of the store beside `url`, `adapter` or `plugin`.',
        properties: {
          url: { type: 'string', description: 'The same as the short form.' },
          adapter: { type: 'string', minLength: 1, description: 'A Keyv adapter: an npm package or a path.' },
          plugin: { type: 'string', minLength: 1, description: 'A store plugin: an npm package or a path.' },
        },
      },
    ],
    description: 'Where keys, balances and limits live: `memory:`, `sqlite:./folder`, `redis://…` or `postgres://…`.',
  },
  models: {
    type: 'object',
    default: {},
    description: 'Aliases: a name for one `provider/model`, or for a list of them that is tried in order.',
    additionalProperties: {
      anyOf: [TARGET, { type: 'array', minItems: 1, maxItems: 16, items: TARGET }],
    },
  },
  plans: PLANS,
  defaultPlan: { type: 'string', minLength: 1, description: 'The plan of users whose key and token name none.' },
  billing: {
    type: 'string',
    enum: ['off', 'track', 'enforce'],
    default: 'track',
    description: '`track` books what calls cost, `enforce` also refuses them when the balance is used up.',
  },
  plugins: {
    type: 'array',
    items: { type: 'string', minLength: 1 },
    default: [],
    description: 'Plugins that only add hooks or routes and need no options: npm packages or paths.',
  },
});

/** One sentence for each group of plugins. */
export const GROUP_DESCRIPTIONS: Readonly<Record<Group, string>> = Object.freeze({
  providers:
    'Vendors of models. The key is the path segment under `/api/core/` and the first part of `provider/model`.',
  auth: 'How callers prove who they are.',
  agents: 'The multi-agent endpoints.',
  tts: 'Vendors of speech. The key is the path segment before `/tts`.',
  policies: 'What stands around every call. The built-in ones are on unless set to `false`.',
});

/** Core's part alone, for checking: the members of the groups are each checked by their plugin's schema. */
export const CORE_SCHEMA: Schema = Object.freeze({
  type: 'object',
  additionalProperties: false,
  properties: {
    ...CORE_PROPERTIES,
    ...Object.fromEntries(GROUP_NAMES.map((group) => [group, { type: 'object' }])),
  },
});
