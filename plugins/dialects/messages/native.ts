import {
  type DialectContext,
  type DialectEffects,
  type DialectNative,
  type DialectNativeStream,
  isObject,
  type JsonObject,
  type NativeBody,
  type NativeChange,
  parseJson,
  readString,
  type SseEvent,
} from '../../../core/index.ts';
import { patchFields } from './patch-fields.ts';
import { patchMessages } from './patch-messages.ts';
import { failFrame } from './stream.ts';
import type { MessagesRequest } from './types.ts';

/** What names a file in the operator's account, in whichever block it stands: a document in a tool's result, say. */
const EFFECTS: DialectEffects = Object.freeze({ file_id: { kind: 'reference', name: 'file_id' } });

/** How this format passes to providers that speak it, and back. */
export const MESSAGES_NATIVE: DialectNative<MessagesRequest> = Object.freeze({
  headers: ['anthropic-version', 'anthropic-beta'],
  effects: EFFECTS,
  patch,
  write: (body: unknown) => body,
  stream: passOn,
});

/** The caller's body written anew; undefined where a change cannot be said in it. */
function patch(body: MessagesRequest, change: NativeChange): NativeBody | undefined {
  const dropped: string[] = [];
  const messages = patchMessages(body, change, dropped);
  const fields = messages && patchFields(body, change, dropped);
  if (!fields) return undefined;
  return { body: inOrder(body, { ...fields, ...messages }), ...(dropped.length > 0 && { dropped }) };
}

/** The body in its own order of fields, those that are new behind them; what is undefined or null is left out. */
function inOrder(body: MessagesRequest, changes: JsonObject): JsonObject {
  const merged: JsonObject = { ...body, ...changes };
  return Object.fromEntries(Object.entries(merged).filter(([, value]) => value !== undefined && value !== null));
}

function passOn(_context: DialectContext<MessagesRequest>): DialectNativeStream {
  return {
    push({ event, data }: SseEvent) {
      const value = parseJson(data);
      if (!isObject(value)) return '';
      // A name with a line break in it would be a second field of the frame.
      const name = (event ?? readString(value['type']) ?? '').replace(/[\r\n]/g, '');
      return `${name === '' ? '' : `event: ${name}\n`}data: ${JSON.stringify(value)}\n\n`;
    },
    // The provider's own last event has ended it.
    end: () => '',
    fail: failFrame,
  };
}
