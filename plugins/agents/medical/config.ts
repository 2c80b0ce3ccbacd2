import type { PluginConfig } from '../../../core/index.ts';

const MODEL = { type: 'string', minLength: 1, maxLength: 200, format: 'model' } as const;
const DURATION = { type: 'string', format: 'duration' } as const;

/** The medical system's part of the configuration (`agents.medical`). */
export const MEDICAL_CONFIG = {
  type: 'object',
  additionalProperties: false,
  required: ['model'],
  properties: {
    model: { ...MODEL, description: 'The base model: a `provider/model` or an alias of `models`.' },
    triageModel: { ...MODEL, description: 'Who sorts by urgency and complexity; the base model unless set.' },
    reviewModel: { ...MODEL, description: 'Who reviews every answer; the base model unless set.' },
    country: {
      type: 'string',
      pattern: '^[A-Z]{2}$',
      description: 'Whose emergency number is told when the request names no country, such as `DE`.',
    },
    crisisLine: { type: 'string', minLength: 1, maxLength: 200, description: 'A line for people in a crisis.' },
    knowledge: { type: 'boolean', description: 'Whether `rag` is asked for sources when it is on; true unless set.' },
    limits: {
      type: 'object',
      additionalProperties: false,
      description: 'What one request may take.',
      properties: {
        maxCalls: { type: 'integer', minimum: 8, maximum: 100, description: 'Model calls; 30 unless set.' },
        maxTokens: { type: 'integer', minimum: 1, description: 'Tokens after which no specialist starts; 100000.' },
        timeout: { ...DURATION, description: 'The whole request; 180s unless set.' },
        agentTimeout: { ...DURATION, description: 'One specialist; 60s unless set.' },
        maxParallel: { type: 'integer', minimum: 1, maximum: 16, description: 'Specialists at once; 4 unless set.' },
      },
    },
    memory: {
      type: 'object',
      additionalProperties: false,
      description: 'For requests that name a session; nothing is kept of others.',
      properties: {
        turns: { type: 'integer', minimum: 1, maximum: 100, description: '10 unless set.' },
        ttl: { ...DURATION, description: 'A turn is forgotten after this time; 1d unless set.' },
      },
    },
  },
} as const;

export type MedicalConfig = PluginConfig<typeof MEDICAL_CONFIG>;
