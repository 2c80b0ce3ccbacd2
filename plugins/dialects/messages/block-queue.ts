import { GatewayError, type JsonObject } from '../../../core/index.ts';
import { type ObjectWatch, watchObject } from './partial-json.ts';

/** Bounds of what waits for its turn, against providers that begin calls without end. */
const MAX_WAITING = 256;
const MAX_WAITING_BYTES = 4 * 1024 * 1024;

/** Writes content blocks one after the other, each with an index of its own. */
export interface BlockQueue {
  /** Begins a block; `key` finds it again. Everything that is open ends first, or, being a call that is not whole yet, goes on first. */
  begin(key: string, start: JsonObject): string;
  has(key: string): boolean;
  /** Adds to a block that has not ended; what comes for one that has is left out. */
  extend(key: string, delta: JsonObject, text?: string): string;
  /** Ends a block, unless it is a call: more may come for it. */
  finish(key: string): string;
  /** Ends all. */
  end(): string;
  /** The key of the block that was begun last and is not finished. */
  readonly open: string | undefined;
}

interface Waiting {
  readonly key: string;
  readonly start: JsonObject;
  readonly deltas: JsonObject[];
  /** Of a call. */
  readonly watch: ObjectWatch | undefined;
  isFinished: boolean;
}

export function createBlockQueue(frame: (event: JsonObject) => string): BlockQueue {
  const blocks: Waiting[] = [];
  const known = new Map<string, Waiting>();
  let index = 0;
  let isStarted = false;
  let bytes = 0;

  const startFirst = (): string => {
    const [first] = blocks;
    if (!first || isStarted) return '';
    isStarted = true;
    bytes = Math.max(bytes - sizeOf(first.deltas), 0);
    const deltas = first.deltas.splice(0);
    return [
      frame({ type: 'content_block_start', index, content_block: first.start }),
      ...deltas.map((delta) => frame({ type: 'content_block_delta', index, delta })),
    ].join('');
  };
  const stopFirst = (): string => {
    const written = startFirst() + frame({ type: 'content_block_stop', index });
    const first = blocks.shift();
    if (first) first.isFinished = true;
    index += 1;
    isStarted = false;
    return written;
  };
  /** Writes as far as may be: a block ends when it is finished, or a whole call with another block behind it. */
  const advance = (): string => {
    let written = startFirst();
    for (let [first] = blocks; first; [first] = blocks) {
      const isOver = first.isFinished || (blocks.length > 1 && (first.watch === undefined || first.watch.isWhole));
      if (!isOver) break;
      written += stopFirst() + startFirst();
    }
    return written;
  };

  return {
    begin(key, start) {
      if (blocks.length >= MAX_WAITING) throw tooMuch(`over ${MAX_WAITING} calls at the same time`);
      const isCall = start['type'] === 'tool_use';
      const last = blocks.at(-1);
      if (last && !last.watch) last.isFinished = true;
      const block = { key, start, deltas: [], watch: isCall ? watchObject() : undefined, isFinished: false };
      blocks.push(block);
      known.set(key, block);
      return advance();
    },
    has: (key) => known.has(key),
    extend(key, delta, text = '') {
      const block = known.get(key);
      if (!block || block.isFinished) return '';
      block.watch?.push(text);
      if (block === blocks[0] && isStarted) return frame({ type: 'content_block_delta', index, delta }) + advance();
      block.deltas.push(delta);
      bytes += sizeOf([delta]);
      if (bytes > MAX_WAITING_BYTES) throw tooMuch(`over ${MAX_WAITING_BYTES} bytes of calls at the same time`);
      return advance();
    },
    finish(key) {
      const block = known.get(key);
      if (!block || block.watch) return '';
      block.isFinished = true;
      return advance();
    },
    end() {
      let written = '';
      while (blocks.length > 0) written += stopFirst();
      return written;
    },
    get open() {
      const last = blocks.at(-1);
      return last && !last.isFinished ? last.key : undefined;
    },
  };
}

function sizeOf(deltas: readonly JsonObject[]): number {
  return deltas.reduce((sum, delta) => sum + Buffer.byteLength(JSON.stringify(delta)), 0);
}

function tooMuch(what: string): GatewayError {
  return new GatewayError('provider_invalid_response', `The provider sent ${what} in one response.`);
}
