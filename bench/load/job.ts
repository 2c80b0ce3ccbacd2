/** What the load does to one gateway. */
export interface Job {
  readonly port: number;
  /** A whole HTTP request. */
  readonly request: string;
  readonly connections: number;
  /** Requests a second, sent when due (open loop); absent sends the next when the last has its response (closed loop). */
  readonly rate?: number;
  /** Whether responses are streams whose chunks are counted. */
  readonly hasChunks: boolean;
}

export type Order = { readonly do: 'start'; readonly job: Job } | { readonly do: 'mark' | 'stop' };

/** What was counted since the last mark; times in milliseconds. */
export interface Mark {
  readonly requests: number;
  readonly chunks: number;
  readonly errors: readonly string[];
  readonly requestP50: number;
  readonly requestP99: number;
  readonly chunkP50: number;
  readonly chunkP99: number;
}
