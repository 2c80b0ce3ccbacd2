import type { BlockSetting } from './blocks.ts';
import { readToolTable } from './read-tools.ts';
import { sealReasoning } from './reasoning.ts';
import type { ResponsesContext } from './response.ts';

/** What the output of a call is written with. */
export function createSetting(context: ResponsesContext, emit: BlockSetting['emit']): BlockSetting {
  const { body } = context.input;
  const { callers } = readToolTable(body);
  const isSealWanted = body.include?.includes('reasoning.encrypted_content') === true;
  return {
    emit,
    itemId: (prefix, index) => `${prefix}_${context.id}_${index}`,
    callerOf: (name) => callers.get(name) ?? { kind: 'function', name },
    seal: (details) => (isSealWanted ? sealReasoning(details, context.seal) : undefined),
  };
}
