import {
  isObject,
  type JsonObject,
  readArray,
  readCount,
  readObject,
  readString,
  StreamFailure,
} from '../../core/index.ts';
import type {
  JsonCodec,
  ModerationRequest,
  ModerationResponse,
  RerankRequest,
  RerankResponse,
} from '../providers/kit/index.ts';
import { failureIn } from './openai-chat/response.ts';
import type { Differences } from './openai-chat/types.ts';

/** What a codec of these needs of a vendor's differences. */
type Vendor = Pick<Differences, 'path' | 'errors'>;

function pathOf({ path }: Vendor, operation: string, model: string): string {
  return path?.(operation, model) ?? `/${operation}`;
}

/** The fields of a request that are sent, and the names of those that are not. */
function sentOf(
  input: JsonObject,
  taken: readonly string[],
): { readonly body: JsonObject; readonly dropped: readonly string[] } {
  const set = Object.entries(input).filter(([, value]) => value !== undefined && value !== null);
  return {
    body: Object.fromEntries(set.filter(([name]) => taken.includes(name))),
    dropped: set.flatMap(([name]) => (taken.includes(name) || name === 'model' ? [] : [name])),
  };
}

/** The vendor's body, where it is an object and no error. */
function bodyOf(body: unknown, { errors }: Vendor, list: string): JsonObject {
  const failure = failureIn(body, errors);
  if (failure) throw new StreamFailure(failure);
  if (!isObject(body) || !Array.isArray(body[list])) throw wrong(`answered without \`${list}\``);
  return body;
}

function wrong(problem: string): StreamFailure {
  return new StreamFailure({ class: 'upstream_error', message: `The provider ${problem}.` });
}

/** Sources: https://platform.openai.com/docs/api-reference/moderations, https://docs.mistral.ai/api/endpoint/classifiers */
export function moderationsCodec(vendor: Vendor): JsonCodec<ModerationRequest, ModerationResponse> {
  return {
    request(input, { model }) {
      const { body, dropped } = sentOf(input, ['input']);
      return {
        path: pathOf(vendor, 'moderations', model),
        body: { model, ...body },
        ...(dropped.length > 0 && { dropped }),
      };
    },
    response(value, _input, call) {
      const body = bodyOf(value, vendor, 'results');
      const results = readArray(body['results']).map((row) => {
        const { flagged, categories, category_scores: scores, ...rest } = readObject(row);
        if (!isObject(categories) || !isObject(scores)) throw wrong('answered with a result that has no categories');
        const own = categories as Readonly<Record<string, boolean>>;
        // Mistral leaves the verdict to its callers.
        const isFlagged = typeof flagged === 'boolean' ? flagged : Object.values(own).includes(true);
        return {
          flagged: isFlagged,
          categories: own,
          category_scores: scores as Readonly<Record<string, number>>,
          ...rest,
        };
      });
      return {
        id: readString(body['id']) ?? `modr-${call.id}`,
        model: readString(body['model']) ?? call.model,
        results,
        ...(isObject(body['usage']) && { usage: body['usage'] }),
      };
    },
  };
}

const RERANK_FIELDS = Object.freeze(['query', 'documents', 'top_n', 'max_tokens_per_doc', 'priority', 'truncation']);

/** Sources: https://docs.cohere.com/reference/rerank, https://jina.ai/reranker, https://docs.vllm.ai (`/rerank`) */
export function rerankCodec(vendor: Vendor): JsonCodec<RerankRequest, RerankResponse> {
  return {
    request(input, { model }) {
      // What the documents say is known here: nobody is wanted to send them back.
      const { return_documents: _, ...wanted } = input;
      const { body, dropped } = sentOf(wanted, RERANK_FIELDS);
      return {
        path: pathOf(vendor, 'rerank', model),
        body: { model, ...body },
        ...(dropped.length > 0 && { dropped }),
      };
    },
    response(value, input, call) {
      const body = bodyOf(value, vendor, 'results');
      const seen = new Set<number>();
      const results = readArray(body['results']).map((row) => {
        const { index, relevance_score: score } = readObject(row);
        const document = typeof index === 'number' ? input.documents[index] : undefined;
        if (typeof index !== 'number' || document === undefined || seen.has(index) || typeof score !== 'number')
          throw wrong('answered with a result that is no document of the request');
        seen.add(index);
        return {
          ...{ index, relevance_score: score },
          ...(input.return_documents && { document: typeof document === 'string' ? { text: document } : document }),
        };
      });
      const usage = readObject(body['usage']);
      const units = readObject(readObject(body['meta'])['billed_units']);
      const tokens =
        readCount(usage['total_tokens']) ?? readCount(usage['prompt_tokens']) ?? readCount(units['input_tokens']);
      const searches = readCount(units['search_units']);
      return {
        id: readString(body['id']) ?? `rerank-${call.id}`,
        model: readString(body['model']) ?? call.model,
        results,
        ...(tokens !== undefined && { usage: { total_tokens: tokens } }),
        ...(searches !== undefined && { meta: { billed_units: { search_units: searches } } }),
      };
    },
  };
}
