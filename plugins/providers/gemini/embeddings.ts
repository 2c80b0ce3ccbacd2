import {
  type CodecCall,
  estimateTextTokens,
  type FieldTable,
  type HttpRequest,
  readArray,
  readCount,
  readObject,
  StreamFailure,
} from '../../../core/index.ts';
import {
  applyFieldRules,
  type EmbeddingRequest,
  type EmbeddingResponse,
  floatsToBase64,
  invalid,
  toUnitLength,
} from '../kit/index.ts';
import { modelPath } from './request.ts';

/** What becomes of each field of an embeddings request. */
export const GEMINI_EMBEDDING_FIELDS: FieldTable = {
  fields: {
    model: { rule: 'passed', note: 'Goes into the path.' },
    input: { rule: 'renamed', to: 'content', note: 'Texts only: token ids of another tokenizer are refused.' },
    dimensions: { rule: 'renamed', to: 'outputDimensionality' },
    encoding_format: { rule: 'emulated', note: 'The vendor sends numbers; `base64` is made of them.' },
    task_type: { rule: 'renamed', to: 'taskType' },
    user: { rule: 'dropped' },
  },
  unknown: 'dropped',
};

/** An embeddings request: embedContent for one text, batchEmbedContents for several. */
export function geminiEmbedRequest(input: EmbeddingRequest, call: CodecCall): HttpRequest {
  const dropped = applyFieldRules(input, GEMINI_EMBEDDING_FIELDS, 'Gemini');
  const texts = readTexts(input.input);
  const path = modelPath(call.model);
  const taskType = input['task_type'];
  const [first, ...more] = texts.map((text) => ({
    model: path.slice(1),
    content: { parts: [{ text }] },
    ...(typeof taskType === 'string' && { taskType }),
    ...(input.dimensions && { outputDimensionality: input.dimensions }),
  }));
  if (!first) throw invalid('input', 'holds no text');
  const target =
    more.length === 0
      ? { path: `${path}:embedContent`, body: first }
      : { path: `${path}:batchEmbedContents`, body: { requests: [first, ...more] } };
  return { ...target, ...(dropped.length > 0 && { dropped }) };
}

/**
 * The vectors in the order of the texts, scaled to length 1 as OpenAI's are (Gemini leaves shortened ones unscaled).
 * Where the vendor counts no tokens they are estimated, and `usage.estimated` is true.
 */
export function geminiEmbedResponse(body: unknown, input: EmbeddingRequest, call: CodecCall): EmbeddingResponse {
  const response = readObject(body);
  const list = response['embedding'] ? [response['embedding']] : readArray(response['embeddings']);
  const texts = readTexts(input.input);
  if (list.length !== texts.length) throw invalidResponse(`sent ${list.length} vectors for ${texts.length} texts`);
  const counted = readCount(readObject(response['usageMetadata'])['promptTokenCount']);
  const tokens = counted ?? texts.reduce((sum, text) => sum + estimateTextTokens(text), 0);
  return {
    object: 'list',
    data: list.map((item, index) => {
      const values = readArray(readObject(item)['values']);
      if (values.length === 0 || !values.every((value) => typeof value === 'number')) {
        throw invalidResponse('sent a vector that holds no numbers');
      }
      const vector = toUnitLength(values as readonly number[]);
      const embedding = input.encoding_format === 'base64' ? floatsToBase64(vector) : vector;
      return { object: 'embedding', index, embedding };
    }),
    model: call.model,
    usage: { prompt_tokens: tokens, total_tokens: tokens, ...(counted === undefined && { estimated: true }) },
  };
}

function readTexts(input: EmbeddingRequest['input']): readonly string[] {
  const texts: readonly unknown[] = Array.isArray(input) ? input : [input];
  return texts.map((text, index) => {
    if (typeof text === 'string' && text !== '') return text;
    const at = Array.isArray(input) ? `input[${index}]` : 'input';
    throw invalid(at, 'must be a text that is not empty: this provider takes no token ids');
  });
}

function invalidResponse(problem: string): StreamFailure {
  return new StreamFailure({ class: 'upstream_error', message: `The provider ${problem}.` });
}
