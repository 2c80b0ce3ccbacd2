import {
  type ChatChunk,
  type ChatCodec,
  type ChatResponse,
  isObject,
  type JsonObject,
  parseJson,
  readArray,
  readObject,
  readString,
} from '../../../contract/index.ts';

type Reading = Pick<ChatCodec, 'response' | 'stream'>;

/** Fields next to the choices that list pages: complete ones with a title (Perplexity), or only their addresses. */
const FIELDS = Object.freeze(['search_results', 'citations']);

/**
 * Wraps a codec for vendors that list the pages of a web search next to the choices. The pages become citations of the
 * message as well, as OpenAI's search models return them, so that each client format can express them.
 * Sources: docs.perplexity.ai/api-reference/sonar-post (2026-10), docs.x.ai (2026; only in the last chunk of a stream).
 */
export function withSources<Codec extends Reading>(codec: Codec): Codec {
  return {
    ...codec,
    response: (body, call) => citedResponse(codec.response(body, call), body),
    stream(call) {
      const decoder = codec.stream(call);
      /** Pages that no chunk cites yet. */
      let pages: readonly JsonObject[] = [];
      const known = new Set<string>();
      let last: ChatChunk | undefined;
      let isSame = true;
      return {
        push(event) {
          const chunks = decoder.push(event);
          isSame = true;
          if (FIELDS.some((field) => event.data.includes(`"${field}"`))) {
            // Vendors repeat the list in each chunk.
            pages = [...pages, ...pagesOf(parseJson(event.data)).filter(({ url }) => isNew(known, String(url)))];
          }
          const [first] = chunks;
          last = first ?? last;
          if (pages.length === 0) return chunks;
          // The end of the text cites them; some vendors list them after it, in a chunk without choices.
          const isEnd = first?.choices.some(({ finish_reason: reason }) => reason !== null);
          const isAfter = first === undefined && last?.choices.some(({ finish_reason: reason }) => reason !== null);
          if (isEnd !== true && isAfter !== true) return chunks;
          const annotations = citationsOf(pages);
          pages = [];
          isSame = false;
          if (first && isEnd) return [citedEnd(first, annotations), ...chunks.slice(1)];
          return last ? [laterChunk(last, annotations)] : chunks;
        },
        end() {
          isSame = true;
          return decoder.end();
        },
        progress: decoder.progress && (() => decoder.progress?.() ?? 'open'),
        original: () => (isSame ? decoder.original?.() : undefined),
      };
    },
  };
}

function isNew(known: Set<string>, key: string): boolean {
  const before = known.size;
  known.add(key);
  return known.size > before;
}

function pagesOf(body: unknown): readonly JsonObject[] {
  if (!isObject(body)) return [];
  const found = readArray(body['search_results']).map(readObject);
  const pages = found.length > 0 ? found : readArray(body['citations']).map((url): JsonObject => ({ url }));
  return pages.filter(({ url }) => readString(url) !== undefined);
}

/** Pages as citations without a place: the vendor does not say which part of the text a page supports. */
function citationsOf(pages: readonly JsonObject[]): readonly JsonObject[] {
  return pages.map(({ url, title }) => {
    const page = { start_index: 0, end_index: 0, title: readString(title) ?? String(url), url: String(url) };
    return { type: 'url_citation', url_citation: page };
  });
}

function citedResponse(response: ChatResponse, body: unknown): ChatResponse {
  const annotations = citationsOf(pagesOf(body));
  if (annotations.length === 0) return response;
  const choices = response.choices.map((choice) => ({ ...choice, message: { ...choice.message, annotations } }));
  return { ...response, choices };
}

function citedEnd(chunk: ChatChunk, annotations: readonly JsonObject[]): ChatChunk {
  const choices = chunk.choices.map((choice) =>
    choice.finish_reason === null ? choice : { ...choice, delta: { ...choice.delta, annotations } },
  );
  return { ...chunk, choices };
}

function laterChunk({ id, object, created, model, choices }: ChatChunk, annotations: readonly JsonObject[]): ChatChunk {
  const cited = choices.map(({ index }) => ({ index, delta: { annotations }, logprobs: null, finish_reason: null }));
  return { id, object, created, model, choices: cited };
}
