import { AsyncLocalStorage } from 'node:async_hooks';
import type { PluginInstance } from '../../config/core-schema.ts';
import { placeOfError, writePlace } from '../../config/import-plugin.ts';
import type { LoadedConfig } from '../../config/load-config.ts';
import { GatewayError, isGatewayError } from '../../contract/errors.ts';
import { freezing } from '../../contract/json.ts';
import { redactError } from './plugin-secrets.ts';

/** Owner of core's code. */
export const CORE = 'core';

/** Plugin whose code is running. Set for each set-up, hook, route and middleware, and inherited by the work that these start. */
const running = new AsyncLocalStorage<string>();

/** Owner of the code that threw an error first. */
const owners = new WeakMap<object, string>();

/**
 * True if a third-party plugin runs. Entering a storage once slows every promise of the process in Node 20: 14 % of a call.
 * Built-in plugins do not need it, because the stack of an uncaught error contains their file.
 */
export const attribution = { isOn: false };

/** Enables attribution if the configuration has a third-party plugin. */
export function enableForThirdParties({ config, builtins }: Pick<LoadedConfig, 'config' | 'builtins'>): void {
  const isBuiltin = ({ kind, plugin }: PluginInstance): boolean =>
    builtins.some((builtin) => builtin.kind === kind && builtin.name === plugin);
  attribution.isOn ||= ![config.store, ...config.instances].every(isBuiltin);
  if (attribution.isOn) freezing.isOn = true;
}

/** Runs code of a plugin. Work that it starts (timers, emitters, promises that are not awaited) is attributed to it. */
export function runAs<T, Args extends readonly unknown[]>(owner: string, run: (...args: Args) => T, ...args: Args): T {
  return attribution.isOn ? running.run(owner, run, ...args) : run(...args);
}

/** Returns the plugin whose code is running or started the running code; undefined for core's own. */
export function runningPlugin(): string | undefined {
  const owner = running.getStore();
  return owner === CORE ? undefined : owner;
}

/** Runs code of a plugin and waits for it. Errors that it throws or rejects with are also attributed to it. */
export async function runAttributed<T>(owner: string, run: () => T | Promise<T>): Promise<T> {
  try {
    return await runAs(owner, run);
  } catch (thrown) {
    throw attribute(thrown, owner);
  }
}

/** Runs a pure function of a plugin, which starts no further work. */
export function callAttributed<T>(owner: string, run: () => T): T {
  try {
    return run();
  } catch (thrown) {
    throw attribute(thrown, owner);
  }
}

/** Attributes a caught error to an owner, unless it has one. Redacts secrets in it, and converts other values to an Error. */
export function attribute(thrown: unknown, owner: string): unknown {
  const isObject = typeof thrown === 'object' && thrown !== null;
  if (isObject && owners.has(thrown)) return thrown;
  const error = redactError(owner, isObject ? thrown : new Error(String(thrown)));
  owners.set(error, owner);
  return error;
}

/** Returns the plugin that an error is attributed to. */
export function ownerOf(error: unknown): string | undefined {
  const owner = typeof error === 'object' && error !== null ? owners.get(error) : undefined;
  return owner === CORE ? undefined : owner;
}

/** Returns the reason of a plugin's failure as the end of a sentence, with the position in its code if known. */
export function reasonOf(error: unknown): string {
  if (error === undefined || error === null) return `${String(error)} was thrown: throw an Error that says why`;
  if (!(error instanceof Error)) return String(error);
  const isFrozen = error instanceof TypeError && /^Cannot (?:add|assign|define|delete|redefine) /.test(error.message);
  const remedy = isFrozen ? ': what a plugin is given is frozen, return a changed copy' : '';
  return `${error.message}${remedy}${writePlace(placeOfError(error))}`;
}

/** Converts a plugin's error to a GatewayError: the caller gets a fixed message, the log gets the origin. */
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

/** Counts background work that outlives its request. */
export class Pending {
  /** Counts by name. Entries stay at zero: names are few, and adding and removing entries costs more. */
  readonly #counts = new Map<string, number>();
  #total = 0;
  #waiting: (() => void)[] = [];

  /** Counts work until its {@link end}; `what` describes it, for the report of unfinished work. */
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

  /** Resolves when no work is running, at the latest after `withinMs`, with the unfinished work. */
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
