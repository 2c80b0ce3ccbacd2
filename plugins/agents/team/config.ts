import type { PluginConfig } from '../../../core/index.ts';

const MODEL = {
  type: 'string',
  minLength: 1,
  maxLength: 200,
  description: 'A `provider/model` or an alias of `models`.',
} as const;
const DURATION = { type: 'string', format: 'duration' } as const;

/** The team's part of the configuration (`agents.team`). */
export const TEAM_CONFIG = {
  type: 'object',
  additionalProperties: false,
  required: ['model'],
  properties: {
    model: { ...MODEL, description: 'The base model, used where the request and an agent name none.' },
    agents: {
      type: 'object',
      description: 'Specialists to add or change; `false` removes one.',
      propertyNames: { pattern: '^[a-z0-9_-]{1,40}$' },
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
              actions: { type: 'boolean', description: 'Whether it is shown the actions; true unless told.' },
              memory: { type: 'boolean', description: 'Whether it is shown the session’s memory; true unless told.' },
            },
          },
        ],
      },
    },
    router: {
      type: 'object',
      additionalProperties: false,
      description: 'Who chooses the specialists.',
      properties: { model: MODEL, maxTokens: { type: 'integer', minimum: 1 } },
    },
    writer: {
      type: 'object',
      additionalProperties: false,
      description: 'Who writes the final answer.',
      properties: {
        model: MODEL,
        temperature: { type: 'number', minimum: 0, maximum: 2 },
        maxTokens: { type: 'integer', minimum: 1 },
      },
    },
    limits: {
      type: 'object',
      additionalProperties: false,
      description: 'What one request may take.',
      properties: {
        maxCalls: { type: 'integer', minimum: 3, maximum: 100, description: 'Model calls; 12 unless told.' },
        maxTokens: { type: 'integer', minimum: 1, description: 'Tokens after which no specialist starts; 60000.' },
        timeout: { ...DURATION, description: 'The whole request; 120s unless told.' },
        agentTimeout: { ...DURATION, description: 'One specialist; 60s unless told.' },
        maxRounds: { type: 'integer', minimum: 1, maximum: 5, description: 'Rounds of consultation; 2 unless told.' },
        maxParallel: { type: 'integer', minimum: 1, maximum: 16, description: 'Specialists at once; 4 unless told.' },
      },
    },
    memory: {
      type: 'object',
      additionalProperties: false,
      description: 'What is remembered of each user’s sessions.',
      properties: {
        enabled: { type: 'boolean', description: 'True unless told.' },
        turns: { type: 'integer', minimum: 1, maximum: 100, description: 'Turns shown to agents; 20 unless told.' },
        bytes: { type: 'integer', minimum: 1000, maximum: 1_000_000, description: 'Bytes of a session; 32000.' },
        sessions: { type: 'integer', minimum: 1, maximum: 1000, description: 'Sessions of one user; 20 unless told.' },
        ttl: { ...DURATION, description: 'A turn is forgotten after this time; 30d unless told.' },
        model: { ...MODEL, description: 'Who summarises older turns; the router’s model unless told.' },
      },
    },
  },
} as const;

export type TeamConfig = PluginConfig<typeof TEAM_CONFIG>;
