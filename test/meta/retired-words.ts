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
  { words: ['unless set', 'unless given'], say: 'default' },
  { words: ['told'], say: 'reported, sent, returned' },
  { words: ['nobody'], say: 'no one, or what is missing' },
  { words: ['beside'], say: 'in addition to, next to, concurrently with' },
  { words: ['is none'], say: 'is invalid, is missing' },
  { words: ['anew'], say: 'again, re- (reload, refresh)' },
  { words: ['left alone'], say: 'skipped, unhealthy' },
  { words: ['answered with'], say: 'returned' },
  { words: ['goes on with'], say: 'resumes, continues' },
  { words: ['leave it out', 'leave that out'], say: 'remove it' },
  { words: ['not to be had'], say: 'unavailable' },
  { words: ['who calls'], say: 'the caller’s identity' },
  { words: ['ask', 'asks', 'asked', 'asker', 'askable'], say: 'request, requested', only: 'identifiers' },
  { words: ['answer', 'answers', 'answered'], say: 'response', only: 'identifiers' },
  { words: ['vendor', 'vendors'], say: 'provider', only: 'identifiers', under: ['contract/', 'core/'] },
]);

/** Allowed word in some files, and the reason. A name that ends with a slash is a folder. */
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
      'core/calls/operation.ts',
      'core/calls/run-call.ts',
      'core/plugins/compile-hooks.ts',
      'plugins/operations/speech/index.ts',
      'plugins/policies/accounts/holds/money.ts',
      'plugins/policies/cache/index.ts',
      'test/plugins/policies/accounts/charge-answered.test.ts',
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
    files: [
      'config/core-schema.ts',
      'config/read.ts',
      'core/plugins/hook-scope.ts',
      'core/plugins/registry.ts',
      'test/app/beside.test.ts',
    ],
    why: 'the configuration key `beside`',
  },
  {
    word: 'beside',
    files: ['core/calls/hedge.ts', 'test/app/hedging.test.ts'],
    why: 'a field of the log line of a hedged request',
  },
  {
    word: 'answer',
    files: ['contract/provider.ts', 'plugins/formats/openai-chat/types.ts', 'test/conformance/provider-features.ts'],
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
      'test/plugins/providers/anthropic/stream.test.ts',
    ],
    why: 'what tollgate/codec exports: AnswerFormat, ANSWER_TOOL, readAnswerFormat',
  },
  {
    word: 'answer',
    files: [
      'plugins/agents/team/request.ts',
      'test/app/agent-answers.test.ts',
      'test/app/agent-roles.slow.test.ts',
      'test/app/agent-team.test.ts',
      'test/app/agent.test.ts',
      'test/app/console.slow.test.ts',
      'test/app/console.test.ts',
      'test/app/rag-access.slow.test.ts',
      'test/app/rag.slow.test.ts',
      'test/plugins/agents/',
      'test/plugins/providers/anthropic/response.test.ts',
      'test/plugins/providers/anthropic/tools.test.ts',
      'test/plugins/providers/gemini/tools.test.ts',
      'bench/walk.mjs',
      'examples/grid-world/scripted-model.mjs',
    ],
    why: 'a field of the JSON that a model writes',
  },
  {
    word: 'fault',
    files: ['plugins/agents/rag/database.ts', 'plugins/agents/rag/index-reader.ts', 'test/support/agents/rag-index.ts'],
    why: 'a column of the index',
  },
  {
    word: 'pull',
    files: [
      'core/http/known-paths.ts',
      'plugins/dialects/ollama/index.ts',
      'test/app/known-paths.test.ts',
      'test/ingress/ollama.test.ts',
    ],
    why: 'a path of Ollama’s API',
  },
  {
    word: 'faults',
    files: ['cli/io.ts', 'test/cli/commands.slow.test.ts'],
    why: 'a field of the JSON that the command line prints',
  },
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
      'plugins/providers/ai-sdk/',
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
      'test/',
    ],
    why: 'the field presence_penalty of OpenAI',
  },
  {
    word: 'brain',
    files: ['plugins/agents/medical/specialties.ts'],
    why: 'the organ, in what the neurologist is told to look at',
  },
  { word: 'told', files: ['plugins/agents/medical/notices.ts'], why: 'a notice to patients' },
  { word: 'told', files: ['plugins/guardrails/injection.ts'], why: 'a word of attacks that are looked for' },
  { word: 'nobody', files: ['plugins/agents/medical/run-medical.ts'], why: 'the instructions of a model' },
  { word: 'nobody', files: ['plugins/formats/kit/schema-instance.ts'], why: 'an example address' },
  {
    word: 'answer',
    files: [
      'test/conformance/credential.ts',
      'test/conformance/index.ts',
      'test/conformance/issuer.ts',
      'test/conformance/secrets.ts',
    ],
    why: 'what tollgate/conformance exports: IssuerAnswer',
  },
  { word: 'answer', files: ['bench/plain-gateway.mjs'], why: 'the yardstick, whose bytes the cost gate checks' },
  { word: 'ask', files: ['test/docs/how-to.slow.test.ts'], why: 'the shell function of a how-to page' },
  { word: 'pull', files: ['test/fixtures/rag-documents.ts'], why: 'ordinary English in a document' },
  { word: 'pull', files: ['test/meta/deploy-helm.test.ts'], why: 'the field imagePullSecrets of Kubernetes' },
  {
    word: 'trouble',
    files: ['test/plugins/agents/medical/screen.test.ts'],
    why: 'the words of a patient',
  },
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
  'bench/',
  'test/',
  'examples/',
]);

/** Files that hold the words themselves. */
export const LISTS: readonly string[] = Object.freeze([
  'test/meta/retired-words.ts',
  'test/meta/words.test.ts',
  'test/meta/comments.ts',
  'test/docs/words.test.ts',
]);
