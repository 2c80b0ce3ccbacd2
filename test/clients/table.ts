import type { Template } from '../support/vendors/chat-templates.ts';

/** Client to install and run; the versions are those in the matrix. */
export interface ClientRow {
  /** Name of its installation folder. */
  readonly id: string;
  /** The first one names the client; the others are its dependencies. None for a client of the machine. */
  readonly packages: readonly string[];
  readonly runs: readonly ClientRun[];
}

/** Row of a table on the page. */
interface Run {
  readonly title: string;
  /** Variant that the script of an SDK runs. */
  readonly client?: string;
  /** By behaviour: intended refusals and deviations from the vendor, with the reason. */
  readonly refused?: Readonly<Record<string, string>>;
  /** Features that the client itself lacks. */
  readonly ofClient?: Readonly<Record<string, string>>;
  readonly emulated?: Readonly<Record<string, string>>;
}

/** Row of the matrix. */
export interface ClientRun extends Run {
  /** Key in `config/clients.json`. */
  readonly setup: string;
  readonly format: 'chat' | 'messages' | 'responses' | 'gemini' | 'interactions' | 'ollama' | 'cohere';
  /** An SDK's script in `sdk/`. */
  readonly script?: string;
  /** An agent of `agents.ts`. */
  readonly agent?: string;
}

/** Row of the table of operations. */
export interface OperationsRun extends Run {
  readonly script: string;
}

export const BEHAVIOURS = Object.freeze([
  ...[
    'set-up',
    'chat',
    'stream',
    'tools',
    'tools, streamed',
    'structured',
    'image',
    'document',
    'errors',
    'abort',
    'models',
    'count',
    'websocket',
  ],
] as const);

/** Columns of clients whose own chat format is refused. */
export const WITHOUT_CHAT = Object.freeze(['set-up', 'chat', 'errors', 'rerank'] as const);

/** Returns true for a client whose own chat format the gateway speaks. */
export const canChat = ({ refused }: Pick<ClientRun, 'refused'>): boolean => refused?.['chat'] === undefined;

export const OPERATIONS = Object.freeze([
  ...['embeddings', 'images', 'edits', 'transcription', 'translation', 'speech', 'moderations', 'rerank', 'files'],
  ...['batches', 'realtime'],
]);

/** Node version for the clients: many need a newer one than the gateway. */
export const NODE = 'node@24.21.0';

const openai = (version: string): ClientRow => ({
  id: `openai-${version.split('.')[0]}`,
  packages: [`openai@${version}`, 'ws@8.23.0'],
  runs: (['chat', 'responses'] as const).map((format) => ({
    ...{ title: `openai ${version}`, format, client: format, script: 'openai.mjs' },
    setup: format === 'chat' ? 'openai-chat' : 'openai',
  })),
});

const azure = (version: string): ClientRow => ({
  id: 'azure-openai',
  packages: [`openai@${version}`, 'ws@8.23.0'],
  runs: (['chat', 'responses'] as const).map((format) => ({
    ...{ title: `AzureOpenAI of openai ${version}`, format, client: `azure-${format}`, script: 'openai.mjs' },
    setup: 'azure-openai',
  })),
});

/** An SDK with one row, named after its package. */
const sdk = (id: string, pkg: string, format: ClientRun['format'], rest: Partial<ClientRun> = {}): ClientRow => ({
  ...{ id, packages: [pkg] },
  runs: [{ title: pkg.replace(/(?!^)@/, ' '), format, setup: id, script: `${id}.mjs`, ...rest }],
});

const COHERE = { chat: 'Cohere’s own chat is not spoken here; its SDK embeds and reranks' };
const NO_FILES = { document: 'it sends no PDF' };
const JSON_TOOL = { structured: 'by a tool `json`, as the SDK does for models that it does not know' };

const aiSdk = (ai: string, own: string, anthropic: string, compatible: string, google: string): ClientRow => ({
  id: `ai-${ai.split('.')[0]}`,
  packages: [
    ...[`ai@${ai}`, `@ai-sdk/openai@${own}`, `@ai-sdk/anthropic@${anthropic}`, `@ai-sdk/google@${google}`],
    ...[`@ai-sdk/openai-compatible@${compatible}`, 'zod@4.6.7'],
    ...(ai.startsWith('7.') ? ['@ai-sdk/cohere@4.0.52'] : []),
  ],
  runs: (
    [
      ['openai', own, 'responses'],
      ['anthropic', anthropic, 'messages'],
      ['openai-compatible', compatible, 'chat'],
      ['google', google, 'gemini'],
    ] as const
  ).map(([name, version, format]) => ({
    ...{ title: `ai ${ai}, @ai-sdk/${name} ${version}`, format, client: name, script: 'ai-sdk.mjs' },
    ...{ setup: `ai-sdk-${name}`, ...(compatible.startsWith('1.') && format === 'chat' && { ofClient: NO_FILES }) },
    ...(format === 'messages' && { emulated: JSON_TOOL }),
  })),
});

