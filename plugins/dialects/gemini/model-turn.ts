import {
  type ChatMessage,
  type ContentPart,
  isObject,
  type JsonObject,
  type ReasoningDetail,
  readObject,
  readString,
  type ToolCall,
} from '../../../core/index.ts';
import { kindOf, opaquePart, partsOf } from './read-parts.ts';
import { isPacked, signatureField, unpackReasoning } from './signatures.ts';
import { fieldOf, nameIn } from './spelling.ts';

/** A call of the history. `id` is the one that results name it by; undefined when the caller gave none. */
export interface FoundCall {
  readonly id: string | undefined;
  readonly call: ToolCall;
}

type Block =
  | {
      readonly kind: 'reasoning' | 'content';
      readonly text: string;
      readonly signature: string | undefined;
      readonly at: string;
      readonly from: string;
    }
  | { readonly kind: 'opaque'; readonly part: ContentPart; readonly at: string }
  | { readonly kind: 'image'; readonly url: string; readonly at: string }
  | { readonly kind: 'tool'; readonly call: ToolCall; readonly at: string };

/** A turn of the model, which may be spread over contents. */
export interface ModelTurn {
  readonly calls: readonly FoundCall[];
  add(content: JsonObject, at: string): void;
  /** The canonical message, and where its pieces stand; undefined when nothing was said. */
  message(): { readonly message: ChatMessage; readonly places: readonly (readonly [string, string])[] } | undefined;
}

/** `prefix` begins the ids of calls that the caller gave none. */
export function createModelTurn(prefix: string): ModelTurn {
  const blocks: Block[] = [];
  const calls: FoundCall[] = [];
  const addText = (block: Extract<Block, { text: string }>): void => {
    const last = blocks.at(-1);
    // Pieces of a stream are pieces of one text; a signature that comes behind a text is the text's.
    const isPiece =
      last?.kind === block.kind && last.signature === undefined && (last.from !== block.from || block.text === '');
    if (isPiece) blocks[blocks.length - 1] = { ...last, text: last.text + block.text, signature: block.signature };
    else if (block.text !== '' || block.signature !== undefined) blocks.push(block);
  };
  return {
    calls,
    add(content, from) {
      for (const [part, at] of partsOf(content, from)) {
        const signature = readString(fieldOf(part, 'thoughtSignature'));
        const kind = kindOf(part);
        if (kind === 'text') {
          const text = readString(fieldOf(part, 'text')) ?? '';
          addText({ kind: part['thought'] === true ? 'reasoning' : 'content', text, signature, at, from });
        } else if (kind === 'functionCall') {
          if (signature !== undefined && isPacked(signature))
            addText({ kind: 'reasoning', text: '', signature, at, from });
          const found = readCall(part, signature, `${prefix}_${calls.length}`);
          calls.push(found);
          blocks.push({ kind: 'tool', call: found.call, at: `${at}.${nameIn(part, 'functionCall')}` });
        } else blocks.push(readOther(part, at));
      }
    },
    message: () => (blocks.length === 0 ? undefined : messageOf(blocks)),
  };
}

function readCall(part: JsonObject, signature: string | undefined, ownId: string): FoundCall {
  const called = readObject(fieldOf(part, 'functionCall'));
  const id = readString(called['id']);
  const own = signature !== undefined && !isPacked(signature) ? signature : undefined;
  return {
    id,
    call: {
      id: id ?? ownId,
      type: 'function',
      function: { name: String(called['name']), arguments: JSON.stringify(called['args'] ?? {}) },
      ...signatureField(own),
    },
  };
}

function readOther(part: JsonObject, at: string): Block {
  const inline = fieldOf(part, 'inlineData');
  const type = isObject(inline) ? (readString(fieldOf(inline, 'mimeType')) ?? '') : '';
  const data = isObject(inline) ? readString(fieldOf(inline, 'data')) : undefined;
  if (data !== undefined && type.startsWith('image/')) return { kind: 'image', url: `data:${type};base64,${data}`, at };
  return { kind: 'opaque', part: opaquePart(part), at };
}

interface Pieces {
  readonly parts: ContentPart[];
  readonly details: ReasoningDetail[];
  readonly calls: ToolCall[];
  readonly images: JsonObject[];
  readonly order: string[];
  readonly places: [string, string][];
  reasoning: string;
}

function messageOf(blocks: readonly Block[]): ReturnType<ModelTurn['message']> {
  const pieces: Pieces = {
    parts: [],
    details: [],
    calls: [],
    images: [],
    order: [],
    places: [['', placeOf(blocks)]],
    reasoning: '',
  };
  for (const block of blocks) addBlock(pieces, block);
  const { parts, details, calls, images, order, reasoning, places } = pieces;
  const [first, ...others] = parts;
  const isText = first?.type === 'text' && others.length === 0;
  const isPlain = isText && typeof first['text'] === 'string';
  const message: ChatMessage = {
    role: 'assistant',
    content: isPlain ? String(first['text']) : parts.length > 0 ? parts : null,
    ...(isPlain && isObject(first['extra_content']) && { extra_content: first['extra_content'] }),
    ...(reasoning !== '' && { reasoning_content: reasoning }),
    ...(details.some(({ format }) => format !== 'none') && { reasoning_details: details }),
    ...(calls.length > 0 && { tool_calls: calls }),
    ...(images.length > 0 && { images }),
    ...(!isUsual(order) && { order }),
  };
  return { message, places };
}

function addBlock(pieces: Pieces, block: Block): void {
  const { parts, details, calls, images, order, places } = pieces;
  switch (block.kind) {
    case 'reasoning':
      order.push(`reasoning:${details.length}`);
      details.push(detailOf(block.text, block.signature));
      pieces.reasoning += block.text;
      break;
    case 'content':
    case 'opaque':
      order.push(`content:${parts.length}`);
      places.push([`.content[${parts.length}]`, block.at]);
      parts.push(
        block.kind === 'opaque' ? block.part : { type: 'text', text: block.text, ...signatureField(block.signature) },
      );
      break;
    case 'tool':
      order.push(`tool:${calls.length}`);
      places.push([`.tool_calls[${calls.length}]`, block.at]);
      calls.push(block.call);
      break;
    default:
      images.push({ type: 'image_url', image_url: { url: block.url } });
  }
}

function detailOf(text: string, signature: string | undefined): ReasoningDetail {
  if (signature === undefined) return { kind: 'text', text, format: 'none' };
  return unpackReasoning(signature, text) ?? { kind: 'text', text, signature, format: 'gemini' };
}

/** The content that a turn begins in. */
function placeOf([first]: readonly Block[]): string {
  return first?.at.replace(/\.parts(\[\d+\])?(\.\w+)?$/, '') ?? '';
}

const RANK: Readonly<Record<string, number>> = Object.freeze({ reasoning: 0, content: 1, tool: 2 });

/** Whether the blocks come as they do where nothing is said of it: reasoning, content, tools. */
function isUsual(order: readonly string[]): boolean {
  const ranks = order.map((name) => RANK[name.split(':')[0] ?? ''] ?? 0);
  return ranks.every((rank, at) => at === 0 || rank >= (ranks[at - 1] ?? 0));
}
