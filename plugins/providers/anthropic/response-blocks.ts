import {
  isObject,
  type JsonObject,
  type ReasoningDetail,
  readArray,
  readString,
  type ToolCall,
} from '../../../core/index.ts';
import { ANSWER_TOOL } from '../kit/index.ts';

/** The content of a message, by kind. */
export interface ResponseBlocks {
  readonly text: string;
  readonly reasoning: string;
  readonly details: readonly ReasoningDetail[];
  readonly calls: readonly ToolCall[];
  readonly annotations: readonly JsonObject[];
  /** Blocks of the vendor's own tools, and kinds that are not known here. */
  readonly opaque: readonly JsonObject[];
  /** How they stood, unless as everybody expects: reasoning, text, calls. */
  readonly order?: readonly string[];
}

const KINDS = Object.freeze(['reasoning', 'content', 'opaque', 'tool']);

/** Reads the blocks of a message. */
export function readBlocks(content: unknown): ResponseBlocks {
  let text = '';
  let formed: string | undefined;
  let reasoning = '';
  const details: ReasoningDetail[] = [];
  const calls: ToolCall[] = [];
  const annotations: JsonObject[] = [];
  const opaque: JsonObject[] = [];
  const order: string[] = [];
  for (const block of readArray(content).filter(isObject)) {
    const { type } = block;
    if (type === 'text') {
      const added = readString(block['text']) ?? '';
      annotations.push(...readCitations(block['citations'], text.length, added));
      text += added;
      order.push('content:0');
    } else if (type === 'thinking' || type === 'redacted_thinking') {
      reasoning += readString(block['thinking']) ?? '';
      const detail = thinkingDetail(block);
      if (detail) order.push(`reasoning:${details.push(detail) - 1}`);
    } else if (type === 'tool_use') {
      const { id, name, input } = block;
      const json = JSON.stringify(input ?? {});
      if (name === ANSWER_TOOL) formed = json;
      else if (typeof id === 'string' && typeof name === 'string') {
        order.push(`tool:${calls.push({ id, type: 'function', function: { name, arguments: json } }) - 1}`);
      }
    } else if (typeof type === 'string') order.push(`opaque:${opaque.push(opaqueBlock(block)) - 1}`);
  }
  // A formed answer is the whole content: words beside it would break its form.
  const known = { text: formed ?? text, reasoning, details, calls, annotations, opaque };
  return isUsual(order) ? known : { ...known, order: [...new Set(order)] };
}

/** A block of thinking, as the vendor wants it back; undefined without anything to check it by. */
export function thinkingDetail(block: JsonObject): ReasoningDetail | undefined {
  const { type, thinking } = block;
  const signature = readString(block['signature']);
  const data = readString(block['data']);
  if (type === 'redacted_thinking') return data ? { kind: 'encrypted', data, format: 'anthropic' } : undefined;
  if (typeof thinking !== 'string' || !signature) return undefined;
  return { kind: 'text', text: thinking, signature, format: 'anthropic' };
}

/** A block that nobody else understands. */
export function opaqueBlock(value: JsonObject): JsonObject {
  return { type: 'opaque', dialect: 'messages', value };
}

/** What a text cites: pages as everybody has them, with where the text stands, anything else for those who know the format. */
export function readCitations(citations: unknown, start: number, text: string): readonly JsonObject[] {
  return readArray(citations)
    .filter(isObject)
    .flatMap((citation) => {
      const own = opaqueBlock(citation);
      const { type, url, title } = citation;
      if (type !== 'web_search_result_location' || typeof url !== 'string') return [own];
      const end_index = start + text.length;
      return [
        {
          ...own,
          type: 'url_citation',
          url_citation: { url, title: readString(title) ?? url, start_index: start, end_index },
        },
      ];
    });
}

function isUsual(order: readonly string[]): boolean {
  const ranks = [...new Set(order)].map((entry) => KINDS.indexOf(entry.split(':')[0] ?? ''));
  return ranks.every((rank, index) => index === 0 || rank >= (ranks[index - 1] ?? 0));
}
