import { AsyncLocalStorage } from 'node:async_hooks';
import type { PluginInstance } from '../../config/core-schema.ts';
import { placeOfError, writePlace } from '../../config/import-plugin.ts';
import type { LoadedConfig } from '../../config/load-config.ts';
import { GatewayError, isGatewayError } from '../../contract/errors.ts';
import { freezing } from '../../contract/json.ts';

/** The owner of core's code. */
export const CORE = 'core';

/** The plugin whose code is running: entered for each set-up, hook, route and middleware, and kept by what these start. */
const running = new AsyncLocalStorage<string>();

/** Whose code threw an error first. */
const owners = new WeakMap<object, string>();

/**
 * Whether any plugin runs that does not come with the package. Entering a storage once makes every promise of the process dearer
 * in Node 20: 14 % of a call. Built-in plugins do without, an uncaught error of theirs has their file in its stack.
 */
export const attribution = { isOn: false };

/** With a plugin that does not come with the package it is noted from now on whose code runs. */
export function noteOthers({ config, builtins }: Pick<LoadedConfig, 'config' | 'builtins'>): void {
  const isBuiltin = ({ kind, plugin }: PluginInstance): boolean =>
    builtins.some((builtin) => builtin.kind === kind && builtin.name === plugin);
  attribution.isOn ||= ![config.store, ...config.instances].every(isBuiltin);
  if (attribution.isOn) freezing.isOn = true;
}

/** Runs code of a plugin, so that whatever it starts (timers, emitters, promises that are not awaited) is known as its own. */
export function runAs<T, Args extends readonly unknown[]>(owner: string, run: (...args: Args) => T, ...args: Args): T {
  return attribution.isOn ? running.run(owner, run, ...args) : run(...args);
}

/** The plugin whose code is running, or started what is running; undefined for core's own. */
export function runningPlugin(): string | undefined {
  const owner = running.getStore();
  return owner === CORE ? undefined : owner;
}

/** Runs code of a plugin and waits for it: an error that it throws or rejects with is known as its own too. */
export async function runOwned<T>(owner: string, run: () => T | Promise<T>): Promise<T> {
  try {
    return await runAs(owner, run);
  } catch (thrown) {
    throw own(thrown, owner);
  }
}

/** The same for a pure function, which starts nothing. */
export function callOwned<T>(owner: string, run: () => T): T {
  try {
    return run();
  } catch (thrown) {
    throw own(thrown, owner);
  }
}

/** Notes the owner of an error where it is caught, unless it has one. What is no object becomes an Error. */
export function own(thrown: unknown, owner: string): unknown {
  const error = typeof thrown === 'object' && thrown !== null ? thrown : new Error(String(thrown));
  if (!owners.has(error)) owners.set(error, owner);
  return error;
}

/** The plugin that an error is known to come from. */
export function ownerOf(error: unknown): string | undefined {
  const owner = typeof error === 'object' && error !== null ? owners.get(error) : undefined;
  return owner === CORE ? undefined : owner;
}

/** Why code of a plugin failed, as the end of a sentence, with the place in its code where there is one. */
export function reasonOf(error: unknown): string {
  if (error === undefined || error === null) return `${String(error)} was thrown: throw an Error that says why`;
  if (!(error instanceof Error)) return String(error);
  const isFrozen = error instanceof TypeError && /^Cannot (?:add|assign|define|delete|redefine) /.test(error.message);
  const remedy = isFrozen ? ': what a plugin is given is frozen, return a changed copy' : '';
  return `${error.message}${remedy}${writePlace(placeOfError(error))}`;
}

/** What a plugin threw, as a GatewayError: the caller gets a fixed sentence, the log where it comes from. */
export function pluginError(place: string, error: unknown): GatewayError {
  if (isGatewayError(error)) return error;
  return new GatewayError(
    'internal_error',
    'A plugin of the gateway failed on this request. Search the gateway’s log for the request id.',
    {
      cause: new Error(`${place}: ${reasonOf(error)}`, { cause: error }),
    },
  );
}

/** Counts work that goes on after its request. */
export class Pending {
  /** By name, which stays when nothing of it goes on: names are few, and entries that come and go cost more. */
  readonly #counts = new Map<string, number>();
  #total = 0;
  #waiting: (() => void)[] = [];

  /** Counts work until its {@link end}; `what` it is, for those that wait in vain. */
  begin(what: string): void {
    this.#total += 1;
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + 1);
  }

  end(what: string): void {
    const running = this.#counts.get(what) ?? 0;
    if (running > 0) {
      this.#counts.set(what, running - 1);
      this.#total -= 1;
    }
    if (this.#total > 0 || this.#waiting.length === 0) return;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resume of waiting) resume();
  }

  /** Resolves when nothing is going on, at the latest after `withinMs`, with what still is. */
  async idle(withinMs: number): Promise<readonly string[]> {
    if (this.#total === 0) return [];
    await new Promise<void>((resolve) => {
      const late = setTimeout(resolve, withinMs);
      this.#waiting.push(() => {
        clearTimeout(late);
        resolve();
      });
    });
    return [...this.#counts].filter(([, running]) => running > 0).map(([what]) => what);
  }
}
