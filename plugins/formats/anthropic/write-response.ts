import {
  type AssistantMessage,
  type ChatResponse,
  type DialectContext,
  isObject,
  type JsonObject,
  parseExact,
  parseJson,
  type ReasoningDetail,
  readArray,
  readObject,
} from '../../../contract/index.ts';
import { parseArguments, transcriptOf } from '../kit/index.ts';
import { serverToolBlocks } from './servers.ts';
import { anthropicCallId, valueOfOpaque, writeFinish } from './tables.ts';
import { writeThinking } from './thinking.ts';
import type { Block, MessagesRequest } from './types.ts';
import { writeUsage } from './usage.ts';

/** Writes a canonical response as a message. */
export function writeMessage(response: ChatResponse, context: DialectContext<MessagesRequest>): object {
  const [choice] = response.choices;
  const message = choice?.message;
  const content = message ? blocksOf(message, context) : [];
  return {
    id: messageId(context),
    type: 'message',
    role: 'assistant',
    model: response.model,
    content,
    ...writeFinish({
      finishReason: choice?.finish_reason,
      finish: choice?.finish,
      hasCalls: content.some(({ type }) => type === 'tool_use'),
      isRefused: (message?.refusal ?? '') !== '',
    }),
    usage: writeUsage(response.usage, context.estimatedInputTokens),
  };
}

export function messageId({ id }: Pick<DialectContext, 'id'>): string {
  return `msg_${id}`;
}

/** Replaces characters of a call id that the format does not allow. Longer ids stay: they may carry a signature. */
export function writeCallId(id: string): string {
  return /^[A-Za-z0-9_-]+$/.test(id) ? id : anthropicCallId(id);
}

/** Returns true if the caller wants to see the model's thinking. */
export function showsThinking({ input: { body } }: DialectContext<MessagesRequest>): boolean {
  const { type, display } = readObject(body.thinking);
  return type !== 'disabled' && display !== 'omitted';
}

/** Converts a citation; undefined if the format cannot express it. `text` contains the citation. */
export function writeCitation(annotation: unknown, text: string, { omit }: Writing): JsonObject | undefined {
  const { type, dialect, value, url_citation: cited } = readObject(annotation);
  if (dialect === 'messages' && isObject(value)) return value;
  if (type !== 'url_citation' || !isObject(cited) || typeof cited['url'] !== 'string') {
    omit?.('annotations');
    return undefined;
  }
  const { url, title, start_index: start, end_index: end } = cited;
  const isPlaced = typeof start === 'number' && typeof end === 'number';
  return {
    type: 'web_search_result_location',
    url,
    title: typeof title === 'string' ? title : null,
    cited_text: isPlaced ? text.slice(start, end) : '',
    encrypted_index: '',
  };
}

type Writing = Pick<DialectContext, 'omit'>;

/**
 * Reports images and audio as omitted, which blocks of this format cannot hold. The transcript of audio becomes text.
 */
export function reportOmitted(spoken: Readonly<Record<string, unknown>>, { omit }: Writing): void {
  if (readArray(spoken['images']).length > 0) omit?.('images');
  if (readObject(spoken['audio'])['data'] !== undefined) omit?.('audio');
}

/** Blocks of other kinds from a provider of this format. */
export function opaqueBlocks(message: Readonly<Record<string, unknown>>): readonly Block[] {
  return readArray(message['opaque']).flatMap((part) => valueOfOpaque(part) ?? []);
}

/** Blocks of a message in its own order; default: reasoning, text, other blocks, calls. */
function blocksOf(message: AssistantMessage, context: DialectContext<MessagesRequest>): readonly Block[] {
  reportOmitted(message, context);
  const kinds: Readonly<Record<string, readonly Block[]>> = {
    reasoning: thinkingBlocks(message, context),
    server: serverToolBlocks(message),
    content: textBlocks(message, context),
    opaque: opaqueBlocks(message),
    tool: (message.tool_calls ?? []).map(({ id, function: called }) => ({
      type: 'tool_use',
      id: writeCallId(id),
      name: called.name,
      input: readArguments(called.arguments),
    })),
  };
  const usual = Object.entries(kinds).flatMap(([kind, blocks]) => blocks.map((_, index) => `${kind}:${index}`));
  const written = [...new Set([...(message.order ?? []).filter((entry) => usual.includes(entry)), ...usual])];
  return written.flatMap((entry) => {
    const [kind = '', index] = entry.split(':');
    return kinds[kind]?.[Number(index)] ?? [];
  });
}

