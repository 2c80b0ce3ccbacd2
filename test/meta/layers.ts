/**
 * The layers of `core/`, lowest first: a file imports only from its own row or a lower one. `docs/architecture.md` shows
 * this table. A name with a slash is a folder. What is new gets a row here first.
 */
export const LAYERS: readonly { readonly name: string; readonly what: string; readonly modules: readonly string[] }[] =
  Object.freeze([
    {
      name: 'contract',
      what: 'shapes, errors, what plugins implement',
      modules: ['types/', 'errors', 'hooks', 'log', 'plugin', 'provider', 'route', 'speech-provider'],
    },
    {
      name: 'functions',
      what: 'pure: a value in, a value out',
      modules: [
        'caller-signal',
        'chunks',
        'content',
        'embeddings',
        'failures',
        'field-rules',
        'ids',
        'local-counters',
        'nearest',
        'paths',
        'pending',
        'pricing',
        'provider-options',
        'read-json',
        'retry-after',
        'same-json',
        'schema-instance',
        'schemas/',
        'secret-strength',
        'sse',
        'sse-writer',
        'speech-options',
        'status-failure',
        'store-url',
        'tokens',
        'tool-call-ids',
        'tools',
        'turns',
        'units',
        'version',
        'voices',
      ],
    },
    {
      name: 'parts',
      what: 'configuration, registry, hooks compiled, ways out',
      modules: [
        'audio',
        'audio/',
        'boot',
        'builtins',
        'config/',
        'hook-call',
        'hook-runner',
        'http-client',
        'import-plugin',
        'load-config',
        'log-line',
        'log-stream',
        'logger',
        'model-refresh',
        'models',
        'openapi',
        'plugin-api',
        'registry',
        'upstream',
        'upstream/',
        'workers',
      ],
    },
    {
      name: 'calls',
      what: 'the life of a call, HTTP',
      modules: ['assemble', 'http/', 'pipeline/', 'routes/', 'runtime', 'services', 'speech/'],
    },
    {
      name: 'entries',
      what: 'a gateway, the program, the public entry',
      modules: ['app', 'cli/', 'cluster', 'create-gateway', 'index'],
    },
  ]);

/** Vendors and drivers that core has never heard of; checked in code, not in comments. */
export const VENDORS: readonly string[] = Object.freeze([
  'openai',
  'anthropic',
  'claude',
  'gemini',
  'google',
  'deepseek',
  'grok',
  'xai',
  'hyperbolic',
  'openrouter',
  'mistral',
  'groq',
  'azure',
  'ollama',
  'elevenlabs',
  'deepgram',
  'cartesia',
  'ioredis',
]);

/** Where core says such a word all the same, and why. */
export const VENDOR_EXCEPTIONS: Readonly<Record<string, string>> = Object.freeze({
  'core/failures.ts': 'prefixes of keys that are cut out of vendors’ messages',
  'core/speech/routes.ts': 'OpenAI is also the name of the format that /v1 speaks',
});
