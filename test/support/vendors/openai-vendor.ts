/** Scripted vendor with OpenAI's format: its configuration in a gateway, and its responses. */
import { chunk, LAST_CHUNK, type Script, SSE_HEAD } from './scripted-upstream.ts';

/** Configuration of a provider for this vendor, with any model. */
export const openAiVendor = ({ url }: { readonly url: string }, rest: object = {}) => ({
  plugin: 'openai-compatible',
  baseUrl: url,
  apiKey: 'sk-test-0123456789',
  models: ['*'],
  ...rest,
});

/** Prices of every model, in micro-dollars per token. */
export const tokenPrices = (input: number, output: number) => ({ '*': { input, output } });

/** Usage in a response. */
export const usageOf = (prompt: number, written: number) => ({
  prompt_tokens: prompt,
  completion_tokens: written,
  total_tokens: prompt + written,
});

/** Complete response. */
export const completion = (content = 'fine', rest: object = {}) => ({
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
  usage: usageOf(50, 10),
  ...rest,
});

/** Event of a stream, as its data. */
export const delta = (content: string, finish_reason: string | null = null, rest: object = {}) =>
  JSON.stringify({
    id: 'c',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices: [{ index: 0, delta: { content }, finish_reason }],
    ...rest,
  });

/** Stream of these events, then `end`; by default it closes correctly. */
export const events =
  (data: readonly string[], end: Script = (wire) => wire.send(LAST_CHUNK)): Script =>
  async (wire) => {
    await wire.send(SSE_HEAD);
    for (const each of data) await wire.send(chunk(`data: ${each}\n\n`));
    await end(wire);
  };
