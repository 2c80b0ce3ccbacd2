import { isObject, type ReasoningDetail, readString } from '../../../core/index.ts';
import type { Block } from './types.ts';

/** Reasoning of another format's provider, as a signature that only this gateway can read. */
const SEALED = /^tgr\.([a-z]{1,32})\.([\w-]{0,128})\.(.+)$/s;

/** A piece of reasoning that came back. Unsigned, it is nobody's; Anthropic's own is kept byte for byte. */
export function readThinking(block: Block): ReasoningDetail {
  const { type } = block;
  const text = readString(block['thinking']) ?? '';
  const mark = readString(type === 'redacted_thinking' ? block['data'] : block['signature']);
  if (mark === undefined) return { kind: 'text', text, format: 'none' };
  const sealed = SEALED.exec(mark);
  if (sealed) {
    const [, format = '', id, data = ''] = sealed;
    // Beside a text it is its maker's signature; alone it is all there is.
    return { kind: text === '' ? 'encrypted' : 'text', data, format, ...(text !== '' && { text }), ...(id && { id }) };
  }
  if (type === 'redacted_thinking') return { kind: 'encrypted', data: mark, format: 'anthropic' };
  return { kind: 'text', text, signature: mark, format: 'anthropic' };
}

/** Whether a block of thinking was not signed by the format's own provider. */
export function isForeignThinking(block: unknown): boolean {
  if (!isObject(block) || (block['type'] !== 'thinking' && block['type'] !== 'redacted_thinking')) return false;
  return readThinking({ ...block, type: block['type'] }).format !== 'anthropic';
}

/** A piece of reasoning as a block. `seal` is for what another format's provider wants back. */
export function thinkingBlock(detail: ReasoningDetail, seal: (data: string) => string): Block {
  const { text = '', format } = detail;
  if (format === 'anthropic' && detail.kind === 'encrypted')
    return { type: 'redacted_thinking', data: detail.data ?? '' };
  const signature = signatureOf(detail, seal);
  const isHidden = text === '' && signature !== '' && format !== 'anthropic';
  return isHidden ? { type: 'redacted_thinking', data: signature } : { type: 'thinking', thinking: text, signature };
}

/** The signature of a piece of reasoning; empty where there is nothing to check it by. */
export function signatureOf(detail: ReasoningDetail, seal: (data: string) => string): string {
  const { data, signature, format, id } = detail;
  if (format === 'anthropic') return signature ?? '';
  const wanted = data ?? signature;
  if (!wanted || format === 'none') return '';
  const known = id && /^[\w-]{1,128}$/.test(id) ? id : '';
  return `tgr.${format}.${known}.${seal(wanted)}`;
}
