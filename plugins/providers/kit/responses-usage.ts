import { isObject, type JsonObject, readCount, readObject, type Usage } from '../../../core/index.ts';

/** What the vendor itself says that a call cost, in US dollars. */
export type CostOf = (usage: JsonObject) => number | undefined;

/** Usage as Responses tell it, in the canonical names; undefined where there is none. */
export function readResponsesUsage(value: unknown, costOf?: CostOf): Usage | undefined {
  if (!isObject(value)) return undefined;
  const input = readCount(value['input_tokens']);
  const output = readCount(value['output_tokens']);
  if (input === undefined && output === undefined) return undefined;
  const inputDetails = readObject(value['input_tokens_details']);
  const cached = readCount(inputDetails['cached_tokens']);
  const written = readCount(inputDetails['cache_write_tokens']);
  const reasoning = readCount(readObject(value['output_tokens_details'])['reasoning_tokens']);
  const prompt = input ?? 0;
  const completion = output ?? 0;
  const cost = costOf?.(value);
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: {
      ...(cached !== undefined && { cached_tokens: cached }),
      ...(written !== undefined && written > 0 && { cache_write_tokens: written }),
    },
    ...(reasoning !== undefined && { completion_tokens_details: { reasoning_tokens: reasoning } }),
    ...(cost !== undefined && { cost }),
  };
}
