import type { PluginConfig } from '../../../contract/index.ts';

const MODEL = {
  type: 'string',
  minLength: 1,
  maxLength: 200,
  format: 'model',
  description: 'A `provider/model` or an alias of `models`.',
} as const;
const DURATION = { type: 'string', format: 'duration' } as const;

/** Configuration of the team (`agents.team`). */
export const TEAM_CONFIG = {
  type: 'object',
  additionalProperties: false,
  required: ['model'],
  properties: {
    model: { ...MODEL, description: 'The base model, used where the request and an agent name none.' },
    agents: {
      type: 'object',
      description: 'Specialists to add or change; `false` removes one.',
      propertyNames: { pattern: '^[a-z0-9_-]{1,40}$', description: 'Use a-z, 0-9, _ and -, at most 40.' },
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
                description: 'What it is for; the router chooses by this line.',
              },
              instructions: { type: 'string', minLength: 1, maxLength: 20_000, description: 'Its system prompt.' },
              model: MODEL,
              temperature: { type: 'number', minimum: 0, maximum: 2 },
              maxTokens: { type: 'integer', minimum: 1 },
              tools: {
                type: 'array',
                maxItems: 8,
                items: { type: 'string' },
                description: 'Agents written in code, such as `rag`, that are run for it first.',
              },
              actions: { type: 'boolean', description: 'Whether it is shown the actions; true by default.' },
              memory: { type: 'boolean', description: 'Whether it is shown the session’s memory; true by default.' },
            },
          },
        ],
      },
    },
    router: {
      type: 'object',
      additionalProperties: false,
      default: {},
      description: 'Who chooses the specialists.',
      properties: { model: MODEL, maxTokens: { type: 'integer', minimum: 1 } },
    },
    writer: {
      type: 'object',
      additionalProperties: false,
      default: {},
      description: 'Who writes the result.',
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
      description: 'What one request may take.',
      properties: {
        maxCalls: { type: 'integer', minimum: 3, maximum: 100, default: 12, description: 'Model calls.' },
        maxTokens: {
          type: 'integer',
          minimum: 1,
          default: 60_000,
          description: 'Tokens after which no specialist starts.',
        },
        timeout: { ...DURATION, default: '120s', description: 'Of the request, all calls together.' },
        agentTimeout: { ...DURATION, default: '60s', description: 'One specialist.' },
        maxRounds: { type: 'integer', minimum: 1, maximum: 5, default: 2, description: 'Rounds of consultation.' },
        maxParallel: { type: 'integer', minimum: 1, maximum: 16, default: 4, description: 'Specialists at once.' },
      },
    },
    memory: {
      type: 'object',
      additionalProperties: false,
      default: {},
      description: 'What is remembered of each user’s sessions.',
      properties: {
        enabled: { type: 'boolean', default: true, description: 'Whether anything is.' },
        turns: { type: 'integer', minimum: 1, maximum: 100, default: 20, description: 'Turns shown to agents.' },
        bytes: {
          type: 'integer',
          minimum: 1000,
          maximum: 1_000_000,
          default: 32_000,
          description: 'Bytes of a session.',
        },
        sessions: { type: 'integer', minimum: 1, maximum: 1000, default: 20, description: 'Sessions of one user.' },
        ttl: { ...DURATION, default: '30d', description: 'A turn is forgotten after this time.' },
        model: { ...MODEL, description: 'Which model summarises older turns; default: the router’s.' },
      },
    },
  },
} as const;

export type TeamConfig = PluginConfig<typeof TEAM_CONFIG>;
