import { isObject, type JsonObject, readArray, readObject } from '../../../core/index.ts';

/** A candidate's `logprobsResult` as OpenAI's `logprobs`; null when there is none. */
export function geminiLogprobs(candidate: JsonObject): JsonObject | null {
  const result = candidate['logprobsResult'];
  if (!isObject(result)) return null;
  const alternatives = readArray(result['topCandidates']);
  const content = readArray(result['chosenCandidates']).map((chosen, index) => ({
    ...tokenLogprob(chosen),
    top_logprobs: readArray(readObject(alternatives[index])['candidates']).map(tokenLogprob),
  }));
  return { content, refusal: null };
}

function tokenLogprob(candidate: unknown): { token: string; logprob: number; bytes: number[] } {
  const { token, logProbability } = readObject(candidate);
  const text = typeof token === 'string' ? token : '';
  return {
    token: text,
    logprob: typeof logProbability === 'number' ? logProbability : -9999,
    bytes: [...Buffer.from(text, 'utf8')],
  };
}
