import type { JsonObject } from '../../../contract/index.ts';
import type { RealtimeRequest } from '../../formats/kit/index.ts';
import type { Transcriber } from './events.ts';
import { Deferred, meterUnsent, type Run } from './turn.ts';
import { heldFor, readTranscription } from './usage.ts';

/** Tokens of sound whose transcription is held at once: a minute. */
const HELD_TOKENS = 600;

/** How long a hold lasts while nothing is transcribed. */
const HOLD_MS = 240_000;

/** Items that may wait for their transcription; the sound of more counts with the last of them. */
const MAX_ITEMS = 256;

interface TranscriptsDeps {
  /** Makes a call of the model that transcribes. */
  call(
    model: string,
    request: Pick<RealtimeRequest, 'kind' | 'text' | 'audio'>,
    run: Run,
    signal: AbortSignal,
  ): Promise<unknown>;
  /** Logs a charge that failed. */
  onFailure(error: unknown): void;
}

/** How a hold ends: with the vendor's usage, with what was heard where that is unknown, or unused. */
type End = { readonly usage: JsonObject; readonly tokens: number } | undefined;

/** A call that holds what the transcription of some sound may cost. */
interface Held {
  readonly tokens: number;
  readonly end: Deferred<End>;
  readonly timer: NodeJS.Timeout;
}

/**
 * The transcriptions of a session's sound. Their cost is held before the sound goes to the vendor, and each transcription ends one hold. A
 * transcription for which nothing is held is owed.
 */
export class Transcripts {
  readonly #deps: TranscriptsDeps;
  readonly #holds: Held[] = [];
  readonly #calls = new Set<Promise<unknown>>();
  /** Tokens of sound that belong to no item yet, and by item those whose transcription has not come. */
  #uncommitted = 0;
  readonly #committed = new Map<string, number>();
  /** The transcriber that was heard last: what it has still to transcribe is owed to it. */
  #last: Transcriber | undefined;
  #onDone: (() => void) | undefined;
  #hasLeft = false;

  constructor(deps: TranscriptsDeps) {
    this.#deps = deps;
  }

  /** Holds what the transcription of more sound may cost; rejects with why it cannot. */
  async hear(transcriber: Transcriber, tokens: number): Promise<void> {
    this.#last = transcriber;
    const lacking = this.#heard() + tokens - this.#covered();
    if (lacking > 0) await this.#hold(transcriber, Math.max(HELD_TOKENS, lacking));
    this.#uncommitted += tokens;
  }

  /** The sound so far is an item, which will be transcribed. */
  commit(item: string): void {
    if (this.#uncommitted === 0) return;
    const last = [...this.#committed.keys()].at(-1);
    const key = this.#committed.size < MAX_ITEMS || last === undefined ? item : last;
    this.#committed.set(key, (this.#committed.get(key) ?? 0) + this.#uncommitted);
    this.#uncommitted = 0;
  }

  /** The sound so far is dropped. */
  clear(): void {
    this.#uncommitted = 0;
    this.#trim();
  }

  /** An item was transcribed: charges the usage, or its sound where the vendor reports none. */
  complete(transcriber: Transcriber, item: string, usage: JsonObject): void {
    const tokens = this.#take(item);
    this.#charge(this.#last ?? transcriber, usage, tokens);
    this.#trim();
  }

  /** An item could not be transcribed, and costs nothing. */
  fail(item: string): void {
    this.#take(item);
    this.#trim();
  }

  /** Lets go of what is held; what comes later is held anew. */
  release(): void {
    for (const hold of this.#holds.splice(0)) end(hold, undefined);
  }

  /** Waits so long for the transcriptions of items, charges the sound of those that do not come, and resolves when all is booked. */
  async leave(graceMs: number): Promise<void> {
    if (this.#committed.size > 0 && graceMs > 0)
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, graceMs);
        this.#onDone = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    this.#hasLeft = true;
    const [transcriber, items] = [this.#last, [...this.#committed.values()]];
    this.#committed.clear();
    if (transcriber) for (const tokens of items) this.#charge(transcriber, {}, tokens);
    this.release();
    await Promise.allSettled(this.#calls);
  }

  #heard(): number {
    let tokens = this.#uncommitted;
    for (const each of this.#committed.values()) tokens += each;
    return tokens;
  }

  #covered(): number {
    return this.#holds.reduce((sum, { tokens }) => sum + tokens, 0);
  }

  /** The sound of an item, which waits no longer. */
  #take(item: string): number {
    const tokens = this.#committed.get(item) ?? 0;
    this.#committed.delete(item);
    if (this.#committed.size === 0) this.#onDone?.();
    return tokens;
  }

  /** Lets go of holds that no sound needs. The last one stays while the caller speaks. */
  #trim(): void {
    while (this.#holds.length > 1 && this.#covered() - (this.#holds.at(-1)?.tokens ?? 0) >= this.#heard()) {
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
    if (this.#hasLeft) end(hold, undefined);
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
