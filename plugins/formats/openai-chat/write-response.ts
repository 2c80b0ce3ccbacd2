import type { ChatChunk, ChatResponse, DialectContext, JsonObject, ReasoningDetail } from '../../../core/index.ts';

type Seal = DialectContext['seal'];

/** What a message or delta may hold that this format's clients do not get as it is. */
interface Spoken {
  readonly reasoning_details?: readonly ReasoningDetail[];
  readonly order?: readonly string[];
  readonly opaque?: unknown;
  readonly dialect_fields?: unknown;
}

/** A response as this format's clients get it; the same one where nothing has to change. */
export function writeChatResponse(response: ChatResponse, seal: Seal): ChatResponse {
  let isSame = !('dialect_fields' in response);
  for (const { message } of response.choices) isSame &&= isPlain(message);
  if (isSame) return response;
  const { dialect_fields: _fields, choices, ...rest } = response;
  return {
    ...rest,
    choices: choices.map((choice) => ({ ...choice, message: writeSpoken(choice.message, seal) })),
  };
}

/** A chunk as this format's clients get it; the same one where nothing has to change. */
export function writeChatChunk(chunk: ChatChunk, seal: Seal): ChatChunk {
  let isSame = !('dialect_fields' in chunk);
  for (const { delta } of chunk.choices) isSame &&= isPlain(delta);
  if (isSame) return chunk;
  const { dialect_fields: _fields, choices, ...rest } = chunk;
  return {
    ...rest,
    choices: choices.map((choice) => ({ ...choice, delta: writeSpoken(choice.delta, seal) })),
  };
}

function isPlain(spoken: Spoken): boolean {
  return !('reasoning_details' in spoken || 'opaque' in spoken || 'dialect_fields' in spoken);
}

/**
 * What is said: details of reasoning with what a vendor encrypted sealed, and Anthropic's as `thinking_blocks` too. Blocks that only another format
 * knows stay behind: they could not be taken back from a client of this one.
 */
function writeSpoken<T extends Spoken>(spoken: T, seal: Seal): T {
  const { opaque: _opaque, dialect_fields: _inner, reasoning_details: details = [], order, ...rest } = spoken;
  const written = details.flatMap((detail) => sealDetail(detail, seal));
  const blocks = writeThinkingBlocks(written);
  const known = order?.filter((entry) => !entry.startsWith('opaque:'));
  return {
    ...(rest as T),
    ...(known && { order: known }),
    ...(written.length > 0 && { reasoning_details: written }),
    ...(blocks.length > 0 && { thinking_blocks: blocks }),
  };
}

/** Anthropic's go out byte for byte, as its own clients have them. What cannot be sealed now is left out. */
function sealDetail(detail: ReasoningDetail, seal: Seal): readonly ReasoningDetail[] {
  const { data, format } = detail;
  if (data === undefined || format === 'anthropic') return [detail];
  try {
    return [{ ...detail, data: seal(data) }];
  } catch {
    return [];
  }
}

/** The details of Anthropic's format as `thinking_blocks`. */
function writeThinkingBlocks(details: readonly ReasoningDetail[]): readonly JsonObject[] {
  return details.flatMap(({ kind, text = '', data, signature, format }): readonly JsonObject[] => {
    if (format !== 'anthropic') return [];
    if (kind === 'encrypted') return data === undefined ? [] : [{ type: 'redacted_thinking', data }];
    return signature === undefined ? [] : [{ type: 'thinking', thinking: text, signature }];
  });
}
