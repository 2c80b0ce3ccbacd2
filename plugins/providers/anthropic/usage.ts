import { isObject, type JsonObject, readArray, readCount, readObject, type Usage } from '../../../core/index.ts';

interface Counts {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  /** The part of `cacheWrite` that is kept for an hour, at a higher price. */
  readonly cacheWriteHour: number;
}

/**
 * Token counts: `input_tokens` is beside the cached ones in Anthropic's arithmetic, above them in OpenAI's. Undefined when
 * the vendor told nothing that can be counted.
 */
export function anthropicUsage(usage: unknown): Usage | undefined {
  if (!isObject(usage)) return undefined;
  if (readCount(usage['input_tokens']) === undefined && readCount(usage['output_tokens']) === undefined)
    return undefined;
  const { input, output, cacheRead, cacheWrite, cacheWriteHour } = totals(usage);
  const prompt = input + cacheRead + cacheWrite;
  const details = usage['output_tokens_details'];
  const thinking = isObject(details) ? readCount(details['thinking_tokens']) : undefined;
  return {
    prompt_tokens: prompt,
    completion_tokens: output,
    total_tokens: prompt + output,
    prompt_tokens_details: {
      cached_tokens: cacheRead,
      cache_write_tokens: cacheWrite,
      ...(cacheWriteHour > 0 && { cache_write_1h_tokens: cacheWriteHour }),
    },
    ...(thinking !== undefined && { completion_tokens_details: { reasoning_tokens: Math.min(thinking, output) } }),
  };
}

/**
 * The totals leave out what a compaction used, so then the model's own iterations are summed. Those of an advisor are
 * another model's, at another price; a fallback's are in the totals already.
 */
function totals(usage: JsonObject): Counts {
  const iterations = readArray(usage['iterations']).filter(isObject);
  const own = iterations.filter(({ type }) => type === 'message' || type === 'compaction');
  const fallback = iterations.some(({ type }) => type === 'fallback_message');
  if (own.length === 0 || fallback) return counts(usage);
  return own.map(counts).reduce((sum, item) => ({
    input: sum.input + item.input,
    output: sum.output + item.output,
    cacheRead: sum.cacheRead + item.cacheRead,
    cacheWrite: sum.cacheWrite + item.cacheWrite,
    cacheWriteHour: sum.cacheWriteHour + item.cacheWriteHour,
  }));
}

function counts(usage: JsonObject): Counts {
  const count = (name: string): number => readCount(usage[name]) ?? 0;
  return {
    input: count('input_tokens'),
    output: count('output_tokens'),
    cacheRead: count('cache_read_input_tokens'),
    cacheWrite: count('cache_creation_input_tokens'),
    cacheWriteHour: readCount(readObject(usage['cache_creation'])['ephemeral_1h_input_tokens']) ?? 0,
  };
}
