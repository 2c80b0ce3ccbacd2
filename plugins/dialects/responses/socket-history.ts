import type { ConnectionMemory } from '../../../core/index.ts';
import { isReference } from './store.ts';
import type { Item, ResponsesBody } from './types.ts';

/** A request of a websocket with what it continues put before it. */
export interface Turn {
  readonly body: ResponsesBody;
  /** The response of this websocket that it continues. */
  readonly continued: string | undefined;
  /** A place of `body` as one of the message that came. */
  place(param: string): string;
}

interface Kept {
  /** All that led to the response, and the response; after what `earlier` names. */
  readonly items: readonly Item[];
  /** An earlier response that is kept elsewhere, by the store. */
  readonly earlier: string | undefined;
  readonly bytes: number;
  /** The same by turns, which responses that continue one another share. */
  readonly turns: readonly { readonly bytes: number }[];
}

/** The last responses of one websocket: clients that store nothing send only what is new. */
export interface SocketHistory {
  /** What is not of this websocket is left for the store to look up. */
  continue(body: ResponsesBody): Turn;
  keep(id: string, turn: Turn, output: readonly Item[]): void;
  /** A turn that failed: whoever continues it again must send everything. */
  forget(id: string | undefined): void;
}

const MAX_RESPONSES = 8;
const MAX_BYTES = 16 * 1024 * 1024;

export function createSocketHistory(memory?: ConnectionMemory, maxBytes = MAX_BYTES): SocketHistory {
  const kept = new Map<string, Kept>();
  let sum = 0;

  function forget(id: string | undefined): void {
    const entry = id === undefined ? undefined : kept.get(id);
    if (id === undefined || !entry) return;
    sum -= entry.bytes;
    kept.delete(id);
  }

  /** What is in memory: a turn once, however many responses came after it. */
  function heldBytes(): number {
    const turns = new Set([...kept.values()].flatMap((entry) => entry.turns));
    return [...turns].reduce((total, { bytes }) => total + bytes, 0);
  }

  function hasRoom(): boolean {
    return kept.size <= MAX_RESPONSES && sum <= maxBytes && (memory?.resize(heldBytes()) ?? true);
  }

  return {
    continue(body) {
      const id = body.previous_response_id ?? undefined;
      const before = id === undefined ? undefined : kept.get(id);
      const own = inputItems(body.input).map((item) => (isReference(item) ? (findItem(kept, item) ?? item) : item));
      if (before) return { ...continueAfter(before, body, own), continued: id };
      const input = Array.isArray(body.input) ? { input: own } : {};
      return { body: { ...body, ...input }, continued: undefined, place: (param) => param };
    },
    keep(id, { body, continued }, output) {
      const before = continued === undefined ? undefined : kept.get(continued);
      const input = inputItems(body.input);
      const fresh = [...input.slice(before?.items.length ?? 0), ...output];
      const freshBytes = Buffer.byteLength(JSON.stringify(fresh));
      const bytes = (before?.bytes ?? 0) + freshBytes;
      forget(id);
      if (id === '' || bytes > maxBytes) return;
      const turns = [...(before?.turns ?? []), { bytes: freshBytes }];
      kept.set(id, { items: [...input, ...output], earlier: body.previous_response_id ?? undefined, bytes, turns });
      sum += bytes;
      while (!hasRoom()) {
        const [oldest] = kept.keys();
        if (oldest === undefined) break;
        forget(oldest);
      }
    },
    forget(id) {
      forget(id);
      memory?.resize(heldBytes());
    },
  };
}

function continueAfter(
  { items, earlier }: Kept,
  { previous_response_id: _, ...rest }: ResponsesBody,
  own: readonly Item[],
): Pick<Turn, 'body' | 'place'> {
  const before = earlier === undefined ? {} : { previous_response_id: earlier };
  return {
    body: { ...rest, ...before, input: [...items, ...own] } as ResponsesBody,
    place: (param) => placeBefore(param, items.length),
  };
}

function findItem(kept: ReadonlyMap<string, Kept>, reference: Item): Item | undefined {
  for (const { items } of kept.values())
    for (const item of items) if (!isReference(item) && item['id'] === reference['id']) return item;
  return undefined;
}

function inputItems(input: ResponsesBody['input']): readonly Item[] {
  return typeof input === 'string' ? [{ type: 'message', role: 'user', content: input }] : (input ?? []);
}

/** `input[7].content` of the whole conversation as a place in what the client sent. */
function placeBefore(param: string, offset: number): string {
  const [, index, rest = ''] = /^input\[(\d+)\](.*)$/.exec(param) ?? [];
  if (index === undefined) return param;
  const own = Number(index) - offset;
  return own < 0 ? 'previous_response_id' : `input[${own}]${rest}`;
}
