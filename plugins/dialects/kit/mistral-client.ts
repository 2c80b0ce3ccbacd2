/**
 * Form of chat completions for Mistral's SDKs, which check responses by the schema of Mistral's API: calls of a stream are
 * whole, thinking is a part of the content, and the last choice has the usage.
 * Source: `DeltaMessage`, `ToolCall` and `ThinkChunk` of @mistralai/mistralai 2.7.
 */
import type { ChatChunk, ChatResponse, ChunkChoice, DialectInput, ToolCallDelta } from '../../../contract/index.ts';

/** `mistral-client-typescript/2.7.0`, `mistral-client-python/…`. */
const AGENT = /^mistral-client-/;

/** The second header is for web pages, which may not set the first one. Source: `custom_user_agent.ts` of the SDK. */
export function isMistralClient({ headers }: DialectInput<unknown>): boolean {
  return isAgent(headers['user-agent']) || isAgent(headers['x-mistral-user-agent']);
}

function isAgent(name: unknown): boolean {
  return typeof name === 'string' && AGENT.test(name);
}

/** Message or delta with its thinking in the content. */
function withThinking({ reasoning_content: thought, reasoning: _, ...rest }: Spoken): object {
  if (!thought) return rest;
  const { content } = rest;
  const thinking = { type: 'thinking', thinking: [{ type: 'text', text: thought }] };
  return { ...rest, content: content ? [thinking, { type: 'text', text: content }] : [thinking] };
}

interface Spoken {
  readonly content?: string | null;
  readonly reasoning_content?: string | null;
  readonly [field: string]: unknown;
}

export function writeMistralResponse(response: ChatResponse): object {
  return {
    ...response,
    choices: response.choices.map((choice) => ({ ...choice, message: withThinking(choice.message) })),
  };
}

/** Writes one stream. */
export class MistralStream {
  /** Calls of each choice so far. */
  readonly #calls = new Map<number, Map<number, ToolCallDelta>>();
  /** Last chunk with the end of a choice, which waits for the usage. */
  #last: object | undefined;

  push({ choices, ...head }: ChatChunk): readonly object[] {
    if (choices.length === 0) {
      const last = this.#last ?? { ...head, choices };
      this.#last = undefined;
      return [{ ...last, usage: head.usage }];
    }
    const before = this.end();
    const written = choices.flatMap((choice) => this.#write(choice));
    if (written.length === 0) return before;
    const chunk = { ...head, choices: written };
    if (!choices.some(({ finish_reason: reason }) => reason !== null)) return [...before, chunk];
    this.#last = chunk;
    return before;
  }

  /** Returns the chunk that still waits for the usage. */
  end(): readonly object[] {
    const last = this.#last;
    this.#last = undefined;
    return last ? [last] : [];
  }

  /** Adds a delta's pieces of calls to the whole calls, which are written with the end of the choice. */
  #write({ delta: { tool_calls: pieces = [], ...delta }, ...choice }: ChunkChoice): readonly object[] {
    const calls = this.#calls.get(choice.index) ?? new Map<number, ToolCallDelta>();
    this.#calls.set(choice.index, calls);
    for (const piece of pieces) calls.set(piece.index, joinCall(calls.get(piece.index), piece));
    const isEnd = choice.finish_reason !== null;
    if (!isEnd && Object.keys(delta).length === 0) return [];
    const whole = isEnd && calls.size > 0 && { tool_calls: [...calls.values()] };
    return [{ ...choice, delta: { ...withThinking(delta), ...whole } }];
  }
}

function joinCall(before: ToolCallDelta | undefined, piece: ToolCallDelta): ToolCallDelta {
  if (!before) return piece;
  const text = `${before.function?.arguments ?? ''}${piece.function?.arguments ?? ''}`;
  return { ...piece, ...before, function: { ...piece.function, ...before.function, arguments: text } };
}