const agent = (id: string, pkg: string, runs: readonly Omit<ClientRun, 'setup'>[], setup = id): ClientRow => ({
  ...{ id, packages: [pkg], runs: runs.map((run) => ({ ...run, setup })) },
});

/** Note about tools, streamed or not. */
const ofTools = (text: string) => ({ tools: text, 'tools, streamed': text });
const APPLY_PATCH = ofTools('`apply_patch`, a tool of plain text, is a function with one text at the vendor');
const CODE_MODE = ofTools('`exec` of the namespace `functions`, a tool of plain text, is a function at the vendor');

export const CLIENTS: readonly ClientRow[] = Object.freeze([
  agent('claude-code', '@anthropic-ai/claude-code@2.1.330', [
    { title: 'Claude Code 2.1.330', format: 'messages', agent: 'claude-code' },
  ]),
  agent('codex', '@openai/codex@0.169.0', [
    { title: 'Codex 0.169.0, websocket', format: 'responses', agent: 'codex', emulated: APPLY_PATCH },
    { title: 'Codex 0.169.0, SSE', format: 'responses', agent: 'codex-sse', emulated: APPLY_PATCH },
    { title: 'Codex 0.169.0, code mode', format: 'responses', agent: 'codex-code-mode', emulated: CODE_MODE },
  ]),
  agent('gemini-cli', '@google/gemini-cli@0.61.0', [
    { title: 'Gemini CLI 0.61.0', format: 'gemini', agent: 'gemini-cli' },
  ]),
  agent('opencode', 'opencode-ai@1.18.33', [{ title: 'opencode 1.18.33', format: 'chat', agent: 'opencode' }]),
  agent('continue', '@continuedev/cli@1.5.47', [
    {
      ...{ title: 'Continue 1.5.47', format: 'responses', agent: 'continue' },
      ofClient: { errors: 'it shows the error of a broken stream and ends; it does not try again' },
    },
  ]),
  agent('pi', '@earendil-works/pi-coding-agent@1.6.0', [
    {
      ...{ title: 'pi 1.6.0', format: 'chat', agent: 'pi' },
      ofClient: { errors: 'it shows the error of a broken stream and ends; it does not try again' },
    },
  ]),
  agent('qwen-code', '@qwen-code/qwen-code@0.24.4', [
    { title: 'Qwen Code 0.24.4', format: 'chat', agent: 'qwen-code' },
  ]),
  agent('cline', 'cline@3.0.65', [
    {
      ...{ title: 'Cline 3.0.65', format: 'chat', agent: 'cline' },
      ofClient: { errors: 'it tries again after a 429; it shows the error of a broken stream and ends' },
    },
  ]),
  {
    id: 'anthropic',
    packages: ['@anthropic-ai/sdk@1.12.0'],
    runs: [{ title: '@anthropic-ai/sdk 1.12.0', format: 'messages', setup: 'anthropic', script: 'anthropic.mjs' }],
  },
  ...['4.104.0', '5.23.2', '6.49.0', '7.57.0'].map(openai),
  azure('7.57.0'),
  sdk('groq', 'groq-sdk@1.6.0', 'chat', { client: 'groq-chat', script: 'openai.mjs' }),
  sdk('mistral', '@mistralai/mistralai@2.7.0', 'chat', {
    emulated: { models: 'its entries are in `raw`: they have OpenAI’s fields' },
  }),
  {
    id: 'python-requests',
    packages: [],
    runs: [
      {
        ...{ title: 'Python’s requests 2.34.2', format: 'chat', setup: 'python-requests' },
        script: 'python-requests.mjs',
      },
    ],
  },
  aiSdk('5.0.277', '2.0.131', '2.0.112', '1.0.61', '2.0.108'),
  aiSdk('6.0.326', '3.0.141', '3.0.138', '2.0.87', '3.0.141'),
  aiSdk('7.0.173', '4.0.118', '4.0.105', '3.0.92', '4.0.121'),
  {
    id: 'langchain',
    packages: [
      ...['@langchain/core@1.4.0', '@langchain/openai@1.6.0', '@langchain/anthropic@1.5.11'],
      '@langchain/google-genai@2.3.2',
    ],
    runs: [
      {
        ...{ title: '@langchain/openai 1.6.0', format: 'chat', setup: 'langchain-openai' },
        ...{ script: 'langchain.mjs', client: 'chat' },
      },
      {
        ...{ title: '@langchain/openai 1.6.0, Responses', format: 'responses', setup: 'langchain-openai' },
        ...{ script: 'langchain.mjs', client: 'responses' },
      },
      {
        ...{ title: '@langchain/anthropic 1.5.11', format: 'messages', setup: 'langchain-anthropic' },
        ...{ script: 'langchain.mjs', client: 'messages' },
      },
      {
        ...{ title: '@langchain/google-genai 2.3.2', format: 'gemini', setup: 'langchain-google' },
        ...{ script: 'langchain.mjs', client: 'gemini' },
      },
    ],
  },
  {
    id: 'openai-agents',
    packages: ['@openai/agents@0.20.0', 'zod@4.6.7'],
    runs: [
      { title: '@openai/agents 0.20.0', format: 'responses', setup: 'openai-agents', script: 'openai-agents.mjs' },
    ],
  },
  {
    id: 'google-genai',
    packages: ['@google/genai@3.1.0'],
    runs: [
      { title: '@google/genai 3.1.0', format: 'gemini', setup: 'google-genai', script: 'google-genai.mjs' },
      {
        ...{ title: '@google/genai 3.1.0', format: 'interactions', setup: 'google-genai' },
        script: 'google-interactions.mjs',
      },
    ],
  },
  sdk('google-generative-ai', '@google/generative-ai@0.24.1', 'gemini', {}),
  sdk('ollama', 'ollama@0.6.4', 'ollama'),
  sdk('cohere', 'cohere-ai@8.1.0', 'cohere', { refused: COHERE }),
  {
    id: 'llamaindex',
    packages: ['llamaindex@0.12.1', '@llamaindex/openai@0.4.23'],
    runs: [
      {
        ...{ title: 'LlamaIndex 0.12.1', format: 'chat', setup: 'llamaindex', script: 'llamaindex.mjs' },
        ofClient: { abort: 'it reads a stream to its end when the caller left' },
      },
    ],
  },
]);

