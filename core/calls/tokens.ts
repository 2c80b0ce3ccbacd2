import type { ChatRequest } from '../contract/chat.ts';

/**
 * Token estimates for when nobody told the true number: before a call (to reserve its cost) and after one whose provider
 * reported no usage. UTF-8 bytes / 4, the usual rule for English; languages with longer encodings come out dearer, never free.
 */
export const BYTES_PER_TOKEN = 4;

/** What one image part counts, in tokens: OpenAI's high-detail price of a 1024×1024 picture. */
const TOKENS_PER_IMAGE = 765;

/** What a message costs beside its text, in tokens. */
const TOKENS_PER_MESSAGE = 4;

export function estimateTextTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN);
}

/** The tokens of a chat request's input. */
export function estimateInputTokens(request: ChatRequest): number {
  let tokens = request.tools ? estimateTextTokens(JSON.stringify(request.tools)) : 0;
  for (const message of request.messages) {
    tokens += TOKENS_PER_MESSAGE;
    if (typeof message.content === 'string') tokens += estimateTextTokens(message.content);
    else if (Array.isArray(message.content)) for (const part of message.content) tokens += estimatePart(part);
    if (message.tool_calls) tokens += estimateTextTokens(JSON.stringify(message.tool_calls));
  }
  return tokens;
}

function estimatePart(part: { readonly type: string; readonly [field: string]: unknown }): number {
  if (typeof part['text'] === 'string') return estimateTextTokens(part['text']);
  return TOKENS_PER_IMAGE;
}
