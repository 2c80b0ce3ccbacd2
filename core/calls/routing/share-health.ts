import { steadyNow } from '../../contract/steady-now.ts';
import type { Counters } from '../../contract/store.ts';
import type { HealthBook } from './health-book.ts';

/** How often it is looked what others found out, at most, and only while there are calls. */
const EVERY_MS = 2_000;

/** Names that are looked at in one round: those that were used last. */
const MAX_NAMES = 32;

/** A number that grows with every change: while it stays, nobody looks further. */
const VERSION = 'health.version';

const OPEN = 'open';

/** Not a place that anybody waits for: it is gone at once. */
const READER = 'reader';
const READ_MS = 1;
const MAX_OURS = 1_000;
const MANY = 1_000;

/** What workers and nodes of one store tell each other. */
export interface SharedHealth {
  /** Learns from the others now and then; to be called with each call, which does not wait for it. */
  refresh(): void;
  /** Whether anybody has opened a target or provider. */
  isOpen(name: string): Promise<boolean>;
}

/**
 * Shares which targets are open with the other workers and nodes of a store. A target that was opened has a lease for as long. Nobody
 * waits for the store: what it does not answer is not known.
 */
export function shareHealth(counters: Counters, health: HealthBook, now: () => number = steadyNow): SharedHealth {
  let readAt = 0;
  let isReading = false;
  let version = 0;
  /** Names that others have opened: their leases may end without a change. */
  const openElsewhere = new Set<string>();
  /** Names with a lease of this process. */
  const ours = new Set<string>();

  const isOpen = async (name: string): Promise<boolean> =>
    !(await counters.lease(keyOf(name), READER, 1, READ_MS, now()));
  const publish = async (name: string, coolDownMs: number): Promise<void> => {
    const key = keyOf(name);
    if (coolDownMs > 0) await counters.lease(key, OPEN, MANY, Math.ceil(coolDownMs), now());
    else await counters.release(key, OPEN);
    await counters.next(VERSION);
  };
  health.onChange = (name, coolDownMs) => {
    if (coolDownMs === 0 && !ours.has(name) && !openElsewhere.has(name)) return;
    if (coolDownMs === 0) ours.delete(name);
    // Callers make names up: what is forgotten is read from the store again.
    else if (ours.size < MAX_OURS) ours.add(name);
    openElsewhere.delete(name);
    publish(name, coolDownMs).catch(() => undefined);
  };

  const read = async (): Promise<void> => {
    const latest = await counters.next(VERSION, 0);
    const names = latest === version ? [...openElsewhere] : health.names(MAX_NAMES);
    version = latest;
    for (const name of names) {
      // What this process has found out itself, it knows best.
      if (health.isOpen(name) && !openElsewhere.has(name)) continue;
      if (!ours.has(name) && (await isOpen(name))) {
        openElsewhere.add(name);
        health.learn(name, now() + 2 * EVERY_MS);
      } else if (openElsewhere.delete(name)) health.learn(name, undefined);
    }
  };

  return {
    isOpen,
    refresh() {
      if (isReading || now() - readAt < EVERY_MS) return;
      isReading = true;
      readAt = now();
      void read()
        .catch(() => undefined)
        .finally(() => {
          isReading = false;
        });
    },
  };
}

function keyOf(name: string): string {
  return `health.${name}`;
}
