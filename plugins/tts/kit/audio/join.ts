import { StreamFailure } from '../../../../contract/index.ts';
import type { SpeechFormat } from '../types.ts';
import { id3Length, isLengthTable, readMp3Frame } from './mp3.ts';
import { readWavHeader, withWavSizes } from './wav.ts';

/** Joins the pieces of a split text into one sound. */
export interface SoundJoin {
  /** Called before each piece. */
  begin(): void;
  push(bytes: Uint8Array): readonly Uint8Array[];
}

const PASS: SoundJoin = Object.freeze({ begin() {}, push: (bytes: Uint8Array) => [bytes] });

/**
 * Creates the join for a format and a number of pieces. WAV keeps the first header, with unknown sizes marked as
 * such. MP3 loses the tags and length tables that would be wrong for the joined sound. Other formats are
 * concatenated.
 */
export function createSoundJoin(format: SpeechFormat, pieces: number): SoundJoin {
  if (format === 'wav') return joinWav(pieces);
  return format === 'mp3' && pieces > 1 ? joinMp3() : PASS;
}

/** Buffers the beginning of each piece until `read` knows where its sound starts and what to put before it. */
function joinByHead(
  read: (head: Buffer) => readonly Uint8Array[] | 'more',
  rest: (bytes: Uint8Array) => Uint8Array = (bytes) => bytes,
): SoundJoin {
  let head: Buffer | undefined;
  return {
    begin() {
      head = Buffer.alloc(0);
    },
    push(bytes) {
      if (!head) return [rest(bytes)].filter((piece) => piece.length > 0);
      head = Buffer.concat([head, bytes]);
      const ready = read(head);
      if (ready === 'more') return [];
      head = undefined;
      return ready.filter((piece) => piece.length > 0);
    },
  };
}

function joinWav(pieces: number): SoundJoin {
  let first: string | undefined;
  /** Remaining bytes of sound in this piece; lists of tags after them are not sound. */
  let left = Number.POSITIVE_INFINITY;
  const sound = (bytes: Uint8Array): Uint8Array => {
    const kept = bytes.subarray(0, Math.min(bytes.length, left));
    left -= kept.length;
    return kept;
  };
  return joinByHead((head) => {
    const facts = readWavHeader(head);
    // The sound check, which sees the bytes first, rejects anything but WAV. A header waits for its sound, so that an
    // empty response is detected before anything is sent.
    if (typeof facts === 'string' || head.length === facts.headerBytes) return 'more';
    const header = head.subarray(0, facts.headerBytes);
    const rest = head.subarray(facts.headerBytes);
    if (pieces === 1) return [facts.dataBytes === undefined ? withWavSizes(header, undefined) : header, rest];
    left = facts.dataBytes ?? Number.POSITIVE_INFINITY;
    const shape = [facts.encoding, facts.channels, facts.sampleRate, facts.bitsPerSample].join();
    if (first === undefined) {
      first = shape;
      return [withWavSizes(header, undefined), sound(rest)];
    }
    if (shape === first) return [sound(rest)];
    throw new StreamFailure({ class: 'upstream_error', message: 'The pieces of the audio cannot be joined.' });
  }, sound);
}

function joinMp3(): SoundJoin {
  return joinByHead((head) => {
    if (head.length < 10) return 'more';
    const tag = id3Length(head);
    if (head.length < tag + 4) return 'more';
    const frame = readMp3Frame(head.subarray(tag));
    if (!frame) return [head.subarray(tag)];
    if (head.length < tag + frame.bytes) return 'more';
    const table = isLengthTable(head.subarray(tag, tag + frame.bytes));
    return [head.subarray(table ? tag + frame.bytes : tag)];
  });
}
