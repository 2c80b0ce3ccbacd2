import { type JsonObject, type ModelInfo, readObject } from '../../../contract/index.ts';

/** Models as the vendors' own lists describe them; what is wrong in a list stays in it, for the reader of all lists to refuse. */

/** A model with what its vendor's list says of it; null and 0 say nothing. */
export function listedModel(id: string, facts: Readonly<Record<string, unknown>>): ModelInfo {
  const known = Object.entries(facts).filter(([, value]) => value !== undefined && value !== null && value !== 0);
  return { id, ...Object.fromEntries(known) };
}

/** What a list in OpenAI's form says of a model, under the names that OpenAI, OpenRouter, Groq, Mistral and vLLM give these. */
export function compatibleFacts(row: JsonObject): Readonly<Record<string, unknown>> {
  const { context_length, context_window, max_context_length, max_model_len, architecture } = row;
  const { shutdown_date, expiration_date, deprecation } = row;
  const { input_modalities: inputModalities, output_modalities: outputModalities } = readObject(architecture);
  return {
    contextWindow: context_length ?? context_window ?? max_context_length ?? max_model_len,
    maxOutput: readObject(row['top_provider'])['max_completion_tokens'] ?? row['max_completion_tokens'],
    ...{ inputModalities, outputModalities, shutdown: shutdown_date ?? expiration_date ?? deprecation },
  };
}
