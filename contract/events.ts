/** The events of streams, and how they are read of bytes. */

/** One server-sent event. */
export interface SseEvent {
  readonly event?: string | undefined;
  readonly data: string;
}

/**
 * Progress of an answer in an event stream, as its wire format declares it. `open`: more is to come. `finished`: every choice has its
 * finish reason, and the end marker is missing. `ending`: the answer is whole, and only its usage may follow. `complete`: the end marker
 * was read, and nothing follows.
 */
export type StreamProgress = 'open' | 'finished' | 'ending' | 'complete';

export interface SseReaderOptions {
  /** In UTF-16 units; four million unless set. */
  readonly maxEventLength?: number;
  /** Told by how many UTF-16 units more an event that has not ended has outgrown 64 KiB; what it throws ends the stream. */
  readonly onGrowth?: (more: number) => void;
}

/** Turns the bytes of one stream into events, as they come. Comments, `id` and `retry` pass unseen. */
export interface SseReader {
  /**
   * The events that these bytes complete. Throws a {@link StreamFailure} for an event that is too long, and
   * `provider_invalid_response` for one whose JSON holds too many values or is nested too deeply.
   */
  push(bytes: Uint8Array): readonly SseEvent[];
  /**
   * The bytes came to a clean end. The standard drops an event without its blank line; vendors do end so, therefore one
   * is still delivered when its data is whole: `[DONE]` or a JSON object.
   */
  end(): readonly SseEvent[];
}
