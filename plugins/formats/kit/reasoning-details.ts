import { isObject, type JsonObject, type ReasoningDetail, readArray, readString } from '../../../contract/index.ts';

/** Whose format a piece of reasoning is, by the words of relays that pass on reasoning of several vendors (OpenRouter's). */
const FORMATS: ReadonlyMap<unknown, string> = new Map([
  ['anthropic-claude-v1', 'anthropic'],
  ['openai-responses-v1', 'responses'],
  ['azure-openai-responses-v1', 'azure'],
  ['xai-responses-v1', 'xai'],
  ['google-gemini-v1', 'gemini'],
]);
const WORDS: ReadonlyMap<string, string> = new Map([...FORMATS].map(([word, format]) => [format, String(word)]));

/** Of a relay's reasoning that does not say whose it is; only a relay gets it back. */
const UNKNOWN = 'unknown';
const KIND = /^reasoning\.(text|summary|encrypted)$/;

/** A relay's `reasoning_details` (`{type: 'reasoning.text', format: 'anthropic-claude-v1', …}`) in the canonical form. */
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
 * Canonical details as a relay has them: those whose format the model behind it reads, and what only the relay understands. What a
 * client kept in the relay's own words goes back in them.
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

/** The readable text of canonical or relayed details, for vendors that want a model's thinking back as plain text. */
export function textOfDetails(details: unknown): string | undefined {
  const texts = readArray(details).map((detail) =>
    isObject(detail) ? (readString(detail['text']) ?? readString(detail['summary']) ?? '') : '',
  );
  return readString(texts.join(''));
}
