import type { Worker } from 'node:cluster';
import type { RawConfig } from '../../config/read.ts';
import type { AuditActor, AuditChange } from '../../contract/audit.ts';
import type { ReloadReport } from '../../contract/gateway.ts';
import type { Gatherer, Readers } from '../../core/plugins/gather.ts';

/** What the processes of one gateway send each other. */
export type WorkerMessage =
  | { readonly tollgate: 'ready' }
  | { readonly tollgate: 'drain' | 'stop' }
  /** A worker serves connections of this port, which the primary has; and no longer. */
  | { readonly tollgate: 'listen'; readonly host: string; readonly port: number }
  | { readonly tollgate: 'listening'; readonly port: number; readonly problem?: ListenProblem }
  | { readonly tollgate: 'unlisten' | 'unlistened' }
  /** A connection, sent with its socket; and that the worker has it. */
  | { readonly tollgate: 'connection' | 'taken' }
  | { readonly tollgate: 'gather'; readonly id: number; readonly topic: string }
  | { readonly tollgate: 'read'; readonly id: number; readonly topic: string }
  | { readonly tollgate: 'answer'; readonly id: number; readonly value: unknown }
  | { readonly tollgate: 'gathered'; readonly id: number; readonly values: readonly unknown[] }
  /** A worker wants the configuration, and gets it as the primary read it. */
  | { readonly tollgate: 'configure' }
  | { readonly tollgate: 'configuration'; readonly text: string }
  /** A reload, in two halves: every worker builds, then all take over or none. */
  | { readonly tollgate: 'prepare'; readonly id: number; readonly text: string }
  | { readonly tollgate: 'prepared'; readonly id: number; readonly problem?: string }
  | { readonly tollgate: 'commit' | 'abandon'; readonly id: number }
  /** A worker's caller wants a reload, or to know what one would change; the primary does it. */
  | { readonly tollgate: 'reload'; readonly id: number; readonly cause?: string; readonly actor?: AuditActor }
  | { readonly tollgate: 'reloaded'; readonly id: number; readonly report: ReloadReport }
  /** One worker writes an entry to the audit log, for the primary, which has no store. */
  | { readonly tollgate: 'audit'; readonly id: number; readonly change: AuditChange }
  | { readonly tollgate: 'audited'; readonly id: number; readonly isWritten: boolean }
  /** What `/readyz` tells of the last reload. */
  | { readonly tollgate: 'note'; readonly problem?: string };

/** Why the port could not be had, as Node says it. */
interface ListenProblem {
  readonly message: string;
  readonly code?: string | undefined;
  readonly syscall?: string | undefined;
}

/** How long the workers have to answer; one that does not is left out. */
export const GATHER_MS = 2000;

/** For a worker: answers what other workers ask, and asks them through the primary process. */
export function createWorkerGatherer(): Gatherer {
  let readers: Readers = new Map();
  const waiting = new Map<number, (values: readonly unknown[]) => void>();
  let lastId = 0;
  process.on('message', async (message: WorkerMessage | null) => {
    if (message?.tollgate === 'gathered') waiting.get(message.id)?.(message.values);
    if (message?.tollgate !== 'read') return;
    // One that fails answers nothing: the process that asks goes on without it.
    const value = await Promise.resolve()
      .then(readers.get(message.topic))
      .catch(() => undefined);
    sendToPrimary({ tollgate: 'answer', id: message.id, value });
  });
  return {
    serve(given) {
      readers = given;
    },
    gather: (topic) =>
      new Promise((resolve) => {
        lastId += 1;
        const id = lastId;
        const done = (values: readonly unknown[]): void => {
          clearTimeout(timer);
          waiting.delete(id);
          resolve(values);
        };
        // The primary is gone, so this worker is on its way out: its own answer is what is left.
        const timer = setTimeout(async () => done([await readers.get(topic)?.()]), 2 * GATHER_MS);
        waiting.set(id, done);
        sendToPrimary({ tollgate: 'gather', id, topic });
      }),
  };
}

/** Sends to a worker; nothing happens when it is gone. */
export function send(worker: Worker, message: WorkerMessage): void {
  if (worker.isConnected()) worker.send(message, () => {});
}

/** Sends to the primary process; nothing happens when it is gone. */
export function sendToPrimary(message: WorkerMessage): void {
  if (process.connected) process.send?.(message, undefined, {}, () => {});
}

/** A configuration as it was read, as text: for another process that is to have the very same one. */
export function writeRawConfig({ positions, texts, secrets, ...rest }: RawConfig): string {
  return JSON.stringify({ ...rest, positions: [...positions], texts: [...texts], secrets: [...secrets] });
}

/** The configuration that {@link writeRawConfig} wrote. */
export function parseRawConfig(text: string): RawConfig {
  const { positions, texts, secrets, ...rest } = JSON.parse(text) as Written;
  return Object.freeze({ ...rest, positions: new Map(positions), texts: new Map(texts), secrets: new Map(secrets) });
}

type Written = Omit<RawConfig, 'positions' | 'texts' | 'secrets'> & {
  readonly positions: Iterable<readonly [string, ReturnType<RawConfig['positions']['get']> & object]>;
  readonly texts: Iterable<readonly [string, string]>;
  readonly secrets: RawConfig['secrets'] extends Map<string, infer S> ? Iterable<readonly [string, S]> : never;
};
