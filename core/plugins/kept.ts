import type { Owned } from './registry.ts';

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

  /** Ends a generation's use; returns how to close what only it used, in the order it was made. */
  release(generation: object): readonly Owned<() => void | Promise<void>>[] {
    const closers: Owned<() => void | Promise<void>>[] = [];
    for (const [key, users] of [...this.#users]) {
      if (!users.delete(generation) || users.size > 0) continue;
      this.#users.delete(key);
      const close = this.#values.get(key)?.close;
      this.#values.delete(key);
      if (close) closers.push({ owner: key.split(' ')[0] ?? key, value: close });
    }
    return closers;
  }
}
