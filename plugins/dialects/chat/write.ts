import type { ChatChunk, ChatResponse, DialectContext, ReasoningDetail } from '../../../core/index.ts';
import { writeThinkingBlocks } from './thinking-blocks.ts';

type Seal = DialectContext['seal'];

/** What a message or delta may hold that this format's clients do not get as it is. */
interface Spoken {
  readonly reasoning_details?: readonly ReasoningDetail[];
  readonly order?: readonly string[];
}

/** A response as this format's clients get it; the same one where nothing has to change. */
export function writeResponse(response: ChatResponse, seal: Seal): ChatResponse {
  const { choices } = response;
  if (!('dialect_fields' in response) && choices.every(({ message }) => isPlain(message))) return response;
  const { dialect_fields: _fields, ...rest } = response;
  return {
    ...rest,
    choices: choices.map((choice) => {
      const {
        opaque: _opaque,
        dialect_fields: _inner,
        reasoning_details: _details,
        order: _order,
        ...message
      } = choice.message;
      return { ...choice, message: { ...message, ...writeSpoken(choice.message, seal) } };
    }),
  };
}

/** A chunk as this format's clients get it; the same one where nothing has to change. */
export function writeChunk(chunk: ChatChunk, seal: Seal): ChatChunk {
  const { choices } = chunk;
  if (!('dialect_fields' in chunk) && choices.every(({ delta }) => isPlain(delta))) return chunk;
  const { dialect_fields: _fields, ...rest } = chunk;
  return {
    ...rest,
    choices: choices.map((choice) => {
      const {
        opaque: _opaque,
        dialect_fields: _inner,
        reasoning_details: _details,
        order: _order,
        ...delta
      } = choice.delta;
      return { ...choice, delta: { ...delta, ...writeSpoken(choice.delta, seal) } };
    }),
  };
}

function isPlain(spoken: Spoken): boolean {
  return !('reasoning_details' in spoken || 'opaque' in spoken || 'dialect_fields' in spoken);
}

/**
 * Details of reasoning with what a vendor encrypted sealed, and Anthropic's as `thinking_blocks` too. Blocks that only another format
 * knows stay behind: they could not be taken back from a client of this one.
 */
function writeSpoken({ reasoning_details: details = [], order }: Spoken, seal: Seal): Spoken {
  const written = details.flatMap((detail) => sealDetail(detail, seal));
  const blocks = writeThinkingBlocks(written);
  const known = order?.filter((entry) => !entry.startsWith('opaque:'));
  return {
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
