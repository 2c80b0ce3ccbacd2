const listOf = <const D extends string>(description: D) =>
  ({
    type: 'array',
    minItems: 1,
    maxItems: 1000,
    uniqueItems: true,
    items: { type: 'string', minLength: 1, maxLength: 200 },
    description,
  }) as const;

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
    access: {
      type: 'object',
      maxProperties: 50,
      additionalProperties: {
        type: 'object',
        additionalProperties: false,
        minProperties: 1,
        properties: {
          everybody: { const: true, description: 'Every API key; for a subfolder of one that is not for everybody.' },
          plans: listOf('Plans of `plans`: that of the key or token, else of the account, else `defaultPlan`.'),
          keys: listOf(
            'Public ids of API keys, `tg_…` as `tollgate keys list` shows them; a key that replaces one counts as it.',
          ),
          users: listOf('Ids of users.'),
        },
      },
      description:
        'Who may find what is in a subfolder, by its path in the folder, such as `hr/salaries`; `.` is all of the folder. Of the rules for folders around a file, the innermost counts; without any, everybody may.',
    },
    embeddings: {
      type: 'string',
      minLength: 3,
      format: 'model',
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
