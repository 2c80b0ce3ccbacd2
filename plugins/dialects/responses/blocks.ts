import type { ReasoningDetail } from '../../../core/index.ts';
import { INCLUDE_ENCRYPTED } from '../../formats/openai-responses/index.ts';
import { type CallerTool, readToolTable } from './read-tools.ts';
import { sealReasoning } from './reasoning.ts';
import type { ResponsesContext } from './response.ts';
import type { Item } from './types.ts';

/** What blocks of one response share. */
export interface BlockSetting {
  /** Sends an event of the item that is open. */
  emit(type: string, fields: Readonly<Record<string, unknown>>): void;
  /** The id of the item at a place of the output; the same for the same response and place. */
  itemId(prefix: string, index: number): string;
  callerOf(name: string): CallerTool;
  /** What of its reasoning the maker needs back, where the caller wants it. */
  seal(details: readonly ReasoningDetail[]): string | undefined;
}

/** One item of the output while it grows. Until it is started, what it gets is kept. */
export interface Block {
  readonly kind: 'reasoning' | 'message' | 'tool' | 'image';
  /** Opens the item at its place, with what came so far. */
  start(index: number): void;
  /** Whether nothing more can come once another block has begun. */
  isWhole(): boolean;
  /** Closes the item, which was started, and returns it; `isCut` where the response ended in the middle of it. */
  finish(isCut: boolean): Item;
  /** The item as it is, such as for a response that failed. */
  item(status: 'in_progress' | 'completed' | 'incomplete', index: number): Item;
}

/** What the output of a call is written with. */
export function createSetting(context: ResponsesContext, emit: BlockSetting['emit']): BlockSetting {
  const { body } = context.input;
  const { callers } = readToolTable(body);
  const isSealWanted = body.include?.includes(INCLUDE_ENCRYPTED) === true;
  return {
    emit,
    itemId: (prefix, index) => `${prefix}_${context.id}_${index}`,
    callerOf: (name) => callers.get(name) ?? { kind: 'function', name },
    seal: (details) => (isSealWanted ? sealReasoning(details, context.seal) : undefined),
  };
}
