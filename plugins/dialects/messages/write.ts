import {
  type AssistantMessage,
  type ChatResponse,
  type DialectContext,
  isObject,
  type JsonObject,
  type ReasoningDetail,
  readObject,
} from '../../../core/index.ts';
import { toolCallId } from '../../providers/kit/index.ts';
import { stopOf, usageOf } from './endings.ts';
import { readArguments } from './partial-json.ts';
import { thinkingBlock } from './reasoning.ts';
import type { Block, MessagesRequest } from './types.ts';

/** What the format takes as an id of a call. */
const MAX_ID = 64;

/** A whole response as a message. */
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
    ...stopOf({
      finishReason: choice?.finish_reason,
      finish: choice?.finish,
      hasCalls: content.some(({ type }) => type === 'tool_use'),
      isRefused: (message?.refusal ?? '') !== '',
    }),
    usage: usageOf(response.usage, context.estimatedInputTokens),
  };
}

export function messageId({ id }: Pick<DialectContext, 'id'>): string {
  return `msg_${id}`;
}

/** A call's id in the letters that the format takes. Longer ones stay: they may carry a signature that comes back in them. */
export function callId(id: string): string {
  return /^[A-Za-z0-9_-]+$/.test(id) ? id : toolCallId(id, MAX_ID);
}

/** Whether the caller wants to see what the model thinks. */
export function showsThinking({ input: { body } }: DialectContext<MessagesRequest>): boolean {
  const { type, display } = readObject(body.thinking);
  return type !== 'disabled' && display !== 'omitted';
}

/** What a citation is here; undefined for one that the format cannot say. `text` is what it stands in. */
export function citationOf(annotation: unknown, text: string): JsonObject | undefined {
  const { type, dialect, value, url_citation: cited } = readObject(annotation);
  if (type === 'opaque') return dialect === 'messages' && isObject(value) ? value : undefined;
  if (type !== 'url_citation' || !isObject(cited) || typeof cited['url'] !== 'string') return undefined;
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

/** Blocks of other kinds that a response of this format's own provider has. */
export function opaqueBlocks(message: Readonly<Record<string, unknown>>): readonly Block[] {
  const { opaque } = message;
  return (Array.isArray(opaque) ? opaque : []).flatMap((part): readonly Block[] => {
    const { dialect, value } = readObject(part);
    if (dialect !== 'messages' || !isObject(value) || typeof value['type'] !== 'string') return [];
    return [{ ...value, type: value['type'] }];
  });
}

/** The blocks of a message in their order: reasoning, text, calls unless it says another one. */
function blocksOf(message: AssistantMessage, context: DialectContext<MessagesRequest>): readonly Block[] {
  const kinds: Readonly<Record<string, readonly Block[]>> = {
    reasoning: showsThinking(context) ? thinkingBlocks(message, context) : signedOnly(message, context),
    content: textBlocks(message),
    opaque: opaqueBlocks(message),
    tool: (message.tool_calls ?? []).map(({ id, function: called }) => ({
      type: 'tool_use',
      id: callId(id),
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

function textBlocks({ content, refusal, annotations }: AssistantMessage): readonly Block[] {
  const text = content ?? '';
  const citations = (annotations ?? []).flatMap((annotation) => citationOf(annotation, text) ?? []);
  const said = text === '' ? [] : [{ type: 'text', text, ...(citations.length > 0 && { citations }) }];
  return refusal ? [...said, { type: 'text', text: refusal }] : said;
}

function thinkingBlocks(
  { reasoning_content: shown, reasoning_details: details = [] }: AssistantMessage,
  { seal }: DialectContext<MessagesRequest>,
): readonly Block[] {
  const visible = shown ?? '';
  if (details.some(({ text }) => text) || visible === '') return details.map((detail) => thinkingBlock(detail, seal));
  // What was shown has no signature of its own: the first one is about it.
  const [first = { kind: 'text', format: 'none' } satisfies ReasoningDetail, ...rest] = details;
  if (first.format === 'anthropic')
    return [
      { type: 'thinking', thinking: visible, signature: '' },
      ...details.map((detail) => thinkingBlock(detail, seal)),
    ];
  return [{ ...first, text: visible }, ...rest].map((detail) => thinkingBlock(detail, seal));
}

/** Without its text, thinking of the format's own provider is still wanted back. */
function signedOnly(
  { reasoning_details: details = [] }: AssistantMessage,
  context: DialectContext<MessagesRequest>,
): readonly Block[] {
  return details
    .filter(({ format }) => format === 'anthropic')
    .map((detail) => thinkingBlock(detail.kind === 'encrypted' ? detail : { ...detail, text: '' }, context.seal));
}
