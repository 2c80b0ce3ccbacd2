import { isObject, type JsonObject, type ReasoningDetail, readArray, readString } from '../../../core/index.ts';

/** `thinking_blocks` of LiteLLM's clients, which are Anthropic's blocks, as details of reasoning. An unsigned one is nobody's. */
export function readThinkingBlocks(value: unknown): readonly ReasoningDetail[] {
  return readArray(value).flatMap((block): readonly ReasoningDetail[] => {
    if (!isObject(block)) return [];
    const data = readString(block['data']);
    if (block['type'] === 'redacted_thinking')
      return data === undefined ? [] : [{ kind: 'encrypted', data, format: 'anthropic' }];
    const text = typeof block['thinking'] === 'string' ? block['thinking'] : '';
    const signature = readString(block['signature']);
    if (block['type'] !== 'thinking' || (text === '' && signature === undefined)) return [];
    return [
      { kind: 'text', text, ...(signature === undefined ? { format: 'none' } : { signature, format: 'anthropic' }) },
    ];
  });
}

/** The details of Anthropic's format as `thinking_blocks`. */
export function writeThinkingBlocks(details: readonly ReasoningDetail[]): readonly JsonObject[] {
  return details.flatMap(({ kind, text = '', data, signature, format }): readonly JsonObject[] => {
    if (format !== 'anthropic') return [];
    if (kind === 'encrypted') return data === undefined ? [] : [{ type: 'redacted_thinking', data }];
    return signature === undefined ? [] : [{ type: 'thinking', thinking: text, signature }];
  });
}