function textBlocks(message: AssistantMessage, context: Writing): readonly Block[] {
  const { content, refusal, annotations } = message;
  const text = content || transcriptOf(message) || '';
  const citations = (annotations ?? []).flatMap((annotation) => writeCitation(annotation, text, context) ?? []);
  const isEmpty = text === '' && citations.length === 0;
  const shown = isEmpty ? [] : [{ type: 'text', text, ...(citations.length > 0 && { citations }) }];
  return refusal ? [...shown, { type: 'text', text: refusal }] : shown;
}

function thinkingBlocks(
  { reasoning_content: shown, reasoning_details: details = [] }: AssistantMessage,
  context: DialectContext<MessagesRequest>,
): readonly Block[] {
  const blockOf = (detail: ReasoningDetail): Block => writeThinking(detail, context.seal);
  // Providers of this format require thinking back even without its text.
  if (!showsThinking(context))
    return details
      .filter(({ format }) => format === 'anthropic')
      .map((detail) => blockOf(detail.kind === 'encrypted' ? detail : { ...detail, text: '' }));
  const visible = shown ?? '';
  if (details.some(({ text }) => text) || visible === '') return details.map(blockOf);
  // Visible thinking without a signature belongs to the first detail.
  const [first = { kind: 'text', format: 'none' } satisfies ReasoningDetail, ...rest] = details;
  if (first.format === 'anthropic')
    return [{ type: 'thinking', thinking: visible, signature: '' }, ...details.map(blockOf)];
  return [{ ...first, text: visible }, ...rest].map(blockOf);
}

/**
 * Arguments of a call as an object. Truncated arguments keep their complete values. Any other non-object is kept as
 * text under `arguments`.
 */
function readArguments(text: string): JsonObject {
  const isCut = parseJson(text) === undefined && text.trimStart().startsWith('{');
  return (isCut ? closeJson(text) : undefined) ?? parseArguments(text);
}

/** Maximum number of earlier ends to try before nothing is kept. */
const MAX_TRIES = 64;

/** Closes a truncated JSON object at its end, or after the last complete value. */
function closeJson(text: string): JsonObject | undefined {
  const scan = new JsonScan();
  /** Ends of values, with the text that closes the object there. */
  const ends: { readonly at: number; readonly closers: string }[] = [];
  for (let at = 0; at < text.length; at += 1) {
    const char = text.charAt(at);
    scan.push(char);
    if (scan.inString) continue;
    if (char === ',') ends.push({ at, closers: scan.closers });
    else if (char === '{' || char === '[') ends.push({ at: at + 1, closers: scan.closers });
    if (ends.length > 2 * MAX_TRIES) ends.splice(0, MAX_TRIES);
  }
  const cuts = ends.toReversed().map(({ at, closers }) => text.slice(0, at) + closers);
  for (const cut of [`${text}${scan.inString ? '"' : ''}${scan.closers}`, ...cuts].slice(0, MAX_TRIES)) {
    const value = parseExact(cut);
    if (isObject(value)) return value;
  }
  return undefined;
}

/** Tracks the open structures of JSON text as it arrives. */
export class JsonScan {
  readonly #open: string[] = [];
  #hasBegun = false;
  #isEscaped = false;
  inString = false;

  push(text: string): void {
    for (const char of text) {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (this.inString) {
        if (char === '\\') this.#isEscaped = true;
        else if (char === '"') this.inString = false;
      } else if (char === '"') this.inString = true;
      else if (char === '{' || char === '[') {
        this.#open.push(char === '{' ? '}' : ']');
        this.#hasBegun = true;
      } else if (char === '}' || char === ']') this.#open.pop();
    }
  }

  /** Text that closes all open structures. */
  get closers(): string {
    return this.#open.toReversed().join('');
  }

  /** True once an object or array has started and ended. */
  get isComplete(): boolean {
    return this.#hasBegun && this.#open.length === 0 && !this.inString;
  }
}
