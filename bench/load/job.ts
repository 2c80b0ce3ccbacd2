/** Load for one gateway. */
export interface Job {
  readonly port: number;
  /** Complete HTTP request. */
  readonly request: string;
  readonly connections: number;
  /**
   * Requests per second, sent on schedule (open loop). Absent: each request follows the response of the last one
   * (closed loop).
   */
  readonly rate?: number;
  /** True if responses are streams whose chunks are counted. */
  readonly hasChunks: boolean;
}

export type Order = { readonly do: 'start'; readonly job: Job } | { readonly do: 'mark' | 'stop' };

/** Counts since the last mark; times in milliseconds. */
export interface Mark {
  readonly requests: number;
  readonly chunks: number;
  readonly errors: readonly string[];
  readonly requestP50: number;
  readonly requestP99: number;
  readonly chunkP50: number;
  readonly chunkP99: number;
}
