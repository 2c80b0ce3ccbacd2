import { StringDecoder } from 'node:string_decoder';
import { createParser } from 'eventsource-parser';
import { GatewayError } from './errors.ts';
import type { SseEvent, SseReader, SseReaderOptions } from './events.ts';
import { exceedsBounds, parseJson } from './json.ts';
import { type ResponseHeaders, StreamFailure } from './provider.ts';

/** Maximum length of an event (data and an unfinished line), in UTF-16 units; a longer event fails the stream. */
export const MAX_EVENT_LENGTH = 4 * 1024 * 1024;

/** Maximum length of an event that needs no growth report. */
const SMALL_EVENT = 64 * 1024;
/** Parser overhead for each piece of an event, counted as text length. */
const PIECE_LENGTH = 4;

const LF = 10;
const CR = 13;
const NONE: readonly SseEvent[] = Object.freeze([]);

/** Returns true if a vendor responds with an event stream. */
export function isEventStream(headers: ResponseHeaders): boolean {
  return /^text\/event-stream/i.test(headers['content-type'] ?? '');
}

/**
 * Reads `text/event-stream`: UTF-8 with code points split anywhere (invalid bytes become U+FFFD), a byte order mark, and lines
 * ended by CR, LF or CRLF. Source: https://html.spec.whatwg.org/multipage/server-sent-events.html
 */
export function createEventReader(options: SseReaderOptions = {}): SseReader {
  const maxLength = options.maxEventLength ?? MAX_EVENT_LENGTH;
  const decoder = new StringDecoder('utf8');
  let events: SseEvent[] = [];
  let [started, afterCr, tooLong, isBeyondBounds] = [false, false, false, false];
  let [waiting, grown] = [0, SMALL_EVENT];
  const parser = createParser({
    maxBufferSize: maxLength,
    onEvent(event) {
      waiting = 0;
      tooLong ||= event.data.length > maxLength;
      isBeyondBounds ||= !tooLong && exceedsBounds(event.data);
      if (!isBeyondBounds) events.push(event);
    },
    onError(error) {
      tooLong ||= error.type === 'max-buffer-size-exceeded';
    },
  });

  function feed(text: string): readonly SseEvent[] {
    waiting += text.length + PIECE_LENGTH;
    parser.feed(text);
    if (waiting > grown) {
      options.onGrowth?.(waiting - grown);
      grown = waiting;
    }
    if (tooLong) {
      throw new StreamFailure({ class: 'upstream_error', message: `an event is longer than ${maxLength} characters` });
    }
    if (isBeyondBounds && events.length === 0)
      throw new GatewayError(
        'provider_invalid_response',
        'The provider sent a stream event with too many values or too much nesting.',
      );
    if (events.length === 0) return NONE;
    const batch = events;
    events = [];
    return batch;
  }

  /** Feeds text without waiting after a CR. The parser waits for the next character, so a trailing CR is completed to CRLF. */
  function feedUnwaiting(text: string): readonly SseEvent[] {
    if (text === '') return NONE;
    const isMark = !started && text.charCodeAt(0) === 0xfeff;
    const isSecondHalf = afterCr && text.charCodeAt(0) === LF;
    started = true;
    afterCr = text.charCodeAt(text.length - 1) === CR;
    const start = isMark || isSecondHalf ? 1 : 0;
    return feed((start ? text.slice(1) : text) + (afterCr ? '\n' : ''));
  }

  return {
    push: (bytes) => feedUnwaiting(decoder.write(bytes)),
    end() {
      const rest = feedUnwaiting(decoder.end());
      const last = feed('\n\n').filter(({ data }) => isWhole(data));
      return [...rest, ...last];
    },
  };
}

/** Yields the events of a body in batches: all events that one buffer of bytes completed. Errors of the body pass through. */
export async function* readEvents(
  body: AsyncIterable<Uint8Array>,
  options?: SseReaderOptions,
): AsyncGenerator<readonly SseEvent[], void, undefined> {
  const reader = createEventReader(options);
  for await (const bytes of body) {
    const events = reader.push(bytes);
    if (events.length > 0) yield events;
  }
  const events = reader.end();
  if (events.length > 0) yield events;
}

function isWhole(data: string): boolean {
  return data === '[DONE]' || (data.startsWith('{') && parseJson(data) !== undefined);
}