const withOperations = (title: string, script: string, rest: Partial<OperationsRun> = {}): OperationsRun => ({
  ...{ title, script: `${script}-operations.mjs`, ...rest },
});

/** Operations of SDKs other than chat, by the id of their row. */
export const ON_OPERATIONS: Readonly<Record<string, readonly OperationsRun[]>> = Object.freeze({
  'openai-7': [withOperations('openai 7.57.0', 'openai', { client: 'openai' })],
  'azure-openai': [withOperations('AzureOpenAI of openai 7.57.0', 'openai', { client: 'azure' })],
  groq: [withOperations('groq-sdk 1.6.0', 'openai', { client: 'groq' })],
  anthropic: [withOperations('@anthropic-ai/sdk 1.12.0', 'anthropic')],
  'google-genai': [
    withOperations('@google/genai 3.1.0', 'google', {
      refused: {
        files: 'files of Google’s Files API lie in the operator’s account; batches take their requests themselves',
      },
    }),
  ],
  mistral: [
    withOperations('@mistralai/mistralai 2.7.0', 'mistral', {
      emulated: { transcription: 'whole; the events of a stream are OpenAI’s, which the SDK does not read' },
      refused: { batches: 'Mistral’s jobs (`/v1/batch/jobs`) are not spoken here; OpenAI’s batches are' },
    }),
  ],
  ollama: [withOperations('ollama 0.6.4', 'ollama')],
  cohere: [withOperations('cohere-ai 8.1.0', 'cohere')],
  'ai-7': (
    [
      ['openai', '4.0.118'],
      ['google', '4.0.121'],
      ['cohere', '4.0.52'],
    ] as const
  ).map(([client, version]) => withOperations(`ai 7.0.173, @ai-sdk/${client} ${version}`, 'ai-sdk', { client })),
});

/** Clients with formats other than OpenAI's Responses, by title, that run tool loops on OpenAI's models. */
export const ON_OPENAI: readonly string[] = Object.freeze([
  ...['Claude Code 2.1.330', 'Gemini CLI 0.61.0', 'opencode 1.18.33'],
  ...['@langchain/openai 1.6.0', '@langchain/anthropic 1.5.11'],
]);

/** Clients, by title and format, that run tool loops on each of {@link TEMPLATE_MODELS}. */
export const ON_TEMPLATES: readonly string[] = Object.freeze([
  ...['Claude Code 2.1.330 | messages', 'Codex 0.169.0, websocket | responses', 'Codex 0.169.0, SSE | responses'],
  'Codex 0.169.0, code mode | responses',
]);

/** Self-hosted models by provider, and the chat template that their server enforces. */
export const TEMPLATE_MODELS = Object.freeze({
  'vllm/qwen3.5-27b': 'qwen',
  'vllm/mistral-small-4': 'mistral',
  'mistral/mistral-large-4': 'mistral',
  'openai-compatible/llama-3.3-70b': 'llama',
} satisfies Record<string, Template>);
export type TemplateModel = keyof typeof TEMPLATE_MODELS;

/**
 * Clients, by title and format, that finish a tool loop on each of {@link DEAR_MODELS} with {@link BUDGET_USD} a day.
 */
export const ON_BUDGET: readonly string[] = Object.freeze([
  ...['Claude Code 2.1.330 | messages', 'Codex 0.169.0, websocket | responses', 'Codex 0.169.0, SSE | responses'],
  ...['ai 7.0.173, @ai-sdk/openai 4.0.118 | responses', 'ai 7.0.173, @ai-sdk/anthropic 4.0.105 | messages'],
  'ai 7.0.173, @ai-sdk/openai-compatible 3.0.92 | chat',
]);

export const BUDGET_USD = 1;

/** US dollars per million output tokens: the maximum output of each model costs more than the budget. */
export const DEAR_MODELS = Object.freeze({
  'anthropic/claude-opus-5': 25,
  'openai/gpt-6-astra': 50,
});
export type DearModel = keyof typeof DEAR_MODELS;
