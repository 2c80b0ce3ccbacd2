/**
 * Retired word with its replacement. Words match whole and in any case; `askWorker` contains the words `ask` and
 * `worker`.
 */
export interface RetiredWord {
  /** With its inflections. A phrase is a separate entry. */
  readonly words: readonly string[];
  /** Replacement. */
  readonly say: string;
  /** Scope of the search. Default: everywhere. Ordinary English may stay in comments and messages. */
  readonly only?: 'identifiers';
  /** Prefixes of file names. Default: all scanned files. */
  readonly under?: readonly string[];
}

/** Folders without the word `told`, also in names. */
const ROOMS_WITHOUT_TOLD: readonly string[] = [
  'cli/',
  'config/',
  'plugins/agents/',
  'plugins/auth/jwt/',
  'plugins/auth/kit/',
  'plugins/auth/openid/',
  'plugins/tts/',
];

/** Folders whose comments and texts are already in plain English; add each further folder as a row. */
const PLAIN_ROOMS: readonly string[] = [
  'cli/',
  'config/',
  'openapi/',
  'plugins/agents/',
  'plugins/auth/',
  'plugins/dialects/',
  'plugins/formats/',
  'plugins/guardrails/',
  'plugins/operations/',
  'plugins/policies/admin/',
  'plugins/policies/cache/',
  'plugins/policies/kit/',
  'plugins/policies/model-refresh/',
  'plugins/policies/notices/',
  'plugins/policies/otel/',
  'plugins/policies/reconcile/',
  'plugins/policies/usage/',
  'plugins/providers/',
  'plugins/secrets/',
  'plugins/tts/',
];

export const RETIRED: readonly RetiredWord[] = Object.freeze([
  { words: ['fault', 'faults', 'faulty'], say: 'problem (of a configuration), error' },
  { words: ['trouble', 'troubles'], say: 'error' },
  { words: ['purse', 'purses'], say: 'budget' },
  { words: ['bag', 'bags'], say: 'transform, stream' },
  { words: ['pull', 'pulls', 'pulled', 'pulling'], say: 'stream, read' },
  { words: ['fold', 'folds', 'folded', 'folding'], say: 'flush, settle' },
  { words: ['outbox'], say: 'queue' },
  { words: ['census', 'presence', 'resident', 'residents'], say: 'lock, worker' },
  {
    words: ['shelf', 'shelves', 'library', 'survey', 'surveys'],
    say: 'index, reader, writer, folder diff',
    under: ['plugins/agents/'],
  },
  { words: ['brain', 'brains'], say: 'neurology', under: ['plugins/agents/'] },
  { words: ['unless told'], say: 'default' },
  { words: ['unless set', 'unless given'], say: 'default', under: PLAIN_ROOMS },
  { words: ['told'], say: 'reported, sent, returned', under: ROOMS_WITHOUT_TOLD },
  { words: ['nobody'], say: 'no one, or what is missing', under: PLAIN_ROOMS },
  { words: ['beside'], say: 'in addition to, next to, concurrently with', under: PLAIN_ROOMS },
  { words: ['is none'], say: 'is invalid, is missing', under: PLAIN_ROOMS },
  { words: ['anew'], say: 'again, re- (reload, refresh)', under: PLAIN_ROOMS },
  { words: ['left alone'], say: 'skipped, unhealthy', under: PLAIN_ROOMS },
  { words: ['answered with'], say: 'returned', under: PLAIN_ROOMS },
  { words: ['goes on with'], say: 'resumes, continues', under: PLAIN_ROOMS },
  { words: ['leave it out', 'leave that out'], say: 'remove it', under: PLAIN_ROOMS },
  { words: ['not to be had'], say: 'unavailable', under: PLAIN_ROOMS },
  { words: ['who calls'], say: 'the caller’s identity', under: PLAIN_ROOMS },
  { words: ['ask', 'asks', 'asked', 'asker', 'askable'], say: 'request, requested', only: 'identifiers' },
  { words: ['answer', 'answers', 'answered'], say: 'response', only: 'identifiers' },
  { words: ['vendor', 'vendors'], say: 'provider', only: 'identifiers', under: ['contract/', 'core/'] },
]);

/** Allowed word in some files, and the reason. */
export interface AllowedWord {
  readonly word: string;
  readonly files: readonly string[];
  readonly why: string;
}

