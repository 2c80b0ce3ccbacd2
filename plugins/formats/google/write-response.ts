import {
  type AssistantMessage,
  type ChatChoice,
  type ChatResponse,
  type DialectContext,
  type FinishReason,
  isObject,
  type JsonObject,
  type NativeFinish,
  parseExact,
  type ReasoningDetail,
  readArray,
  readObject,
  readString,
  type ToolCall,
  type Usage,
} from '../../../contract/index.ts';
import { readDataUrl } from '../kit/index.ts';
import { writeGrounding } from './grounding.ts';
import { hiddenReasoning, packReasoning, plainCallId, type Seal, signatureOf } from './signatures.ts';
import { writeFinish } from './tables.ts';
import { fieldOf, type GeminiBody, type GeminiPart } from './types.ts';

/** Body of a non-streaming response. */
export function writeGemini(response: ChatResponse, context: DialectContext<GeminiBody>): object {
  const seal: Seal = (data) => context.seal(data);
  const withThoughts = wantsThoughts(context);
  const usage = response.usage && usageOf(response.usage);
  return {
    candidates: response.choices.map((choice) => candidateOf(choice, seal, withThoughts)),
    ...(usage && { usageMetadata: usage }),
    modelVersion: response.model,
    responseId: context.id,
  };
}

function candidateOf(choice: ChatChoice, seal: Seal, withThoughts: boolean): object {
  const { parts, isBroken } = writeParts(choice.message, seal, withThoughts);
  const logprobs = logprobsOf(choice.logprobs);
  const grounding = writeGrounding(choice.message.annotations ?? [], choice.message.content ?? '');
  return {
    content: { role: 'model', parts: parts.length === 0 ? [textPart('')] : parts },
    finishReason: finishOf(choice.finish_reason, choice.finish, isBroken),
    index: choice.index,
    ...(logprobs && { logprobsResult: logprobs }),
    ...(grounding && { groundingMetadata: grounding }),
  };
}

/**
 * Finish reason of a candidate. A call without a JSON object was either cut off by the limit or malformed by the
 * model.
 */
export function finishOf(reason: FinishReason, finish: NativeFinish | undefined, isBroken: boolean): string {
  if (isBroken && reason !== 'length' && reason !== 'content_filter') return 'MALFORMED_FUNCTION_CALL';
  return writeFinish(reason, finish?.native);
}

/** Returns true if the caller wants to see the model's thinking; Google shows it on request only. */
export function wantsThoughts({ input: { body } }: DialectContext<GeminiBody>): boolean {
  const config = fieldOf(body, 'generationConfig');
  const thinking = isObject(config) ? fieldOf(config, 'thinkingConfig') : undefined;
  return isObject(thinking) && fieldOf(thinking, 'includeThoughts') === true;
}

/** Token counts: Google counts thinking apart from the candidates' tokens, OpenAI within them. */
export function usageOf(usage: Usage): JsonObject {
  const thoughts = usage.completion_tokens_details?.reasoning_tokens ?? 0;
  const cached = usage.prompt_tokens_details?.cached_tokens ?? 0;
  return {
    promptTokenCount: usage.prompt_tokens,
    candidatesTokenCount: Math.max(0, usage.completion_tokens - thoughts),
    totalTokenCount: usage.prompt_tokens + usage.completion_tokens,
    ...(thoughts > 0 && { thoughtsTokenCount: thoughts }),
    ...(cached > 0 && { cachedContentTokenCount: cached }),
  };
}

/** Converts OpenAI's `logprobs` to `logprobsResult`; undefined without any. */
export function logprobsOf(logprobs: unknown): JsonObject | undefined {
  const tokens = readArray(readObject(logprobs)['content']).map(readObject);
  if (tokens.length === 0) return undefined;
  return {
    chosenCandidates: tokens.map(tokenOf),
    topCandidates: tokens.map((token) => ({
      candidates: readArray(token['top_logprobs']).map(readObject).map(tokenOf),
    })),
  };
}

function tokenOf({ token, logprob }: JsonObject): JsonObject {
  return { token, logProbability: logprob };
}

/** Parts of a message, in the order in which the model made them. */
export interface WrittenMessage {
  readonly parts: readonly GeminiPart[];
  /** True if a call was dropped because its arguments are not a JSON object: incomplete calls are never returned. */
  readonly isBroken: boolean;
}

/** Converts a message to parts; its thinking is included only if the caller wants to see it. */
export function writeParts(message: AssistantMessage, seal: Seal, withThoughts: boolean): WrittenMessage {
  const hidden = withThoughts ? [] : hiddenReasoning(message.reasoning_details);
  const calls = (message.tool_calls ?? []).map((call, at) => callPart(call, seal, hidden[at]));
  const thoughts = withThoughts ? thoughtParts(message, seal) : [];
  const blocks = { reasoning: thoughts, content: contentParts(message), tool: calls };
  const used = new Set<GeminiPart>();
  const parts: GeminiPart[] = [];
  const add = (part: GeminiPart | undefined): void => {
    if (!part || used.has(part)) return;
    used.add(part);
    parts.push(part);
  };
  for (const name of message.order ?? []) {
    const [kind = '', at] = name.split(':');
    if (kind === 'reasoning' || kind === 'tool') add(blocks[kind][Number(at)]);
    else if (kind === 'content') blocks.content.forEach(add);
  }
  // Blocks missing from the order follow in default order.
  for (const part of [...thoughts, ...blocks.content, ...calls]) add(part);
  return { parts, isBroken: calls.includes(undefined) };
}

function contentParts(message: AssistantMessage): readonly GeminiPart[] {
  const text = `${message.content ?? ''}${message.refusal ?? ''}`;
  const signature = signatureOf(message);
  return [...(text === '' && signature === undefined ? [] : [textPart(text, signature)]), ...mediaParts(message)];
}

export function textPart(text: string, signature?: string): GeminiPart {
  return { text, ...(signature !== undefined && { thoughtSignature: signature }) };
}

/** Images and audio made by the model. */
export function mediaParts(message: JsonObject): readonly GeminiPart[] {
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
): readonly GeminiPart[] {
  if (details && details.length > 0) return details.map((detail) => thoughtPart(detail, detail.text ?? '', seal));
  return text ? [{ text, thought: true }] : [];
}

/** Thinking part: Gemini's own with its signature, another format's with all data that its vendor requires back. */
export function thoughtPart(detail: ReasoningDetail, text: string, seal: Seal): GeminiPart {
  const { format, signature, data } = detail;
  if (format === 'gemini') return { text, thought: true, ...(signature && { thoughtSignature: signature }) };
  const isNeeded = signature !== undefined || data !== undefined;
  return { text, thought: true, ...(isNeeded && { thoughtSignature: packReasoning(detail, seal) }) };
}

/**
 * Converts a call to a part, signed by Gemini or with the `hidden` reasoning that led to it. Undefined if its
 * arguments are not a JSON object.
 */
export function callPart(call: ToolCall, seal: Seal, hidden: ReasoningDetail | undefined): GeminiPart | undefined {
  const { name, arguments: text } = call.function;
  const args = text.trim() === '' ? {} : parseExact(text);
  if (!isObject(args)) return undefined;
  const signature = signatureOf(call) ?? (hidden && packReasoning(hidden, seal));
  return {
    functionCall: { id: plainCallId(call.id), name, args },
    ...(signature !== undefined && { thoughtSignature: signature }),
  };
}
