import { GATEWAY_URL } from './api.ts';

export const CLIENTS = ['curl', 'Claude Code', 'Codex', 'OpenAI SDK'] as const;
export type Client = (typeof CLIENTS)[number];

const VARIABLE = '$TOLLGATE_API_KEY';

/** Lines that connect a client, with a key or the variable that holds one. */
export function connectLines(client: Client, key: string = VARIABLE, model = 'MODEL', origin = GATEWAY_URL): string {
  // Shells expand variables between double quotes only.
  const quote = key === VARIABLE ? '"' : "'";
  const lines: Readonly<Record<Client, readonly string[]>> = {
    curl: [
      `curl ${origin}/v1/chat/completions \\`,
      `  -H ${quote}authorization: Bearer ${key}${quote} -H 'content-type: application/json' \\`,
      `  -d '{"model":"${model}","messages":[{"role":"user","content":"Hello there"}]}'`,
    ],
    'Claude Code': [
      `export ANTHROPIC_BASE_URL=${origin}`,
      `export ANTHROPIC_AUTH_TOKEN=${key}`,
      `claude --model ${model}`,
    ],
    Codex: [
      '# ~/.codex/config.toml',
      `model = "${model}"`,
      'model_provider = "tollgate"',
      '[model_providers.tollgate]',
      'name = "Tollgate"',
      `base_url = "${origin}/v1"`,
      'env_key = "TOLLGATE_API_KEY"',
      'wire_api = "responses"',
      '# and in the shell:',
      `# export TOLLGATE_API_KEY=${key}`,
    ],
    'OpenAI SDK': [
      "import OpenAI from 'openai';",
      `const client = new OpenAI({ baseURL: '${origin}/v1', apiKey: '${key}' });`,
      'const answer = await client.chat.completions.create({',
      `  model: '${model}',`,
      "  messages: [{ role: 'user', content: 'Hello there' }],",
      '});',
    ],
  };
  return lines[client].join('\n');
}
