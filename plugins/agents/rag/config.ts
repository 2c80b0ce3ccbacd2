/** What `agents.rag` may say. */
export const RAG_CONFIG = {
  type: 'object',
  additionalProperties: false,
  required: ['folder'],
  properties: {
    folder: {
      type: 'string',
      minLength: 1,
      description: 'The folder of md, txt, html, pdf, json, jsonl and csv files.',
    },
    embeddings: {
      type: 'string',
      minLength: 3,
      description: 'A model for embeddings, `provider/model`; search is by words alone without one.',
    },
    chunkWords: { type: 'integer', minimum: 50, maximum: 2000, default: 300, description: 'Words in a passage.' },
    watch: {
      type: 'string',
      format: 'duration',
      default: '10s',
      description: 'How often the folder is checked for changes; `0s` checks at start only.',
    },
    maxFileBytes: {
      type: 'integer',
      minimum: 1024,
      maximum: 100_000_000,
      default: 20_000_000,
      description: 'Larger files are skipped.',
    },
    maxChunks: {
      type: 'integer',
      minimum: 100,
      maximum: 500_000,
      default: 50_000,
      description: 'The most passages of the index.',
    },
  },
} as const;
