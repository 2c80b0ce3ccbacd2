import type { Log } from '../contract/log.ts';

interface KeptValue {
  readonly value: unknown;
  readonly close: (() => void | Promise<void>) | undefined;
}

/** Who asks for a kept value: an instance of a generation. */
export interface KeptUser {
  keep<T>(name: string, make: () => T, close?: (kept: T) => void | Promise<void>): T;
}

/**
 * What plugins keep over a change of the configuration: metrics, counters, queues. A value is made once under its instance and
 * name, handed to each generation that asks for it, and closed when the last of those has ended.
 */
export class Kept {
  readonly #values = new Map<string, KeptValue>();
  readonly #users = new Map<string, Set<object>>();

  /** The `keep` of one instance in one generation. */
  userOf(generation: object, instance: string): KeptUser {
    return {
      keep: (name, make, close) => {
        const key = `${instance} ${name}`;
        this.#users.set(key, (this.#users.get(key) ?? new Set()).add(generation));
        const known = this.#values.get(key);
        if (known) return known.value as ReturnType<typeof make>;
        const value = make();
        this.#values.set(key, { value, close: close && (() => close(value)) });
        return value;
      },
    };
  }

  /** Closes what only this generation used; a failing one does not keep the others. */
  async release(generation: object, log: Log): Promise<void> {
    for (const [key, users] of [...this.#users].toReversed()) {
      if (!users.delete(generation) || users.size > 0) continue;
      this.#users.delete(key);
      const kept = this.#values.get(key);
      this.#values.delete(key);
      try {
        await kept?.close?.();
      } catch (error) {
        log.error({ plugin: key.split(' ')[0], err: error }, 'a plugin failed to close what it kept');
      }
    }
  }
}
