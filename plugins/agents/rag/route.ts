import { GatewayError, type Route, type RouteState } from '../../../core/index.ts';
import type { Retrieve } from './retrieve.ts';

/** The longest query, in characters. */
export const MAX_QUERY = 2000;

const DEFAULT_K = 5;

const QUERY = {
  type: 'object',
  additionalProperties: false,
  required: ['q'],
  properties: {
    q: { type: 'string', minLength: 1, maxLength: MAX_QUERY, description: 'What to look for.' },
    k: {
      type: 'string',
      pattern: '^([1-9]|[1-4]\\d|50)$',
      description: `How many passages, 1 to 50; ${DEFAULT_K} unless given.`,
    },
  },
};

const LOCATION = {
  type: 'object',
  description: 'Where the passage stands in its file; the fields that the format knows.',
  properties: {
    headings: { type: 'array', items: { type: 'string' } },
    page: { type: 'integer' },
    row: { type: 'integer' },
    line: { type: 'integer' },
  },
};

const RESPONSE = {
  type: 'object',
  required: ['object', 'query', 'data', 'mode', 'took_ms'],
  properties: {
    object: { const: 'list' },
    query: { type: 'string' },
    data: {
      type: 'array',
      items: {
        type: 'object',
        required: ['id', 'score', 'text', 'source', 'title', 'location'],
        properties: {
          id: { type: 'string', description: 'What to cite: the file and the number of the passage.' },
          score: { type: 'number', minimum: 0, maximum: 1, description: 'Comparable within one response.' },
          text: { type: 'string' },
          source: { type: 'string', description: 'The file, relative to the folder.' },
          title: { type: 'string' },
          location: LOCATION,
        },
      },
    },
    mode: { enum: ['hybrid', 'words'], description: 'Whether embeddings were used.' },
    took_ms: { type: 'number' },
  },
};

/** `GET /api/core/rag?q=&k=`. */
export function searchRoute(retrieve: Retrieve): Route {
  return {
    method: 'GET',
    path: '/api/core/rag',
    summary: 'Looks up the knowledge base',
    auth: ['key'],
    query: QUERY,
    responses: { 200: { description: 'Passages, best first.', schema: RESPONSE } },
    async handler(ctx) {
      const started = performance.now();
      // As the validator saw it: of a name that came twice, it has looked at the last value only.
      const { q: query = '', k = String(DEFAULT_K) } = Object.fromEntries(new URLSearchParams(ctx.querystring));
      if (query.trim() === '')
        throw new GatewayError('invalid_request', 'query "q" must not be blank.', { param: 'q' });
      const { principal, requestId, signal, onOutcome } = ctx.state as RouteState;
      const { hits, mode } = await retrieve(query, Number(k), { principal, requestId, signal, onOutcome });
      ctx.body = {
        object: 'list',
        query,
        data: hits,
        mode,
        took_ms: Math.round((performance.now() - started) * 100) / 100,
      };
    },
  };
}
