import {
  type GatewaySettings,
  OptionError,
  type PluginConfig,
  parseDuration,
  parseSize,
  parseUsd,
  type ToolBounds,
} from '../../contract/index.ts';

const NAMES = { type: 'array', maxItems: 500, items: { type: 'string', minLength: 1, maxLength: 128 } } as const;

const SERVER = {
  type: 'object',
  additionalProperties: false,
  properties: {
    url: { type: 'string', format: 'url', description: 'Address of a server with streamable HTTP.' },
    command: { type: 'string', minLength: 1, description: 'Program of a server on stdio, in place of `url`.' },
    args: { type: 'array', maxItems: 100, items: { type: 'string' }, description: 'Arguments of the program.' },
    cwd: { type: 'string', format: 'path', description: 'Folder of the program. Default: that of the configuration.' },
    env: {
      type: 'object',
      secret: true,
      additionalProperties: { type: 'string' },
      propertyNames: { pattern: '^[A-Za-z_][A-Za-z0-9_]*$' },
      description:
        'Environment of the program. It gets these variables, PATH, HOME, USER, LOGNAME, SHELL and TERM, no others.',
    },
    auth: {
      type: 'object',
      additionalProperties: false,
      properties: {
        oauth: {
          type: 'object',
          additionalProperties: false,
          required: ['issuer'],
          properties: {
            issuer: {
              type: 'string',
              format: 'url',
              description: 'Authorization server, exactly as in its metadata. Tokens are fetched at its host alone.',
            },
            clientId: { type: 'string', minLength: 1, description: 'Default: the gateway registers itself.' },
            clientSecret: { type: 'string', secret: true, minLength: 1, description: 'Secret of `clientId`.' },
            scopes: { ...NAMES, description: 'Scopes that users are asked for.' },
          },
          description: 'Users connect accounts of their own, by OAuth 2.1. Needs `publicUrl` and `tokenKey`.',
        },
        header: { type: 'string', pattern: '^[A-Za-z0-9-]{1,64}$', default: 'authorization' },
        value: { type: 'string', secret: true, minLength: 1, description: 'Value of the header, as a reference.' },
      },
      description: 'Credential for the server of `url`: one `value` for all callers, or `oauth`.',
    },
    tools: {
      type: 'object',
      additionalProperties: false,
      properties: {
        allow: { ...NAMES, description: 'Tools that are offered; a final `*` matches any end. Default: all.' },
        deny: { ...NAMES, description: 'Tools that are not offered.' },
      },
      description: 'Limits the tools of the server for all callers.',
    },
    prices: {
      type: 'object',
      additionalProperties: { type: ['number', 'string'], format: 'money' },
      description: 'US dollars of one call by tool; `*` for the others. Default: free.',
    },
    timeout: { type: 'string', format: 'duration', default: '60s', description: 'Maximum time of one call.' },
    startTimeout: { type: 'string', format: 'duration', default: '30s', description: 'Maximum time to connect.' },
    maxResult: {
      type: ['string', 'integer'],
      format: 'size',
      default: '1mb',
      description: 'Maximum size of a result.',
    },
    maxMemory: {
      type: ['string', 'integer'],
      format: 'size',
      default: '1gb',
      description: 'Memory of the program and its children; above it they are ended. Linux only.',
    },
  },
} as const;

export const CONFIG_SCHEMA = {
  type: 'object',
  additionalProperties: false,
  description: 'MCP servers, offered to callers at `/mcp`, and this gateway as one. Off without this section.',
  properties: {
    servers: {
      type: 'object',
      default: {},
      maxProperties: 100,
      propertyNames: { pattern: '^[a-z0-9][a-z0-9-]{0,30}$' },
      additionalProperties: SERVER,
      description: 'Servers by name.',
    },
    admin: {
      type: 'boolean',
      default: false,
      description: 'Offers this gateway as an MCP server to operators at `/mcp-admin`, with the rights of their keys.',
    },
    chat: {
      type: 'object',
      additionalProperties: false,
      default: {},
      properties: {
        maxTurns: {
          type: 'integer',
          minimum: 1,
          maximum: 100,
          default: 10,
          description: 'Maximum calls of the model in one chat.',
        },
        maxTime: {
          type: 'string',
          format: 'duration',
          default: '5m',
          description: 'No tool runs in a chat after this time.',
        },
        maxCost: {
          type: ['number', 'string'],
          format: 'money',
          default: 5,
          description: 'No tool runs in a chat that has cost this amount, in US dollars.',
        },
      },
      description: 'Limits of a chat that uses tools of these servers.',
    },
    publicUrl: {
      type: 'string',
      format: 'url',
      description: 'URL of this gateway for browsers. Its redirect URI is `/mcp/callback` below it.',
    },
    tokenKey: {
      type: 'string',
      secret: true,
      minLength: 32,
      description: 'Secret that encrypts the tokens of users, the same on all nodes: `openssl rand -base64 32`.',
    },
    hosts: {
      type: 'array',
      maxItems: 100,
      items: { type: 'string', minLength: 1 },
      description:
        'Host names of this gateway in the header `host`. Default: on a loopback connection those of this machine, otherwise any.',
    },
  },
} as const;

export type McpConfig = PluginConfig<typeof CONFIG_SCHEMA>;

