import { isObject, type JsonObject, type ReasoningDetail, readArray, readString } from '../../../contract/index.ts';

/** Formats of reasoning details by the names that relays of several vendors use (OpenRouter's). */
const FORMATS: ReadonlyMap<unknown, string> = new Map([
  ['anthropic-claude-v1', 'anthropic'],
  ['openai-responses-v1', 'responses'],
  ['azure-openai-responses-v1', 'azure'],
  ['xai-responses-v1', 'xai'],
  ['google-gemini-v1', 'gemini'],
]);
const WORDS: ReadonlyMap<string, string> = new Map([...FORMATS].map(([word, format]) => [format, String(word)]));

/** Relay reasoning without a known format; only a relay gets it back. */
const UNKNOWN = 'unknown';
const KIND = /^reasoning\.(text|summary|encrypted)$/;

/**
 * Reads a relay's `reasoning_details` (`{type: 'reasoning.text', format: 'anthropic-claude-v1', …}`) into the
 * canonical form.
 */
export function readRelayDetails(value: unknown): readonly ReasoningDetail[] {
  return readArray(value).flatMap((detail) => (isObject(detail) ? (readDetail(detail) ?? []) : []));
}

function readDetail(detail: JsonObject): ReasoningDetail | undefined {
  const kind = KIND.exec(readString(detail['type']) ?? '')?.[1] as ReasoningDetail['kind'] | undefined;
  if (kind === undefined) return undefined;
  const text = readString(kind === 'summary' ? detail['summary'] : detail['text']);
  const data = readString(detail['data']);
  const signature = readString(detail['signature']);
  const id = readString(detail['id']);
  if (text === undefined && data === undefined && signature === undefined) return undefined;
  return {
    kind,
    ...(text !== undefined && { text }),
    ...(data !== undefined && { data }),
    ...(signature !== undefined && { signature }),
    format: FORMATS.get(detail['format']) ?? UNKNOWN,
    ...(id !== undefined && { id }),
  };
}

/**
 * Writes canonical details in a relay's form: those in `formats`, which the model reads, and those that only the
 * relay understands. Details that a client kept in the relay's form pass unchanged.
 */
export function writeRelayDetails(details: unknown, formats: readonly string[]): readonly JsonObject[] {
  return readArray(details).flatMap((detail, index): readonly JsonObject[] => {
    if (!isObject(detail)) return [];
    const { kind, text, data, signature, id } = detail;
    if (kind === undefined) return KIND.test(readString(detail['type']) ?? '') ? [detail] : [];
    const format = readString(detail['format']) ?? UNKNOWN;
    if (format !== UNKNOWN && !formats.includes(format)) return [];
    return [
      {
        type: `reasoning.${String(kind)}`,
        ...(text !== undefined && { [kind === 'summary' ? 'summary' : 'text']: text }),
        ...(data !== undefined && data !== signature && { data }),
        ...(signature !== undefined && { signature }),
        ...(id !== undefined && { id }),
        format: WORDS.get(format) ?? UNKNOWN,
        index,
      },
    ];
  });
}

/** Readable text of canonical or relay details, for vendors that take a model's thinking back as plain text. */
export function textOfDetails(details: unknown): string | undefined {
  const texts = readArray(details).map((detail) =>
    isObject(detail) ? (readString(detail['text']) ?? readString(detail['summary']) ?? '') : '',
  );
  return readString(texts.join(''));
}
