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

/** A queue that writes by `frame`. */
export function createBlockQueue(frame: (event: JsonObject) => string): BlockQueue {
  return new Queue(frame);
}

class Queue implements BlockQueue {
  readonly #frame: (event: JsonObject) => string;
  readonly #blocks: Waiting[] = [];
  readonly #known = new Map<string, Waiting>();
  #index = 0;
  #isStarted = false;
  #bytes = 0;

  constructor(frame: (event: JsonObject) => string) {
    this.#frame = frame;
  }

  begin(key: string, start: JsonObject): string {
    if (this.#blocks.length >= MAX_WAITING) throw tooMuch(`over ${MAX_WAITING} calls at the same time`);
    const isCall = start['type'] === 'tool_use';
    const last = this.#blocks.at(-1);
    if (last && !last.watch) last.isFinished = true;
    const block = { key, start, deltas: [], watch: isCall ? watchObject() : undefined, isFinished: false };
    this.#blocks.push(block);
    this.#known.set(key, block);
    return this.#advance();
  }

  has(key: string): boolean {
    return this.#known.has(key);
  }

  extend(key: string, delta: JsonObject, text = ''): string {
    const block = this.#known.get(key);
    if (!block || block.isFinished) return '';
    block.watch?.push(text);
    if (block === this.#blocks[0] && this.#isStarted) return this.#writeDelta(delta) + this.#advance();
    block.deltas.push(delta);
    this.#bytes += sizeOf([delta]);
    if (this.#bytes > MAX_WAITING_BYTES) throw tooMuch(`over ${MAX_WAITING_BYTES} bytes of calls at the same time`);
    return this.#advance();
  }

  finish(key: string): string {
    const block = this.#known.get(key);
    if (!block || block.watch) return '';
    block.isFinished = true;
    return this.#advance();
  }

  end(): string {
    let written = '';
    while (this.#blocks.length > 0) written += this.#stopFirst();
    return written;
  }

  get open(): string | undefined {
    const last = this.#blocks.at(-1);
    return last && !last.isFinished ? last.key : undefined;
  }

  #writeDelta(delta: JsonObject): string {
    return this.#frame({ type: 'content_block_delta', index: this.#index, delta });
  }

  #startFirst(): string {
    const [first] = this.#blocks;
    if (!first || this.#isStarted) return '';
    this.#isStarted = true;
    this.#bytes = Math.max(this.#bytes - sizeOf(first.deltas), 0);
    const start = this.#frame({ type: 'content_block_start', index: this.#index, content_block: first.start });
    return [start, ...first.deltas.splice(0).map((delta) => this.#writeDelta(delta))].join('');
  }

  #stopFirst(): string {
    const written = this.#startFirst() + this.#frame({ type: 'content_block_stop', index: this.#index });
    const first = this.#blocks.shift();
    if (first) first.isFinished = true;
    this.#index += 1;
    this.#isStarted = false;
    return written;
  }

  /** Writes as far as may be: a block ends when it is finished, or a whole call with another block behind it. */
  #advance(): string {
    let written = this.#startFirst();
    for (let [first] = this.#blocks; first; [first] = this.#blocks) {
      const isFollowed = this.#blocks.length > 1;
      if (!first.isFinished && !(isFollowed && (first.watch === undefined || first.watch.isWhole))) break;
      written += this.#stopFirst() + this.#startFirst();
    }
    return written;
  }
}

function sizeOf(deltas: readonly JsonObject[]): number {
  return deltas.reduce((sum, delta) => sum + Buffer.byteLength(JSON.stringify(delta)), 0);
}

function tooMuch(what: string): GatewayError {
  return new GatewayError('provider_invalid_response', `The provider sent ${what} in one response.`);
}
