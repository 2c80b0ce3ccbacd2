import type { BagItem } from './bag.ts';

/** What core needs of a signal: an AbortSignal has it, and so has a {@link CallerSignal}, which costs next to nothing. */
export interface Abortable {
  readonly aborted: boolean;
  readonly reason: unknown;
  addEventListener(event: 'abort', listener: () => void, options?: { readonly once?: boolean }): void;
  removeEventListener(event: 'abort', listener: () => void): void;
}

/**
 * Fires when a caller has left. A real AbortSignal costs 5 µs to make and listen to, which every request would pay: it is
 * made when somebody outside of core asks for it. Each listener is called once.
 */
export class CallerSignal implements Abortable, BagItem {
  /** For the list of those who are being served. */
  slot = -1;
  #aborted = false;
  #reason: unknown;
  #listeners: readonly (() => void)[] = NONE;
  #real: AbortController | undefined;

  get aborted(): boolean {
    return this.#aborted;
  }

  get reason(): unknown {
    return this.#reason;
  }

  /** The same as a real AbortSignal, for plugins and libraries. */
  get signal(): AbortSignal {
    if (!this.#real) {
      this.#real = new AbortController();
      if (this.#aborted) this.#real.abort(this.#reason);
    }
    return this.#real.signal;
  }

  /** Fires, the first time it is called. */
  abort(reason: unknown = new DOMException('This operation was aborted', 'AbortError')): void {
    if (this.#aborted) return;
    this.#aborted = true;
    this.#reason = reason;
    const listeners = this.#listeners;
    this.#listeners = NONE;
    for (const listener of listeners) listener();
    this.#real?.abort(reason);
  }

  addEventListener(_event: 'abort', listener: () => void): void {
    if (!this.#aborted) this.#listeners = [...this.#listeners, listener];
  }

  removeEventListener(_event: 'abort', listener: () => void): void {
    this.#listeners = this.#listeners.filter((each) => each !== listener);
  }
}

const NONE: readonly (() => void)[] = Object.freeze([]);

/** The AbortSignal of whatever kind of signal. */
export function toAbortSignal(signal: Abortable): AbortSignal {
  return signal instanceof CallerSignal ? signal.signal : (signal as AbortSignal);
}
