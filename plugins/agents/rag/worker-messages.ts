import type { UpdateResult } from './update-index.ts';
import type { UpdateJob } from './update-job.ts';

/** Messages from the gateway to the worker. */
export type ToWorker =
  | { readonly type: 'start'; readonly job: UpdateJob }
  | { readonly type: 'vectors'; readonly id: number; readonly vectors: readonly Float32Array[] | 'refused' }
  | { readonly type: 'no-vectors'; readonly id: number };

/** Messages from the worker to the gateway. */
export type FromWorker =
  | {
      readonly type: 'file';
      readonly source: string;
      readonly stamp: string;
      readonly done: number;
      readonly total: number;
    }
  | { readonly type: 'embed'; readonly id: number; readonly texts: readonly string[] }
  | { readonly type: 'failed'; readonly source: string; readonly reason: string }
  | { readonly type: 'end'; readonly result: UpdateResult }
  | { readonly type: 'stopped'; readonly reason: string };
