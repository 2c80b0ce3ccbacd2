import { createHash } from 'node:crypto';
import { readString } from '../../../core/index.ts';
import { isForeign, isSealed } from './reasoning.ts';
import type { Item } from './types.ts';

/** Items whose ids are ours, or of a response that nobody keeps: the vendor would look them up. */
const UNNAMED: ReadonlySet<string> = new Set(
  'message reasoning function_call function_call_output custom_tool_call custom_tool_call_output compaction'.split(' '),
);

/** An item as a vendor that speaks this format may get it; undefined where it is another's reasoning. */
export function patchItem(item: Item, open: (sealed: string) => string | undefined): Item | undefined {
  const { id: _id, ...nameless } = item;
  const type = readString(item['type']) ?? 'message';
  const kept: Item = UNNAMED.has(type) ? nameless : item;
  const secret = readString(item['encrypted_content']);
  // Without it the vendor would look for an item that it was told not to keep.
  if (secret === undefined) return type === 'reasoning' ? undefined : withValidCall(kept);
  const opened = isSealed(secret) ? open(secret) : secret;
  if (opened === undefined || isForeign(opened)) return undefined;
  return { ...kept, encrypted_content: opened };
}

const MAX_ID = 64;
const HASH_LENGTH = 32;

/** Call ids of other vendors may be longer than this one takes; call and result get the same. */
function withValidCall(item: Item): Item {
  const id = readString(item['call_id']);
  if (id === undefined || id.length <= MAX_ID) return item;
  const hash = createHash('sha256').update(id).digest('hex').slice(0, HASH_LENGTH);
  return { ...item, call_id: `call_${hash}` };
}
