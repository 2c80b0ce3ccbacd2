import type { PluginConfig } from '../../../contract/index.ts';

const MODEL = {
  type: 'string',
  minLength: 1,
  maxLength: 200,
  format: 'model',
  description: 'A `provider/model` or an alias of `models`.',
} as const;
const DURATION = { type: 'string', format: 'duration' } as const;

/** MCP server of the gateway among the tools of an agent, or of a request. */
export const SERVER_TOOL = {
  type: 'object',
  additionalProperties: false,
  required: ['type', 'server'],
  properties: {
    type: { const: 'mcp' },
    server: { type: 'string', minLength: 1, maxLength: 64, description: 'Name of a server under `mcp.servers`.' },
    allowed_tools: {
      type: 'array',
      maxItems: 500,
      items: { type: 'string', minLength: 1, maxLength: 256 },
      description: 'Names of its tools. Default: all that the caller may use.',
    },
  },
} as const;

/** Configuration of the team (`agents.team`). */
export const TEAM_CONFIG = {
  type: 'object',
  additionalProperties: false,
  required: ['model'],
  properties: {
    model: { ...MODEL, description: 'Base model. Requests and agents can override it.' },
    agents: {
      type: 'object',
      description: 'Specialists to add or change; `false` removes one.',
      propertyNames: { pattern: '^[a-z0-9_-]{1,40}$', description: 'Use at most 40 of a-z, 0-9, _ and -.' },
      additionalProperties: {
        anyOf: [
          { const: false },
          {
            type: 'object',
            additionalProperties: false,
            properties: {
              when: {
                type: 'string',
                minLength: 1,
                maxLength: 400,
                description: 'Purpose of the agent; the router selects agents by it.',
              },
              instructions: {
                type: 'string',
                minLength: 1,
                maxLength: 20_000,
                description: 'System prompt of the agent.',
              },
              model: MODEL,
              temperature: { type: 'number', minimum: 0, maximum: 2 },
              maxTokens: { type: 'integer', minimum: 1 },
              tools: {
                type: 'array',
                maxItems: 8,
                items: { anyOf: [{ type: 'string' }, SERVER_TOOL] },
                description:
                  'Agents of plugins, such as `rag`, that run before it; MCP servers whose tools it may call.',
              },
              actions: { type: 'boolean', description: 'Includes the actions in its prompt. Default: true.' },
              memory: { type: 'boolean', description: 'Includes the session’s memory in its prompt. Default: true.' },
            },
          },
        ],
      },
    },
    router: {
      type: 'object',
      additionalProperties: false,
      default: {},
      description: 'Agent that selects the specialists.',
      properties: { model: MODEL, maxTokens: { type: 'integer', minimum: 1 } },
    },
    writer: {
      type: 'object',
      additionalProperties: false,
      default: {},
      description: 'Agent that writes the result.',
      properties: {
        model: MODEL,
        temperature: { type: 'number', minimum: 0, maximum: 2 },
        maxTokens: { type: 'integer', minimum: 1 },
      },
    },
    limits: {
      type: 'object',
      additionalProperties: false,
      default: {},
      description: 'Limits of one request.',
      properties: {
        maxCalls: {
          type: 'integer',
          minimum: 3,
          maximum: 100,
          default: 12,
          description: 'Maximum number of model calls.',
        },
        maxTokens: {
          type: 'integer',
          minimum: 1,
          default: 60_000,
          description: 'Token count after which no specialist starts.',
        },
        timeout: { ...DURATION, default: '120s', description: 'Timeout of the request with all its calls.' },
        agentTimeout: { ...DURATION, default: '60s', description: 'Timeout of one specialist.' },
        maxRounds: {
          type: 'integer',
          minimum: 1,
          maximum: 5,
          default: 2,
          description: 'Maximum number of consultation rounds.',
        },
        maxParallel: {
          type: 'integer',
          minimum: 1,
          maximum: 16,
          default: 4,
          description: 'Maximum number of concurrent specialists.',
        },
      },
    },
    memory: {
      type: 'object',
      additionalProperties: false,
      default: {},
      description: 'Memory of each user’s sessions.',
      properties: {
        enabled: { type: 'boolean', default: true, description: 'Enables the memory.' },
        turns: {
          type: 'integer',
          minimum: 1,
          maximum: 100,
          default: 20,
          description: 'Number of turns shown to agents.',
        },
        bytes: {
          type: 'integer',
          minimum: 1000,
          maximum: 1_000_000,
          default: 32_000,
          description: 'Maximum size of a session, in bytes.',
        },
        sessions: {
          type: 'integer',
          minimum: 1,
          maximum: 1000,
          default: 20,
          description: 'Maximum number of sessions per user.',
        },
        ttl: { ...DURATION, default: '30d', description: 'Storage time of a turn.' },
        model: { ...MODEL, description: 'Model that summarises older turns. Default: the router’s.' },
      },
    },
  },
} as const;

export type TeamConfig = PluginConfig<typeof TEAM_CONFIG>;
