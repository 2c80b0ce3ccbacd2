/**
 * The layers of `core/`, lowest first: a file imports only from its own row or a lower one. `docs/architecture.md` shows
 * this table. A name with a slash is a folder. What is new gets a row here first.
 */
export const LAYERS: readonly { readonly name: string; readonly what: string; readonly modules: readonly string[] }[] =
  Object.freeze([
    { name: 'plugins', what: 'import, registry, set-up and closing, hooks compiled', modules: ['plugins/'] },
    { name: 'calls', what: 'the life of a call', modules: ['calls/'] },
    { name: 'http', what: 'Koa, routes, bodies, errors, event streams', modules: ['http/'] },
    {
      name: 'entries',
      what: 'a gateway, its log, the entry of programs that embed it',
      modules: ['app', 'logger', 'gateway'],
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
  'cerebras',
  'fireworks',
  'moonshot',
  'zai',
  'vllm',
  'lmstudio',
  'bedrock',
  'vertex',
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
  'contract/redaction.ts': 'prefixes of keys that are cut out of vendors’ messages',
});
