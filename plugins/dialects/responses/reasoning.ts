import { type DialectContext, isObject, type ReasoningDetail, readArray, readString } from '../../../core/index.ts';
import type { Item } from './types.ts';

/** An item of reasoning, as the details that a canonical message has of it. */
export function readReasoning(item: Item): readonly ReasoningDetail[] {
  const id = readString(item['id']);
  const base = { format: 'responses', ...(id !== undefined && { id }) };
  const texts = (list: unknown, kind: 'summary' | 'text'): readonly ReasoningDetail[] =>
    readArray(list).flatMap((part) => {
      const text = isObject(part) ? readString(part['text']) : undefined;
      return text === undefined ? [] : [{ kind, text, ...base }];
    });
  const data = readString(item['encrypted_content']);
  return [
    ...texts(item['summary'], 'summary'),
    ...texts(item['content'], 'text'),
    ...(data !== undefined ? [{ kind: 'encrypted', data, ...base } as const] : []),
  ];
}

/** The field under which details of another format stand inside a seal. */
const FOREIGN = 'reasoning_details';

/**
 * What of a block of reasoning its maker needs back, sealed; undefined where there is nothing. What another format than this one
 * needs back (a signature, say) is sealed with all of its details: core gives them to that format's codec again.
 */
export function sealReasoning(details: readonly ReasoningDetail[], seal: DialectContext['seal']): string | undefined {
  const own = details.find(({ format, data }) => format === 'responses' && data !== undefined);
  if (own?.data !== undefined) return seal(own.data);
  const foreign = details.filter(
    ({ format, data, signature }) => format !== 'responses' && (data !== undefined || signature !== undefined),
  );
  return foreign.length > 0 ? seal(JSON.stringify({ [FOREIGN]: foreign })) : undefined;
}

/** Whether an opened seal holds another format's details, which no vendor of this one can read. */
export function isForeign(data: string): boolean {
  return data.startsWith(`{"${FOREIGN}":`);
}

/** Whether a text was sealed by a gateway; whose it is only core can tell. */
export function isSealed(data: string): boolean {
  return data.startsWith('tg1.');
}
