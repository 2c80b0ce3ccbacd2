import type { Job, PassResult } from './pass.ts';

/** From the gateway to the process of a pass. */
export type ToPass =
  | { readonly type: 'start'; readonly job: Job }
  | { readonly type: 'vectors'; readonly id: number; readonly vectors: readonly Float32Array[] | 'refused' }
  | { readonly type: 'no-vectors'; readonly id: number };

/** From the process of a pass to the gateway. */
export type FromPass =
  | {
      readonly type: 'file';
      readonly source: string;
      readonly stamp: string;
      readonly done: number;
      readonly total: number;
    }
  | { readonly type: 'embed'; readonly id: number; readonly texts: readonly string[] }
  | { readonly type: 'failed'; readonly source: string; readonly reason: string }
  | { readonly type: 'end'; readonly result: PassResult }
  | { readonly type: 'stopped'; readonly reason: string };
