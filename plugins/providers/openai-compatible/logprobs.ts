import { isObject } from '../../../core/index.ts';

/** Lists of log probabilities; the last is DeepSeek's, of the tokens the model thought. */
const LISTS = ['content', 'refusal', 'reasoning_content'] as const;

/**
 * Log probabilities as OpenAI sends them: `content` and `refusal`, lists or null. Together's parallel lists are turned,
 * and its streams' one number is that of the chunk's text; anything else is null.
 */
export function readLogprobs(value: unknown, text?: unknown): unknown {
  if (typeof value === 'number' && typeof text === 'string' && text !== '') {
    return { content: [tokenLogprob(text, value)], refusal: null };
  }
  if (!isObject(value)) return null;
  const { tokens, token_logprobs: logprobs } = value;
  if (Array.isArray(tokens) && Array.isArray(logprobs)) {
    return { content: tokens.map((token, at) => tokenLogprob(token, logprobs[at])), refusal: null };
  }
  if (!LISTS.some((name) => Array.isArray(value[name]))) return null;
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
