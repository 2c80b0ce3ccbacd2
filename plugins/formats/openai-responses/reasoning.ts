import {
  type DialectContext,
  type ReasoningDetail,
  readArray,
  readObject,
  readString,
} from '../../../contract/index.ts';
import { FORMAT } from './tables.ts';
import type { Item } from './types.ts';

/** What another format's maker needs back, with the name of that format; Messages writes its signatures in the same form. */
const FOREIGN = /^tgr\.([a-z]{1,32})\.[\w-]{0,128}\.(.+)$/s;

/**
 * An item of reasoning as canonical details. Another format's is one detail with its text; `data` is the seal of what its maker
 * needs back, be that a signature or the encrypted whole.
 */
export function readReasoning(item: Item): readonly ReasoningDetail[] {
  const details = readReasoningItem(item);
  const [, format, data] = FOREIGN.exec(readString(item['encrypted_content']) ?? '') ?? [];
  if (format === undefined || data === undefined) return details;
  const text = details.flatMap((detail) => detail.text ?? []).join('');
  return [text === '' ? { kind: 'encrypted', data, format } : { kind: 'text', text, data, format }];
}

/** What of a block of reasoning its maker needs back, sealed; undefined where there is nothing. */
export function sealReasoning(details: readonly ReasoningDetail[], seal: DialectContext['seal']): string | undefined {
  const own = details.find(({ format, data }) => format === FORMAT && data !== undefined);
  if (own?.data !== undefined) return seal(own.data);
  for (const { format, data, signature } of details) {
    const wanted = data ?? signature;
    if (wanted && format !== FORMAT && format !== 'none') return `tgr.${format}..${seal(wanted)}`;
  }
  return undefined;
}

/** Whether reasoning is another format's, which no provider of this one can read. */
export function isForeign(data: string): boolean {
  return FOREIGN.test(data);
}

/** Whether a text was sealed by a gateway; whose it is only core can tell. */
export function isSealed(data: string): boolean {
  return data.startsWith('tg1.');
}
/** An item of reasoning as canonical details. */
export function readReasoningItem(item: Item): readonly ReasoningDetail[] {
  const id = readString(item['id']);
  const base = { format: FORMAT, ...(id !== undefined && { id }) };
  const texts = (list: unknown, kind: 'summary' | 'text'): readonly ReasoningDetail[] =>
    readArray(list).flatMap((part) => {
      const text = readString(readObject(part)['text']);
      return text === undefined ? [] : [{ kind, text, ...base }];
    });
  const data = readString(item['encrypted_content']);
  return [
    ...texts(item['summary'], 'summary'),
    ...texts(item['content'], 'text'),
    ...(data === undefined ? [] : [{ kind: 'encrypted', data, ...base } as const]),
  ];
}
