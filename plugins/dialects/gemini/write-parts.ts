import {
  type AssistantMessage,
  isObject,
  type JsonObject,
  parseJson,
  type ReasoningDetail,
  readArray,
  readObject,
  readString,
  type ToolCall,
} from '../../../core/index.ts';
import { readDataUrl } from '../../providers/kit/index.ts';
import { hiddenReasoning, packReasoning, plainCallId, type Seal, signatureOf } from './signatures.ts';
import type { WrittenPart } from './types.ts';

/** The parts of a message, in the order in which the model made them. */
export interface WrittenMessage {
  readonly parts: readonly WrittenPart[];
  /** Whether a call was left out because its arguments are no JSON object: half a call is never handed out. */
  readonly isBroken: boolean;
}

/** A message as parts; its thinking only where the caller wants to see it. */
export function writeParts(message: AssistantMessage, seal: Seal, withThoughts: boolean): WrittenMessage {
  const hidden = withThoughts ? [] : hiddenReasoning(message.reasoning_details);
  const calls = (message.tool_calls ?? []).map((call, at) => callPart(call, seal, hidden[at]));
  const thoughts = withThoughts ? thoughtParts(message, seal) : [];
  const said = { reasoning: thoughts, content: contentParts(message), tool: calls };
  const used = new Set<WrittenPart>();
  const parts: WrittenPart[] = [];
  const add = (part: WrittenPart | undefined): void => {
    if (!part || used.has(part)) return;
    used.add(part);
    parts.push(part);
  };
  for (const name of message.order ?? []) {
    const [kind = '', at] = name.split(':');
    if (kind === 'reasoning' || kind === 'tool') add(said[kind][Number(at)]);
    else if (kind === 'content') said.content.forEach(add);
  }
  // What the order does not name comes as it does without one.
  for (const part of [...thoughts, ...said.content, ...calls]) add(part);
  return { parts, isBroken: calls.includes(undefined) };
}

function contentParts(message: AssistantMessage): readonly WrittenPart[] {
  const text = `${message.content ?? ''}${message.refusal ?? ''}`;
  const signature = signatureOf(message);
  return [...(text === '' && signature === undefined ? [] : [textPart(text, signature)]), ...mediaParts(message)];
}

export function textPart(text: string, signature?: string): WrittenPart {
  return { text, ...(signature !== undefined && { thoughtSignature: signature }) };
}

/** Images and sound that the model made. */
export function mediaParts(message: JsonObject): readonly WrittenPart[] {
  const images = readArray(message['images']).flatMap((image) => {
    const url = readString(readObject(readObject(image)['image_url'])['url']);
    const inline = url === undefined ? undefined : readDataUrl(url);
    return inline ? [{ inlineData: { mimeType: inline.mediaType, data: inline.data } }] : [];
  });
  const { data, format } = readObject(message['audio']);
  const sound =
    typeof data === 'string' && data !== ''
      ? [{ inlineData: { mimeType: `audio/${readString(format) ?? 'wav'}`, data } }]
      : [];
  return [...images, ...sound];
}

function thoughtParts(
  { reasoning_details: details, reasoning_content: text }: AssistantMessage,
  seal: Seal,
): readonly WrittenPart[] {
  if (details && details.length > 0) return details.map((detail) => thoughtPart(detail, detail.text ?? '', seal));
  return text ? [{ text, thought: true }] : [];
}

/** A piece of thinking: Gemini's own with its signature, that of another format with all that its maker needs back. */
export function thoughtPart(detail: ReasoningDetail, text: string, seal: Seal): WrittenPart {
  const { format, signature, data } = detail;
  if (format === 'gemini') return { text, thought: true, ...(signature && { thoughtSignature: signature }) };
  const isNeeded = signature !== undefined || data !== undefined;
  return { text, thought: true, ...(isNeeded && { thoughtSignature: packReasoning(detail, seal) }) };
}

/** A call as a part, signed by Gemini or with `hidden` reasoning that led to it; undefined when its arguments are no JSON object. */
export function callPart(call: ToolCall, seal: Seal, hidden: ReasoningDetail | undefined): WrittenPart | undefined {
  const { name, arguments: text } = call.function;
  const args = text.trim() === '' ? {} : parseJson(text);
  if (!isObject(args)) return undefined;
  const signature = signatureOf(call) ?? (hidden && packReasoning(hidden, seal));
  return {
    functionCall: { id: plainCallId(call.id), name, args },
    ...(signature !== undefined && { thoughtSignature: signature }),
  };
}
