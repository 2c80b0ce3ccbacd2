import type { JsonObject } from '../../../contract/index.ts';
import type { RealtimeRequest } from '../../formats/kit/index.ts';
import type { Transcriber } from './events.ts';
import { Deferred, meterUnsent, type Run } from './turn.ts';
import { heldFor, readTranscription } from './usage.ts';

/** Audio tokens reserved at a time for transcription: a minute. */
const HELD_TOKENS = 600;

/** Duration of a reservation without transcriptions. */
const HOLD_MS = 240_000;

/** Maximum number of items that wait for their transcription; further audio counts with the last one. */
const MAX_ITEMS = 256;

interface TranscriptsDeps {
  /** Makes a call of the transcription model. */
  call(
    model: string,
    request: Pick<RealtimeRequest, 'kind' | 'text' | 'audio'>,
    run: Run,
    signal: AbortSignal,
  ): Promise<unknown>;
  /** Logs a charge that failed. */
  onFailure(error: unknown): void;
}

/** End of a reservation: with the vendor's usage, with the audio heard if usage is unknown, or unused. */
type End = { readonly usage: JsonObject; readonly tokens: number } | undefined;

/** Call that reserves the cost of transcribing some audio. */
interface Held {
  readonly tokens: number;
  readonly end: Deferred<End>;
  readonly timer: NodeJS.Timeout;
}

/**
 * Transcriptions of a session's audio. Their cost is reserved before the audio is sent to the vendor, and each
 * transcription ends one reservation. A transcription without one is charged afterwards.
 */
export class Transcripts {
  readonly #deps: TranscriptsDeps;
  readonly #holds: Held[] = [];
  readonly #calls = new Set<Promise<unknown>>();
  /** Audio tokens that belong to no item yet, and those of items that wait for their transcription. */
  #uncommitted = 0;
  readonly #committed = new Map<string, number>();
  /** Most recently used transcriber, which is charged for pending audio. */
  #last: Transcriber | undefined;
  #onDone: (() => void) | undefined;
  #isDisconnected = false;

  constructor(deps: TranscriptsDeps) {
    this.#deps = deps;
  }

  /** Reserves the cost of transcribing more audio; rejects with the reason if that is not possible. */
  async hear(transcriber: Transcriber, tokens: number): Promise<void> {
    this.#last = transcriber;
    const lacking = this.#countTokens() + tokens - this.#covered();
    if (lacking > 0) await this.#hold(transcriber, Math.max(HELD_TOKENS, lacking));
    this.#uncommitted += tokens;
  }

  /** Records that the audio so far is an item, which will be transcribed. */
  commit(item: string): void {
    if (this.#uncommitted === 0) return;
    const last = [...this.#committed.keys()].at(-1);
    const key = this.#committed.size < MAX_ITEMS || last === undefined ? item : last;
    this.#committed.set(key, (this.#committed.get(key) ?? 0) + this.#uncommitted);
    this.#uncommitted = 0;
  }

  /** Discards the audio so far. */
  clear(): void {
    this.#uncommitted = 0;
    this.#trim();
  }

  /** Charges the usage of a transcribed item, or its audio if the vendor reports none. */
  complete(transcriber: Transcriber, item: string, usage: JsonObject): void {
    const tokens = this.#take(item);
    this.#charge(this.#last ?? transcriber, usage, tokens);
    this.#trim();
  }

  /** Records that an item could not be transcribed, and costs nothing. */
  fail(item: string): void {
    this.#take(item);
    this.#trim();
  }

  /** Releases all reservations; later audio is reserved again. */
  release(): void {
    for (const hold of this.#holds.splice(0)) end(hold, undefined);
  }

  /**
   * Waits this long for transcriptions of items, and charges the audio of missing ones. Resolves when everything is
   * charged.
   */
  async leave(graceMs: number): Promise<void> {
    if (this.#committed.size > 0 && graceMs > 0)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, graceMs);
        this.#onDone = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    this.#isDisconnected = true;
    const [transcriber, items] = [this.#last, [...this.#committed.values()]];
    this.#committed.clear();
    if (transcriber) for (const tokens of items) this.#charge(transcriber, {}, tokens);
    this.release();
    await Promise.allSettled(this.#calls);
  }

  #countTokens(): number {
    let tokens = this.#uncommitted;
    for (const each of this.#committed.values()) tokens += each;
    return tokens;
  }

  #covered(): number {
    return this.#holds.reduce((sum, { tokens }) => sum + tokens, 0);
  }

  /** Takes the audio of an item, which no longer waits. */
  #take(item: string): number {
    const tokens = this.#committed.get(item) ?? 0;
    this.#committed.delete(item);
    if (this.#committed.size === 0) this.#onDone?.();
    return tokens;
  }

  /** Releases reservations that no audio needs. The last one stays while the caller speaks. */
  #trim(): void {
    while (this.#holds.length > 1 && this.#covered() - (this.#holds.at(-1)?.tokens ?? 0) >= this.#countTokens()) {
      const hold = this.#holds.pop();
      if (hold) end(hold, undefined);
    }
  }

  async #hold({ model, text }: Transcriber, tokens: number): Promise<void> {
    const admitted = new Deferred<void>();
    const ended = new Deferred<End>();
    const run: Run = async (work) => {
      admitted.resolve();
      const result = await ended.promise;
      if (!result) return {};
      const known = readTranscription(result.usage, work.price);
      return meterUnsent(work, known ?? heldFor({ ...work.request, audio: result.tokens || work.request.audio }, work));
    };
    const request = { kind: 'transcription', text, audio: tokens } as const;
    const call = this.#watch(this.#deps.call(model, request, run, new AbortController().signal));
    await Promise.race([admitted.promise, call]);
    const timer = setTimeout(() => {
      const at = this.#holds.indexOf(hold);
      if (at !== -1) this.#holds.splice(at, 1);
      end(hold, undefined);
    }, HOLD_MS).unref();
    const hold: Held = { tokens, end: ended, timer };
    call.catch((error: unknown) => this.#deps.onFailure(error));
    if (this.#isDisconnected) end(hold, undefined);
    else this.#holds.push(hold);
  }

  #charge({ model, text }: Transcriber, usage: JsonObject, tokens: number): void {
    const hold = this.#holds.shift();
    if (hold) {
      end(hold, { usage, tokens });
      return;
    }
    const run: Run = (work) => meterUnsent(work, readTranscription(usage, work.price) ?? heldFor(work.request, work));
    const request = { kind: 'transcribed', text, audio: tokens } as const;
    const call = this.#deps.call(model, request, run, new AbortController().signal);
    this.#watch(call).catch((error: unknown) => this.#deps.onFailure(error));
  }

  #watch(call: Promise<unknown>): Promise<unknown> {
    const done = (): void => void this.#calls.delete(call);
    this.#calls.add(call);
    call.then(done, done);
    return call;
  }
}

function end({ timer, end: ended }: Held, result: End): void {
  clearTimeout(timer);
  ended.resolve(result);
}
