import { GatewayError, StreamFailure } from '../../../../contract/index.ts';
import type { SpeechFormat } from '../types.ts';
import { PCM_RATE } from './formats.ts';
import { id3Length, readMp3Frame } from './mp3.ts';
import { readWavHeader, type WavFacts } from './wav.ts';

/** Checks a sound as it passes: its format and duration, and that it is neither empty nor truncated. */
export interface SoundCheck {
  /** Throws `provider_invalid_response` for bytes of another format. */
  push(bytes: Uint8Array): void;
  /**
   * Throws {@link StreamFailure} if there was no sound, or it ended within a frame. Returns seconds, if the format
   * contains them.
   */
  end(): number | undefined;
}

interface Inspector {
  push(bytes: Uint8Array): void;
  /** Undefined if the format does not contain them. */
  seconds(): number | undefined;
  torn(): boolean;
}

const INSPECTORS: Readonly<Record<SpeechFormat, () => Inspector>> = Object.freeze({
  mp3: () => inspectTaggedFrames('mp3', readMp3Frame),
  wav: inspectWav,
  opus: inspectOgg,
  pcm: inspectPcm,
  aac: () => inspectTaggedFrames('aac', readAdtsFrame),
  flac: inspectFlac,
});

export function createSoundCheck(format: SpeechFormat): SoundCheck {
  const inspector = INSPECTORS[format]();
  return {
    push: inspector.push,
    end() {
      const seconds = inspector.seconds();
      if (seconds === 0) throw brokenOff('The provider returned empty audio.');
      if (inspector.torn()) throw brokenOff('The audio was interrupted before its end.');
      return seconds;
    },
  };
}

function brokenOff(message: string): StreamFailure {
  return new StreamFailure({ class: 'upstream_error', message });
}

function notTheFormat(format: SpeechFormat): GatewayError {
  return new GatewayError(
    'provider_invalid_response',
    `The speech provider did not return ${format} audio. The request is valid; try again.`,
  );
}

function inspectPcm(): Inspector {
  let bytes = 0;
  return {
    push: (piece) => {
      bytes += piece.length;
    },
    seconds: () => bytes / 2 / PCM_RATE,
    torn: () => bytes % 2 !== 0,
  };
}

function inspectWav(): Inspector {
  let head: Buffer = Buffer.alloc(0);
  let facts: WavFacts | undefined;
  let sound = 0;
  return {
    push(piece) {
      if (facts) {
        sound += piece.length;
        return;
      }
      head = Buffer.concat([head, piece]);
      const read = readWavHeader(head);
      if (read === 'invalid') throw notTheFormat('wav');
      if (read === 'more') return;
      facts = read;
      sound = head.length - read.headerBytes;
      head = Buffer.alloc(0);
    },
    seconds: () =>
      facts
        ? Math.min(sound, facts.dataBytes ?? sound) / ((facts.sampleRate * facts.channels * facts.bitsPerSample) / 8)
        : 0,
    torn: () => facts?.dataBytes !== undefined && sound < facts.dataBytes,
  };
}

/** Inspector of a format with frames; `read` adds each frame's seconds with `add`. */
function inspectFrames(read: (add: (seconds: number) => void) => FrameReader): Inspector {
  let seconds = 0;
  const walker = createFrameWalker(read((more) => (seconds += more)));
  return { push: walker.push, seconds: () => seconds, torn: walker.torn };
}

/** Inspector of frames that may follow a tag and precede anything; `measure` returns one frame's length and seconds. */
function inspectTaggedFrames(
  format: 'mp3' | 'aac',
  measure: (bytes: Buffer) => { readonly bytes: number; readonly seconds: number } | undefined,
): Inspector {
  let frames = 0;
  return inspectFrames((add) => (bytes) => {
    if (bytes.length < (frames === 0 ? 10 : 7)) return 'more';
    const tag = frames === 0 ? id3Length(bytes) : 0;
    if (tag > 0) return tag;
    const frame = measure(bytes);
    if (!frame && frames === 0) throw notTheFormat(format);
    // A tag at the end, or a free bit rate: no further frame can be measured.
    if (!frame) return 'stop';
    frames += 1;
    add(frame.seconds);
    return frame.bytes;
  });
}

const ADTS_RATES = [96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8000, 7350];

/** Reads an ADTS frame of AAC (ISO 13818-7) whose seven header bytes are at the beginning. */
function readAdtsFrame(bytes: Buffer): { readonly bytes: number; readonly seconds: number } | undefined {
  const rate = ADTS_RATES[(bytes.readUInt8(2) >> 2) & 15];
  const length = (bytes.readUIntBE(3, 3) >> 5) & 0x1fff;
  if ((bytes.readUInt16BE(0) & 0xfff6) !== 0xfff0 || !rate || length < 7) return undefined;
  return { bytes: length, seconds: ((1 + (bytes.readUInt8(6) & 3)) * 1024) / rate };
}

const OPUS_RATE = 48_000;
const OGG_HEADER_BYTES = 27;

function inspectOgg(): Inspector {
  let last = 0;
  return inspectFrames((add) => (bytes) => {
    if (!'OggS'.startsWith(bytes.toString('latin1', 0, 4))) throw notTheFormat('opus');
    if (bytes.length < OGG_HEADER_BYTES) return 'more';
    const segments = bytes.readUInt8(26);
    if (bytes.length < OGG_HEADER_BYTES + segments) return 'more';
    const granule = bytes.readBigInt64LE(6);
    const now = granule > 0n ? Number(granule) / OPUS_RATE : last;
    add(Math.max(0, now - last));
    last = now;
    let length = OGG_HEADER_BYTES + segments;
    for (let index = 0; index < segments; index++) length += bytes.readUInt8(OGG_HEADER_BYTES + index);
    return length;
  });
}

/** FLAC frames have no length: only the signature is checked, and that sound follows the metadata. */
function inspectFlac(): Inspector {
  let head: Buffer = Buffer.alloc(0);
  let bytes = 0;
  return {
    push(piece) {
      bytes += piece.length;
      if (head.length >= 4) return;
      head = Buffer.concat([head, piece.subarray(0, 4)]);
      if (!'fLaC'.startsWith(head.toString('latin1', 0, 4))) throw notTheFormat('flac');
    },
    seconds: () => (bytes <= 42 ? 0 : undefined),
    torn: () => false,
  };
}

/** Walks over the frames of a sound as its bytes pass, without keeping them. */

/**
 * Returns the full length of the frame at the beginning of `bytes`; `more` if its header is incomplete. Returns `stop`
 * if nothing further can be read: a tag at the end, an encoding without lengths.
 */
type FrameReader = (bytes: Buffer) => number | 'more' | 'stop';

interface FrameWalker {
  push(bytes: Uint8Array): void;
  /** Returns true if the bytes ended within a frame. */
  torn(): boolean;
}

function createFrameWalker(read: FrameReader): FrameWalker {
  let pending: Buffer = Buffer.alloc(0);
  let skip = 0;
  let stopped = false;
  return {
    push(bytes) {
      if (stopped) return;
      let rest =
        pending.length > 0
          ? Buffer.concat([pending, bytes])
          : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
      while (rest.length > 0) {
        if (skip === 0) {
          const length = read(rest);
          if (length === 'more') break;
          if (length === 'stop') {
            stopped = true;
            break;
          }
          skip = length;
        }
        const step = Math.min(skip, rest.length);
        skip -= step;
        rest = rest.subarray(step);
      }
      pending = stopped ? Buffer.alloc(0) : Buffer.from(rest);
    },
    torn: () => !stopped && (skip > 0 || pending.length > 0),
  };
}
