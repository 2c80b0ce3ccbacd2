import { URGENCIES } from './case.ts';

const TEXTS = { type: 'array', items: { type: 'string' } } as const;
const URGENCY = { type: 'string', enum: URGENCIES } as const;
const FLAGS = {
  type: 'array',
  items: {
    type: 'object',
    required: ['id', 'sign', 'advice'],
    properties: {
      id: { type: 'string' },
      sign: { type: 'string' },
      advice: { type: 'string' },
      source: { type: 'object', properties: { title: { type: 'string' }, url: { type: 'string' } } },
    },
  },
} as const;

/** The answer's schema, for OpenAPI. */
export const MEDICAL_RESPONSE = {
  type: 'object',
  required: ['content', 'usage', 'model', 'trace', 'rules_version', 'matched'],
  properties: {
    content: {
      type: 'object',
      description: 'As shown, unless a `response_model` was sent.',
      properties: {
        urgency: URGENCY,
        summary: { type: 'string', description: 'Begins with the urgent-care notice when there is a danger sign.' },
        considerations: TEXTS,
        recommended_next_steps: TEXTS,
        questions: TEXTS,
        red_flags: FLAGS,
        sources: { type: 'array', items: { type: 'object' } },
        disclaimer: { type: 'string' },
      },
    },
    safety: {
      type: 'object',
      description: 'Beside the content of a `response_model`.',
      properties: { urgency: URGENCY, notice: { type: 'string' }, red_flags: FLAGS, disclaimer: { type: 'string' } },
    },
    usage: {
      type: 'object',
      properties: {
        prompt_tokens: { type: 'integer' },
        completion_tokens: { type: 'integer' },
        total_tokens: { type: 'integer' },
      },
    },
    model: { type: 'string' },
    trace: { type: 'array', items: { type: 'object' } },
    rules_version: { type: 'string', description: 'Which rules and lexicons looked at the message.' },
    matched: { ...TEXTS, description: 'The ids of the rules that found a danger sign.' },
  },
} as const;
