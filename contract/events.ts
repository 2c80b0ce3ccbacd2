/** Stream events and their reader. */

/** One server-sent event. */
export interface SseEvent {
  readonly event?: string | undefined;
  readonly data: string;
}

/**
 * Progress of a streamed response, as its wire format declares it.
 * `open`: more content follows.
 * `finished`: every choice has its finish reason, and the end marker is missing.
 * `ending`: the response is complete, and only its usage may follow.
 * `complete`: the end marker was read, and nothing follows.
 */
export type StreamProgress = 'open' | 'finished' | 'ending' | 'complete';

export interface SseReaderOptions {
  /** In UTF-16 units; default: four million. */
  readonly maxEventLength?: number;
  /** Receives the UTF-16 units by which an unfinished event grew beyond 64 KiB. A throw ends the stream. */
  readonly onGrowth?: (more: number) => void;
}

/** Parses the bytes of one stream into events. Ignores comments, `id` and `retry`. */
export interface SseReader {
  /**
   * Returns the events that these bytes complete. Throws a {@link StreamFailure} for an event that is too long, and
   * `provider_invalid_response` for JSON with too many values or levels.
   */
  push(bytes: Uint8Array): readonly SseEvent[];
  /**
   * Ends the stream after a clean end of the bytes. The standard drops an event without its blank line, but some vendors end that
   * way. The last event is delivered if its data is complete: `[DONE]` or a JSON object.
   */
  end(): readonly SseEvent[];
}
