import { isRecord } from './records.ts';

/**
 * Log probabilities as OpenAI sends them: `content` and `refusal`, lists or null. Together's parallel lists are
 * turned; anything else is null.
 */
export function readLogprobs(value: unknown): unknown {
  if (!isRecord(value)) return null;
  const { tokens, token_logprobs: logprobs } = value;
  if (Array.isArray(tokens) && Array.isArray(logprobs)) {
    return { content: tokens.map((token, at) => tokenLogprob(token, logprobs[at])), refusal: null };
  }
  if (!Array.isArray(value['content']) && !Array.isArray(value['refusal'])) return null;
  return { ...value, content: value['content'] ?? null, refusal: value['refusal'] ?? null };
}

function tokenLogprob(token: unknown, logprob: unknown): object {
  const word = typeof token === 'string' ? token : '';
  return {
    token: word,
    logprob: typeof logprob === 'number' ? logprob : -9999,
    bytes: [...Buffer.from(word)],
    top_logprobs: [],
  };
}
