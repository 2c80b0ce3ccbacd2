/**
 * Layers of `core/`, lowest first: a file imports only from its own row or a lower one. `docs/architecture.md` contains
 * this table. A name with a slash is a folder. Add a row here before a new module.
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

/** Vendors and drivers unknown to core; checked in code, not in comments. */
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

/** Exceptions in core, with the reason. */
export const VENDOR_EXCEPTIONS: Readonly<Record<string, string>> = Object.freeze({
  'contract/redaction.ts': 'prefixes of keys that are cut out of vendors’ messages',
});