export const ALLOWED: readonly AllowedWord[] = Object.freeze([
  ...['fold', 'folds'].map((word) => ({
    word,
    files: ['contract/facts.ts'],
    why: 'case folding, as Unicode names it',
  })),
  {
    word: 'answer',
    files: [
      'contract/hooks.ts',
      'core/calls/run-call.ts',
      'core/plugins/compile-hooks.ts',
      'core/plugins/hook-runner.ts',
      'plugins/policies/cache/index.ts',
    ],
    why: 'the hook of this name',
  },
  {
    word: 'answered',
    files: [
      'contract/hooks.ts',
      'core/calls/chat-stream.ts',
      'core/calls/chat.ts',
      'core/calls/run-call.ts',
      'core/plugins/compile-hooks.ts',
      'plugins/operations/speech/index.ts',
      'plugins/policies/accounts/charges.ts',
      'plugins/policies/cache/index.ts',
    ],
    why: 'what the hook answer gives',
  },
  {
    word: 'answer',
    files: ['core/http/error-answer.ts', 'core/http/koa.ts', 'core/http/server.ts'],
    why: 'the verb: to answer a request with an error',
  },
  {
    word: 'beside',
    files: ['config/core-schema.ts', 'config/read.ts'],
    why: 'the option of policies that run beside their calls',
  },
  {
    word: 'answer',
    files: ['plugins/guardrails/injection.ts'],
    why: 'a word of attacks that are looked for',
  },
  {
    word: 'answer',
    files: ['contract/provider.ts', 'plugins/formats/openai-chat/types.ts'],
    why: 'a part of the providers’ tables of fields: AnswerFeature',
  },
  {
    word: 'answer',
    files: [
      'plugins/formats/anthropic/read-response.ts',
      'plugins/formats/anthropic/write-contents.ts',
      'plugins/formats/bedrock/write-request.ts',
      'plugins/formats/google/read-response.ts',
      'plugins/formats/google/write-request.ts',
      'plugins/providers/kit/index.ts',
      'plugins/formats/kit/index.ts',
      'plugins/formats/kit/tools.ts',
    ],
    why: 'what tollgate/codec exports: AnswerFormat, ANSWER_TOOL, readAnswerFormat',
  },
  {
    word: 'answer',
    files: ['plugins/agents/team/request.ts'],
    why: 'a field of the JSON that a model writes',
  },
  {
    word: 'fault',
    files: ['plugins/agents/rag/database.ts', 'plugins/agents/rag/index-reader.ts'],
    why: 'a column of the index',
  },
  { word: 'pull', files: ['plugins/dialects/ollama/index.ts'], why: 'a path of Ollama’s API' },
  { word: 'faults', files: ['cli/io.ts'], why: 'a field of the JSON that the command line prints' },
  {
    word: 'presence',
    files: [
      'contract/chat-schemas.ts',
      'contract/chat.ts',
      'plugins/formats/anthropic/tables.ts',
      'plugins/providers/deepseek.ts',
      'plugins/providers/echo/index.ts',
      'plugins/formats/google/tables.ts',
      'plugins/formats/google/write-request.ts',
      'plugins/providers/cerebras.ts',
      'plugins/providers/groq.ts',
      'plugins/providers/moonshot.ts',
      'plugins/providers/cohere/index.ts',
      'plugins/providers/perplexity.ts',
      'plugins/providers/zai.ts',
      'plugins/dialects/ollama/read.ts',
      'plugins/dialects/portkey.ts',
      'plugins/formats/bedrock/tables.ts',
      'plugins/formats/openai-chat/models.ts',
      'plugins/formats/openai-chat/tables.ts',
      'plugins/providers/xai.ts',
      'plugins/dialects/completions/index.ts',
      'plugins/formats/google/read-request.ts',
      'plugins/formats/google/types.ts',
    ],
    why: 'the field presence_penalty of OpenAI',
  },
  {
    word: 'brain',
    files: ['plugins/agents/medical/specialties.ts'],
    why: 'the organ, in what the neurologist is told to look at',
  },
  { word: 'told', files: ['plugins/agents/medical/notices.ts'], why: 'a notice to patients' },
  { word: 'nobody', files: ['plugins/agents/medical/run-medical.ts'], why: 'the instructions of a model' },
  { word: 'nobody', files: ['plugins/formats/kit/schema-instance.ts'], why: 'an example address' },
  {
    word: 'vendors',
    files: ['contract/provider.ts'],
    why: 'the table of models is by vendor: config/models.json',
  },
  {
    word: 'vendor',
    files: ['contract/definitions.ts', 'contract/provider.ts'],
    why: 'which rows of the table of models a provider has',
  },
]);

/** Folders that are searched for retired words. */
export const SCANNED: readonly string[] = Object.freeze([
  'contract/',
  'core/',
  'config/',
  'cli/',
  'egress/',
  'models/',
  'openapi/',
  'plugins/',
  'routing/',
]);
