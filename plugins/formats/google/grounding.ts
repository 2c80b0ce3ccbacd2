import { isObject, type JsonObject, readArray, readCount, readObject, readString } from '../../../contract/index.ts';

/**
 * Grounding of a candidate's text as OpenAI's citations: pages and places as `url_citation`, documents of a file
 * search store as `file_citation`. `text` is the candidate's text so far; Google counts positions in bytes. Citations
 * in `known` are not repeated. Source: https://ai.google.dev/api/generate-content#GroundingMetadata
 */
export function readGrounding(candidate: JsonObject, text: string, known: Set<string>): readonly JsonObject[] {
  const { groundingChunks, groundingSupports } = readObject(candidate['groundingMetadata']);
  const chunks = readArray(groundingChunks).map(readObject);
  if (chunks.length === 0) return [];
  const supports = readArray(groundingSupports).map(readObject);
  const used = new Set<unknown>();
  const cited = supports.flatMap(({ segment, groundingChunkIndices: indices }) => {
    const place = placeOf(readObject(segment), text);
    return readArray(indices).map((index) => {
      used.add(index);
      return citationOf(chunks[Number(index)], place);
    });
  });
  const end: TextRange = { start_index: text.length, end_index: text.length };
  const rest = chunks.map((chunk, index) => (used.has(index) ? undefined : citationOf(chunk, end)));
  return [...cited, ...rest].filter((citation): citation is JsonObject => {
    const key = JSON.stringify(citation ?? null);
    const isNew = citation !== undefined && !known.has(key);
    known.add(key);
    return isNew;
  });
}

interface TextRange {
  readonly start_index: number;
  readonly end_index: number;
}

function placeOf(segment: JsonObject, text: string): TextRange {
  const bytes = Buffer.from(text);
  const at = (place: unknown) => bytes.subarray(0, readCount(place) ?? 0).toString().length;
  const place = { start_index: at(segment['startIndex']), end_index: at(segment['endIndex']) };
  const quoted = readString(segment['text']);
  // Positions count from the beginning of a part, and a text may have several parts.
  if (quoted === undefined || text.slice(place.start_index, place.end_index) === quoted) return place;
  const found = text.lastIndexOf(quoted);
  return found < 0 ? place : { start_index: found, end_index: found + quoted.length };
}

function citationOf(chunk: JsonObject | undefined, place: TextRange): JsonObject | undefined {
  const { web, maps, retrievedContext, image } = chunk ?? {};
  const { uri, sourceUri, title } = readObject(web ?? maps ?? retrievedContext ?? image);
  const url = readString(sourceUri) ?? readString(uri);
  const name = readString(title) ?? url;
  if (name === undefined) return undefined;
  if (url !== undefined && /^https?:/i.test(url))
    return { type: 'url_citation', url_citation: { url, title: name, ...place } };
  return { type: 'file_citation', file_citation: { file_id: url ?? name, filename: name, index: place.end_index } };
}

/** Writes citations as grounding; undefined if the format can express none of them. */
export function writeGrounding(annotations: readonly unknown[], text: string): JsonObject | undefined {
  const chunks: JsonObject[] = [];
  const supports = annotations.flatMap((annotation) => {
    const { url_citation: page, file_citation: file } = readObject(annotation);
    const { url, title, start_index: start, end_index: end } = readObject(page);
    const { filename, file_id: id } = readObject(file);
    if (typeof url === 'string') chunks.push({ web: { uri: url, title: readString(title) ?? url } });
    else if (isObject(file))
      chunks.push({ retrievedContext: { uri: String(id ?? ''), title: String(filename ?? id ?? '') } });
    else return [];
    if (typeof start !== 'number' || typeof end !== 'number' || end <= start) return [];
    const bytesTo = (place: number) => Buffer.byteLength(text.slice(0, place));
    const segment = { startIndex: bytesTo(start), endIndex: bytesTo(end), text: text.slice(start, end) };
    return [{ segment, groundingChunkIndices: [chunks.length - 1] }];
  });
  return chunks.length === 0 ? undefined : { groundingChunks: chunks, groundingSupports: supports };
}
