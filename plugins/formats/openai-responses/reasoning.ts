import {
  type DialectContext,
  type ReasoningDetail,
  readArray,
  readObject,
  readString,
} from '../../../contract/index.ts';
import { FORMAT } from './tables.ts';
import type { Item } from './types.ts';

/**
 * Data that another format's vendor requires back, with the name of that format. Messages writes its signatures in
 * the same form.
 */
const FOREIGN = /^tgr\.([a-z]{1,32})\.[\w-]{0,128}\.(.+)$/s;

/**
 * Reads a reasoning item as canonical details. Another format's item is one detail with its text. `data` is the
 * sealed data that its vendor requires back: a signature or the encrypted reasoning.
 */
export function readReasoning(item: Item): readonly ReasoningDetail[] {
  const details = readReasoningItem(item);
  const [, format, data] = FOREIGN.exec(readString(item['encrypted_content']) ?? '') ?? [];
  if (format === undefined || data === undefined) return details;
  const text = details.flatMap((detail) => detail.text ?? []).join('');
  return [text === '' ? { kind: 'encrypted', data, format } : { kind: 'text', text, data, format }];
}

/** Seals the data of a reasoning block that its vendor requires back; undefined without any. */
export function sealReasoning(details: readonly ReasoningDetail[], seal: DialectContext['seal']): string | undefined {
  const own = details.find(({ format, data }) => format === FORMAT && data !== undefined);
  if (own?.data !== undefined) return seal(own.data);
  for (const { format, data, signature } of details) {
    const wanted = data ?? signature;
    if (wanted && format !== FORMAT && format !== 'none') return `tgr.${format}..${seal(wanted)}`;
  }
  return undefined;
}

/** Returns true for reasoning of another format, which providers of this one cannot read. */
export function isForeign(data: string): boolean {
  return FOREIGN.test(data);
}

/** Returns true if a gateway sealed a text. Only core can verify for whom. */
export function isSealed(data: string): boolean {
  return data.startsWith('tg1.');
}
/** Reads a reasoning item of this format as canonical details. */
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