/** One server, read. */
export interface ServerOptions {
  readonly name: string;
  /** Address of a server over HTTP; undefined for a program. */
  readonly url: string | undefined;
  readonly program: ProgramOptions | undefined;
  /** Headers with the credential. */
  readonly headers: Readonly<Record<string, string>>;
  /** Set if each user connects an account. */
  readonly oauth: OAuthOptions | undefined;
  readonly timeoutMs: number;
  readonly startTimeoutMs: number;
  readonly maxResultBytes: number;
  /** Returns whether the configuration offers a tool. */
  offers(tool: string): boolean;
  /** Nano-dollars of one call. */
  priceOf(tool: string): number;
  /** Text that changes with every option. */
  readonly identity: string;
}

export interface OAuthOptions {
  readonly issuer: string;
  readonly clientId?: string;
  readonly clientSecret?: string;
  readonly scopes?: readonly string[];
}

export interface ProgramOptions {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly maxMemoryBytes: number;
}

/** Reads the limits of chats with tools. */
export function readBounds({ chat: { maxTurns, maxTime, maxCost } }: McpConfig): ToolBounds {
  return { maxTurns, maxTimeMs: parseDuration(maxTime), maxCost: parseUsd(maxCost) };
}

/** Reads the servers. Throws an {@link OptionError} for options that exclude each other. */
export function readServers(
  { servers, admin, publicUrl, tokenKey }: McpConfig,
  baseDir: string,
): readonly ServerOptions[] {
  if (Object.keys(servers).length === 0 && !admin)
    throw new OptionError('/servers', 'has no server', 'Add one, or set "admin: true".');
  const read = Object.entries(servers).map(([name, server]) => readServer(name, server, baseDir));
  const [user] = read.filter(({ oauth }) => oauth !== undefined);
  for (const [option, value] of Object.entries({ publicUrl, tokenKey }))
    if (user && value === undefined)
      throw new OptionError(`/${option}`, `is missing, and the server "${user.name}" has "oauth"`, 'Set it.');
  return read;
}

/** Throws an {@link OptionError} for a plan whose chats would have tools of a server that does not exist. */
export function assertPlans({ servers }: McpConfig, plans: GatewaySettings['plans']): void {
  for (const [plan, { chatTools = [] }] of Object.entries(plans))
    for (const tool of chatTools) {
      const server = tool.replace(/^mcp:/, '').split('/', 1)[0] ?? '';
      if (!Object.hasOwn(servers, server))
        throw new OptionError(
          '/servers',
          `has no "${server}", which "chatTools" of the plan "${plan}" names`,
          'Add the server, or correct the plan.',
        );
    }
}

type ServerValues = McpConfig['servers'][string];

function readServer(name: string, server: ServerValues, baseDir: string): ServerOptions {
  const { url, command, args = [], env = {}, cwd = baseDir, auth, tools = {}, prices = {} } = server;
  const refuse = (option: string, problem: string, hint: string): never => {
    throw new OptionError(`/servers/${name}${option}`, problem, hint);
  };
  if ((url === undefined) === (command === undefined))
    refuse('', url === undefined ? 'has neither "url" nor "command"' : 'has "url" and "command"', 'Set one of them.');
  if (url !== undefined)
    for (const option of ['args', 'env', 'cwd'] as const)
      if (server[option] !== undefined)
        refuse(`/${option}`, 'is for a program, but the server has a "url"', 'Remove it.');
  if (command !== undefined && auth)
    refuse('/auth', 'is for a server with a "url"', 'Pass the secret of a program in "env".');
  if (auth && (auth.value === undefined) === (auth.oauth === undefined))
    refuse('/auth', auth.oauth ? 'has "value" and "oauth"' : 'has neither "value" nor "oauth"', 'Set one of them.');
  const oauth = auth?.oauth;
  if (oauth?.clientSecret !== undefined && oauth.clientId === undefined)
    refuse('/auth/oauth/clientSecret', 'is set without "clientId"', 'Set both.');
  if (url !== undefined && /[?#]|\/\/[^/]*@/.test(url))
    refuse('/url', 'must not contain a user name, ? or #', 'Set "auth" for a credential.');
  const allow = tools.allow?.map(readPattern);
  const deny = (tools.deny ?? []).map(readPattern);
  const costs = new Map(Object.entries(prices).map(([tool, usd]) => [tool, parseUsd(usd)]));
  return {
    name,
    url,
    program:
      command === undefined
        ? undefined
        : {
            command,
            args,
            cwd,
            env: env as Readonly<Record<string, string>>,
            maxMemoryBytes: parseSize(server.maxMemory),
          },
    headers: auth?.value === undefined ? {} : { [auth.header.toLowerCase()]: auth.value },
    oauth,
    timeoutMs: parseDuration(server.timeout),
    startTimeoutMs: parseDuration(server.startTimeout),
    maxResultBytes: parseSize(server.maxResult),
    offers: (tool) => (allow?.some((matches) => matches(tool)) ?? true) && !deny.some((matches) => matches(tool)),
    priceOf: (tool) => costs.get(tool) ?? costs.get('*') ?? 0,
    identity: JSON.stringify([name, server, baseDir]),
  };
}

/** Reads the name of a tool, or a prefix with `*`. */
function readPattern(pattern: string): (tool: string) => boolean {
  if (!pattern.endsWith('*')) return (tool) => tool === pattern;
  const prefix = pattern.slice(0, -1);
  return (tool) => tool.startsWith(prefix);
}
