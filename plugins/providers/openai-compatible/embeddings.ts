import { type CodecCall, isObject, readString, StreamFailure } from '../../../core/index.ts';
import {
  base64ToFloats,
  type EmbeddingCodec,
  type EmbeddingRequest,
  type EmbeddingResponse,
  floatsToBase64,
} from '../kit/index.ts';
import { failureIn } from './errors.ts';
import { compileRules, mapFields } from './request.ts';
import type { Differences } from './spec.ts';
import { count } from './usage.ts';

const OWN = new Set(['model', 'input']);
const KNOWN = ['encoding_format', 'dimensions', 'user'];

/** The embeddings codec; vectors come in the encoding that the caller asked for, whatever the vendor sends. */
export function createEmbedCodec(differences: Differences): EmbeddingCodec | undefined {
  const { embeddings } = differences;
  if (!embeddings) return undefined;
  const rulesFor = compileRules({ ...embeddings, extras: [...KNOWN, ...(differences.extras ?? [])] });
  return {
    request(input, call) {
      const { ruleOf } = rulesFor({ ...input, messages: [] });
      const { body, dropped } = mapFields(input, ruleOf, OWN);
      return {
        path: differences.path?.('embeddings', call.model) ?? '/embeddings',
        body: { model: call.model, input: input.input, ...body },
        ...(dropped.length > 0 && { dropped }),
      };
    },
    response: (body, input, call) => readEmbeddings(body, input, call, differences),
  };
}

function readEmbeddings(
  body: unknown,
  input: EmbeddingRequest,
  call: CodecCall,
  differences: Differences,
): EmbeddingResponse {
  const failure = failureIn(body, differences.errors);
  if (failure) throw new StreamFailure(failure);
  if (!isObject(body) || !Array.isArray(body['data'])) {
    throw new StreamFailure({ class: 'upstream_error', message: 'The provider answered without `data`.' });
  }
  const usage = isObject(body['usage']) ? body['usage'] : {};
  const tokens = count(usage['prompt_tokens']) ?? count(usage['total_tokens']) ?? 0;
  return {
    object: 'list',
    data: body['data'].filter(isObject).map((item, position) => ({
      object: 'embedding',
      index: count(item['index']) ?? position,
      embedding: encoded(item['embedding'], input.encoding_format === 'base64'),
    })),
    model: readString(body['model']) ?? call.model,
    usage: { prompt_tokens: tokens, total_tokens: Math.max(tokens, count(usage['total_tokens']) ?? 0) },
  };
}

function encoded(embedding: unknown, asBase64: boolean): readonly number[] | string {
  if (typeof embedding === 'string') return asBase64 ? embedding : base64ToFloats(embedding);
  if (Array.isArray(embedding) && embedding.every((value) => typeof value === 'number')) {
    return asBase64 ? floatsToBase64(embedding) : embedding;
  }
  throw new StreamFailure({
    class: 'upstream_error',
    message: 'The provider answered with an embedding that is no vector.',
  });
}
