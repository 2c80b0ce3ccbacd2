import { createEventReader } from '../../../../contract/event-reader.ts';
import {
  GatewayError,
  parseJson,
  type ResponseHeaders,
  type SseEvent,
  StreamFailure,
  type StreamProgress,
} from '../../../../contract/index.ts';
import type { AudioDecoder, SpeechTokens } from '../types.ts';

/** A JSON response is held in memory: 32 MiB of base64 are 24 MiB of sound, eight minutes of 24 kHz samples. */
const LONGEST_JSON_BYTES = 32 * 1024 * 1024;

function notSound(what: string): GatewayError {
  return new GatewayError(
    'provider_invalid_response',
    `The speech provider returned ${what} instead of audio. The request is valid; try again.`,
  );
}

/** Decoder for vendors that respond with the bytes of the sound; rejects a text response. */
export function decodeSound(headers: ResponseHeaders): AudioDecoder {
  const type = headers['content-type'] ?? '';
  if (/^\s*(text\/|application\/(json|problem|xml))/i.test(type)) throw notSound('text');
  return { push: (bytes) => [bytes], end: () => [] };
}

export interface JsonSound {
  readonly base64: string;
  readonly tokens?: SpeechTokens;
}

/** Decoder for vendors that respond with JSON; `read` returns the base64 in it, undefined without any. */
export function decodeJsonSound(read: (body: unknown) => JsonSound | undefined): AudioDecoder {
  const pieces: Uint8Array[] = [];
  let length = 0;
  let tokens: SpeechTokens | undefined;
  return {
    push(bytes) {
      length += bytes.length;
      if (length > LONGEST_JSON_BYTES) throw notSound('more than 32 MiB of text');
      pieces.push(bytes);
      return [];
    },
    end() {
      const sound = read(parseBody(Buffer.concat(pieces)));
      tokens = sound?.tokens;
      const audio = fromBase64(sound?.base64 ?? '');
      return audio.length > 0 ? [audio] : [];
    },
    usage: () => tokens,
  };
}

/** Meaning of a vendor's server-sent event: sound, the end, usage, or nothing. */
export interface EventSound extends Partial<JsonSound> {
  readonly done?: boolean;
}

/**
 * Decoder for vendors that send events with base64. `read` throws {@link StreamFailure} for an error event. `endless`
 * is for vendors without a last event; otherwise a stream without one is incomplete. `atEnd` is the progress once
 * `read` returns `done`: `complete`, unless more may follow.
 */
export function decodeEventSound(
  read: (event: SseEvent) => EventSound | undefined,
  options: { readonly endless?: boolean; readonly atEnd?: StreamProgress } = {},
): AudioDecoder {
  const { endless = false, atEnd = 'complete' } = options;
  const reader = createEventReader();
  let tokens: SpeechTokens | undefined;
  let done = endless;
  let progress: StreamProgress | undefined;
  const listen = (events: readonly SseEvent[]): readonly Uint8Array[] => {
    progress = events.length > 0 ? 'open' : undefined;
    return events.flatMap((event) => {
      const sound = read(event);
      done ||= sound?.done ?? false;
      tokens = sound?.tokens ?? tokens;
      if (sound?.done) progress = atEnd;
      return sound?.base64 ? [fromBase64(sound.base64)] : [];
    });
  };
  return {
    push: (bytes) => listen(reader.push(bytes)),
    end() {
      const pieces = listen(reader.end());
      if (!done)
        throw new StreamFailure({ class: 'upstream_error', message: 'The audio was interrupted before its end.' });
      return pieces;
    },
    usage: () => tokens,
    progress: () => progress,
  };
}

function parseBody(bytes: Buffer): unknown {
  const body = parseJson(bytes.toString('utf8'));
  if (body === undefined) throw notSound('invalid JSON');
  return body;
}

/** Strict: otherwise an invalid character would silently end the sound. */
function fromBase64(text: string): Buffer {
  if (text.length % 4 === 1 || !/^[A-Za-z0-9+/_-]*={0,2}$/.test(text)) throw notSound('invalid base64');
  return Buffer.from(text, 'base64');
}
