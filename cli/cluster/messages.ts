import type { Worker } from 'node:cluster';
import type { RawConfig } from '../../config/read.ts';
import type { AuditActor, AuditChange } from '../../contract/audit.ts';
import type { DraftControl } from '../../contract/config-changes.ts';
import type { ErrorCode, ErrorOptions } from '../../contract/errors.ts';
import type { ReloadReport } from '../../contract/gateway.ts';
import type { Gatherer, Readers } from '../../core/plugins/gather.ts';

/** Messages between the processes of one gateway. */
export type WorkerMessage =
  | { readonly tollgate: 'ready' }
  | { readonly tollgate: 'drain' | 'stop' }
  /** A worker starts or stops serving connections of this port, which the primary holds. */
  | { readonly tollgate: 'listen'; readonly host: string; readonly port: number }
  | { readonly tollgate: 'listening'; readonly port: number; readonly problem?: ListenProblem }
  | { readonly tollgate: 'unlisten' | 'unlistened' }
  /** A connection, sent with its socket, and the worker's confirmation. */
  | { readonly tollgate: 'connection' | 'taken' }
  | { readonly tollgate: 'gather'; readonly id: number; readonly topic: string }
  | { readonly tollgate: 'read'; readonly id: number; readonly topic: string }
  | { readonly tollgate: 'answer'; readonly id: number; readonly value: unknown }
  | { readonly tollgate: 'gathered'; readonly id: number; readonly values: readonly unknown[] }
  /** A worker requests the configuration, as the primary read it. */
  | { readonly tollgate: 'configure' }
  | { readonly tollgate: 'configuration'; readonly text: string }
  /** Two-phase reload: every worker builds, then all activate or none. */
  | { readonly tollgate: 'prepare'; readonly id: number; readonly text: string }
  | { readonly tollgate: 'prepared'; readonly id: number; readonly problem?: string }
  | { readonly tollgate: 'commit' | 'abandon'; readonly id: number }
  /** A worker's caller requests a reload or a comparison; the primary runs it. */
  | { readonly tollgate: 'reload'; readonly id: number; readonly cause?: string; readonly actor?: AuditActor }
  | { readonly tollgate: 'reloaded'; readonly id: number; readonly report: ReloadReport }
  /** A worker's caller reads, checks or writes drafts; the primary does it. */
  | { readonly tollgate: 'draft'; readonly id: number; readonly work: DraftWork }
  | { readonly tollgate: 'drafted'; readonly id: number; readonly result: DraftResult }
  /** One worker writes an audit entry for the primary, which has no store. */
  | { readonly tollgate: 'audit'; readonly id: number; readonly change: AuditChange }
  | { readonly tollgate: 'audited'; readonly id: number; readonly isWritten: boolean }
  /** State of the last reload for `/readyz`. */
  | { readonly tollgate: 'note'; readonly problem?: string };

/** Method of the drafts' control, and its arguments. */
export type DraftWork = {
  readonly [Method in keyof DraftControl]: {
    readonly method: Method;
    readonly args: Parameters<DraftControl[Method]>;
  };
}[keyof DraftControl];

export type DraftResult =
  | { readonly value: unknown }
  | { readonly error: { readonly code: ErrorCode; readonly message: string; readonly options: ErrorOptions } };

/** Reason why the port could not be opened, in Node's words. */
interface ListenProblem {
  readonly message: string;
  readonly code?: string | undefined;
  readonly syscall?: string | undefined;
}

/** Time limit for workers to reply; late ones are omitted. */
export const GATHER_MS = 2000;

/** In a worker: replies to reads of other workers, and reads from them through the primary. */
export function createWorkerGatherer(): Gatherer {
  let readers: Readers = new Map();
  const waiting = new Map<number, (values: readonly unknown[]) => void>();
  let lastId = 0;
  process.on('message', async (message: WorkerMessage | null) => {
    if (message?.tollgate === 'gathered') waiting.get(message.id)?.(message.values);
    if (message?.tollgate !== 'read') return;
    // A reader that fails sends no value: the process that asked continues without it.
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
        // The primary has ended, so this worker will too: only its own value is left.
        const timer = setTimeout(async () => done([await readers.get(topic)?.()]), 2 * GATHER_MS);
        waiting.set(id, done);
        sendToPrimary({ tollgate: 'gather', id, topic });
      }),
  };
}

/** Sends to a worker; does nothing if it has ended. */
export function send(worker: Worker, message: WorkerMessage): void {
  if (worker.isConnected()) worker.send(message, () => {});
}

/** Sends to the primary process; does nothing if it has ended. */
export function sendToPrimary(message: WorkerMessage): void {
  if (process.connected) process.send?.(message, undefined, {}, () => {});
}

/** Serializes a raw configuration, for another process that must use exactly the same one. */
export function writeRawConfig({ positions, texts, secrets, ...rest }: RawConfig): string {
  return JSON.stringify({ ...rest, positions: [...positions], texts: [...texts], secrets: [...secrets] });
}

/** Parses the text of {@link writeRawConfig}. */
export function parseRawConfig(text: string): RawConfig {
  const { positions, texts, secrets, ...rest } = JSON.parse(text) as Written;
  return Object.freeze({ ...rest, positions: new Map(positions), texts: new Map(texts), secrets: new Map(secrets) });
}

type Written = Omit<RawConfig, 'positions' | 'texts' | 'secrets'> & {
  readonly positions: Iterable<readonly [string, ReturnType<RawConfig['positions']['get']> & object]>;
  readonly texts: Iterable<readonly [string, string]>;
  readonly secrets: RawConfig['secrets'] extends Map<string, infer S> ? Iterable<readonly [string, S]> : never;
};
