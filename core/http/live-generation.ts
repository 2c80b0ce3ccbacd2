import type { RequestListener } from 'node:http';
import type { Generation } from '../calls/generation.ts';
import { GatewayError } from '../contract/errors.ts';
import { type ServeDeps, type Served, serveGeneration } from './serve.ts';
import type { UpgradeRules } from './upgrades.ts';

/** A generation that is ready beside the running one: it takes over, or is closed again. One of the two, once. */
export interface PreparedGeneration {
  /** From now on new requests go to it. */
  commit(): void;
  /** Closes it; nothing has changed. */
  abandon(): Promise<void>;
}

/** How many former generations may still have calls: each holds all that its plugins set up. */
const MAX_FORMER = 8;

/** The generation that new requests go to; the ones before it close when their last request has ended. */
export class LiveGeneration {
  #current: { readonly generation: Generation; readonly served: Served } | undefined;
  #isClosed = false;
  readonly #running = new Map<Generation, number>();
  readonly #closing = new Set<Promise<void>>();

  /** For the server: it never changes, what it leads to does. */
  readonly listener: RequestListener = (request, response) => {
    const current = this.#current;
    if (!current) return void response.destroy();
    const { generation } = current;
    this.#running.set(generation, (this.#running.get(generation) ?? 0) + 1);
    current.served.listener(request, response);
  };

  get generation(): Generation {
    if (!this.#current) throw new TypeError('no generation is running');
    return this.#current.generation;
  }

  /** The rules of the generation that serves now. */
  get upgrades(): UpgradeRules {
    if (!this.#current) throw new TypeError('no generation is running');
    return this.#current.served.upgrades;
  }

  /** Describes the generation that serves now, also when it no longer does. */
  get openApi(): Served['openApi'] {
    if (!this.#current) throw new TypeError('no generation is running');
    return this.#current.served.openApi;
  }

  /** Makes a generation ready. One that does not become ready is closed and changes nothing. */
  async prepare(generation: Generation, deps: ServeDeps): Promise<PreparedGeneration> {
    try {
      this.#assertRoom();
      const served = serveGeneration(generation, { ...deps, onClosed: () => this.#leave(generation) });
      await generation.ready();
      return {
        commit: () => this.#swap({ generation, served }),
        abandon: () => generation.close(),
      };
    } catch (error) {
      await generation.close();
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const current = this.#current;
    this.#current = undefined;
    if (current) this.#close(current.generation);
    await Promise.all(this.#closing);
  }

  #assertRoom(): void {
    const former = [...this.#running.keys()].filter((generation) => generation !== this.#current?.generation);
    if (former.length >= MAX_FORMER)
      throw new GatewayError(
        'overloaded',
        `Calls of ${former.length} former configurations still run. Reload again when some of them have ended.`,
      );
  }

  #swap(next: { readonly generation: Generation; readonly served: Served }): void {
    // The gateway has drained meanwhile.
    if (this.#isClosed) {
      this.#close(next.generation);
      return;
    }
    const before = this.#current?.generation;
    this.#current = next;
    next.generation.takeOver();
    if (before && !this.#running.get(before)) this.#close(before);
  }

  #leave(generation: Generation): void {
    const left = (this.#running.get(generation) ?? 1) - 1;
    if (left > 0) {
      this.#running.set(generation, left);
      return;
    }
    this.#running.delete(generation);
    if (generation !== this.#current?.generation) this.#close(generation);
  }

  #close(generation: Generation): void {
    this.#running.delete(generation);
    const closing = generation.close();
    this.#closing.add(closing);
    void closing.finally(() => this.#closing.delete(closing));
  }
}
