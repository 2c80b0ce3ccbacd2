import { AsyncLocalStorage } from 'node:async_hooks';
import { Server } from 'node:net';
import { format } from 'node:util';
import type { ClientSend, JsonObject, Log } from '../../../contract/index.ts';
import type { PackageChoice } from './package.ts';

/** Facts of one instance. */
export interface ClientOptions extends Omit<PackageChoice, 'settings'> {
  readonly settings: JsonObject;
  /** Hosts (`name` or `name:port`) that the package may call. Default: the first one that it calls in each call. */
  readonly hosts: readonly string[];
  /** True if the package may use connections of its own. */
  readonly ownTransport: boolean;
  readonly providerOptions: JsonObject;
  readonly log: Log | undefined;
}

/** Work of a package: its import, or a call. */
export interface Work {
  readonly instance: ClientOptions;
  /** Lines that it has printed. */
  prints: number;
  readonly run?: Run;
  /** Takes the first request in place of the connection. */
  readonly draft?: (request: string) => void;
}

/** One call of a package. */
export interface Run {
  readonly send: ClientSend;
  /** Host of its first request. */
  host: string | undefined;
  requests: number;
  /** Failure of a connection, which the package may have wrapped. */
  broken: unknown;
}

export const working = new AsyncLocalStorage<Work>();

/** Prints of one call that are kept, and their length. */
export const MAX_PRINTS = 5;
const MAX_PRINTED = 200;

/** Prints of imports while a configuration is checked, when there is no log, by package. */
const early: Record<string, readonly string[]> = {};

function logPrint({ log, package: name }: ClientOptions, text: string): void {
  if (log) log.warn({ package: name, text }, 'a package printed a text');
  else early[name] = [...(early[name] ?? []), text].slice(-MAX_PRINTS);
}

/** Logs what a package printed before there was a log. */
export function logEarlyPrints(instance: ClientOptions): void {
  const texts = instance.log ? early[instance.package] : undefined;
  if (!texts) return;
  early[instance.package] = [];
  for (const text of texts) logPrint(instance, text);
}

let isWatching = false;

/**
 * Turns what packages print into lines of the log, since stdout belongs to the gateway, and refuses servers of theirs.
 * Code outside of a package's work is not affected.
 */
export function watchPackages(): void {
  if (isWatching) return;
  isWatching = true;
  const { console: own } = globalThis;
  for (const level of ['debug', 'info', 'log', 'warn', 'error'] as const) {
    const print = own[level].bind(own);
    own[level] = (...words) => {
      const work = working.getStore();
      if (!work) print(...words);
      else if (work.prints < MAX_PRINTS) {
        work.prints += 1;
        logPrint(work.instance, format(...words).slice(0, MAX_PRINTED));
      }
    };
  }
  Server.prototype.listen = new Proxy(Server.prototype.listen, {
    apply(listen, server, args) {
      if (working.getStore()) throw new Error('a package of the AI SDK may not open a server');
      return Reflect.apply(listen, server, args);
    },
  });
}
