import { type JsonObject, type ModelInfo, readObject } from '../../../contract/index.ts';

/** Models from the vendors' own lists. Invalid values stay, for the reader of all lists to reject. */

/** Model with the facts of its vendor's list; null and 0 mean "unknown". */
export function listedModel(id: string, facts: Readonly<Record<string, unknown>>): ModelInfo {
  const known = Object.entries(facts).filter(([, value]) => value !== undefined && value !== null && value !== 0);
  return { id, ...Object.fromEntries(known) };
}

/** Facts of a model in a list of OpenAI's form, under the names of OpenAI, OpenRouter, Groq, Mistral and vLLM. */
export function compatibleFacts(row: JsonObject): Readonly<Record<string, unknown>> {
  const { context_length, context_window, max_context_length, max_model_len, architecture } = row;
  const { shutdown_date, expiration_date, deprecation } = row;
  const { input_modalities: inputModalities, output_modalities: outputModalities } = readObject(architecture);
  return {
    contextWindow: context_length ?? context_window ?? max_context_length ?? max_model_len,
    maxOutput: readObject(row['top_provider'])['max_completion_tokens'] ?? row['max_completion_tokens'],
    inputModalities,
    outputModalities,
    shutdown: shutdown_date ?? expiration_date ?? deprecation,
  };
}
