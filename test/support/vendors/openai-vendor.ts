/** A scripted vendor with OpenAI's wire: how a gateway is told of it, and what it sends. */
import { chunk, LAST_CHUNK, type Script, SSE_HEAD } from './scripted-upstream.ts';

/** The configuration of a provider that is such a vendor, with any model. */
export const openAiVendor = ({ url }: { readonly url: string }, rest: object = {}) => ({
  plugin: 'openai-compatible',
  baseUrl: url,
  apiKey: 'sk-test-0123456789',
  models: ['*'],
  ...rest,
});

/** Prices of every model, in micro-dollars a token. */
export const tokenPrices = (input: number, output: number) => ({ '*': { input, output } });

/** What a response says of the tokens it took. */
export const usageOf = (prompt: number, written: number) => ({
  prompt_tokens: prompt,
  completion_tokens: written,
  total_tokens: prompt + written,
});

/** A whole answer. */
export const completion = (content = 'fine', rest: object = {}) => ({
  id: 'c',
  object: 'chat.completion',
  created: 1,
  model: 'm',
  choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
  usage: usageOf(50, 10),
  ...rest,
});

/** One event of a stream, as its data. */
export const delta = (content: string, finish_reason: string | null = null, rest: object = {}) =>
  JSON.stringify({
    id: 'c',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices: [{ index: 0, delta: { content }, finish_reason }],
    ...rest,
  });

/** A stream of these events, then whatever `end` does; without `end` it closes as it should. */
export const events =
  (data: readonly string[], end: Script = (wire) => wire.send(LAST_CHUNK)): Script =>
  async (wire) => {
    await wire.send(SSE_HEAD);
    for (const each of data) await wire.send(chunk(`data: ${each}\n\n`));
    await end(wire);
  };
