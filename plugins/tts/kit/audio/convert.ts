import { StreamFailure } from '../../../../contract/index.ts';
import type { AudioDecoder } from '../types.ts';
import { PCM_RATE } from './formats.ts';
import { readWavHeader, wavHeader, withWavSizes } from './wav.ts';

/** Converts the headerless 16-bit mono samples of a decoder to `wav` or the gateway's own `pcm`. */
export function convertPcm(decoder: AudioDecoder, sampleRate: number, format: 'wav' | 'pcm'): AudioDecoder {
  return format === 'wav' ? withHeader(decoder, sampleRate) : resampled(decoder, sampleRate);
}

function withHeader(decoder: AudioDecoder, sampleRate: number): AudioDecoder {
  let started = false;
  return {
    push(bytes) {
      const pieces = decoder.push(bytes);
      if (started || pieces.length === 0) return pieces;
      started = true;
      return [wavHeader(sampleRate), ...pieces];
    },
    end() {
      const pieces = decoder.end();
      if (started || pieces.length === 0) return pieces;
      // All pieces arrived at once, so the header can have their length.
      const length = pieces.reduce((sum, piece) => sum + piece.length, 0);
      return [wavHeader(sampleRate, length), ...pieces];
    },
    usage: () => decoder.usage?.(),
    progress: () => decoder.progress?.(),
  };
}

function resampled(decoder: AudioDecoder, sampleRate: number): AudioDecoder {
  if (sampleRate === PCM_RATE) return decoder;
  return mapPieces(decoder, createResampler(sampleRate, PCM_RATE).push);
}

function mapPieces(decoder: AudioDecoder, convert: (piece: Uint8Array) => Uint8Array): AudioDecoder {
  const convertAll = (pieces: readonly Uint8Array[]) => pieces.map(convert).filter((piece) => piece.length > 0);
  return {
    push: (bytes) => convertAll(decoder.push(bytes)),
    end: () => convertAll(decoder.end()),
    usage: () => decoder.usage?.(),
    progress: () => decoder.progress?.(),
  };
}

/** Converts the 16-bit mono WAV of a decoder, of any rate, to the gateway's own `pcm`. */
export function unwrapWav(decoder: AudioDecoder): AudioDecoder {
  let head: Buffer = Buffer.alloc(0);
  let resampler: Resampler | undefined;
  const convert = (piece: Uint8Array): Uint8Array => {
    if (resampler) return resampler.push(piece);
    head = Buffer.concat([head, piece]);
    const facts = readWavHeader(head);
    if (facts === 'more') return Buffer.alloc(0);
    if (facts === 'invalid' || facts.encoding !== 1 || facts.channels !== 1 || facts.bitsPerSample !== 16) {
      throw new StreamFailure({ class: 'upstream_error', message: 'The audio is not 16-bit mono WAV.' });
    }
    resampler = createResampler(facts.sampleRate, PCM_RATE);
    return resampler.push(head.subarray(facts.headerBytes));
  };
  return mapPieces(decoder, convert);
}

/**
 * Buffers up to `maxBytes` of a WAV of unknown size. A sound that ends within them gets a header with its true size,
 * which strict players require. A longer one is streamed with an unknown size in its header.
 */
export function mendWavHeader(decoder: AudioDecoder, maxBytes: number): AudioDecoder {
  let held: Buffer | undefined = Buffer.alloc(0);
  const release = (whole: boolean): readonly Uint8Array[] => {
    const wav = held ?? Buffer.alloc(0);
    held = undefined;
    const facts = readWavHeader(wav);
    if (typeof facts === 'string' || facts.dataBytes !== undefined) return [wav];
    const sound = wav.subarray(facts.headerBytes);
    return [withWavSizes(wav.subarray(0, facts.headerBytes), whole ? sound.length : undefined), sound];
  };
  const some = (pieces: readonly Uint8Array[]) => pieces.filter((piece) => piece.length > 0);
  return {
    push(bytes) {
      const pieces = decoder.push(bytes);
      if (!held) return pieces;
      held = Buffer.concat([held, ...pieces]);
      return held.length > maxBytes ? some(release(false)) : [];
    },
    end() {
      const pieces = decoder.end();
      if (!held) return pieces;
      held = Buffer.concat([held, ...pieces]);
      return some(release(true));
    },
    usage: () => decoder.usage?.(),
    progress: () => decoder.progress?.(),
  };
}

/** Converts 16-bit mono samples between rates, piece by piece. */

export interface Resampler {
  /** Converts samples, possibly cut between chunks; returns complete samples. */
  push(bytes: Uint8Array): Buffer;
}

const SAMPLE_BYTES = 2;

/** Linear interpolation: good enough for speech, exact in length, and without a library. */
export function createResampler(fromRate: number, toRate: number): Resampler {
  const step = fromRate / toRate;
  let rest: Buffer = Buffer.alloc(0);
  /** Position of the next output sample, in input samples from the start of `rest`. */
  let position = 0;
  return {
    push(bytes) {
      const input = Buffer.concat([rest, bytes]);
      const samples = Math.floor(input.length / SAMPLE_BYTES);
      const count = Math.max(0, Math.ceil((samples - 1 - position) / step));
      const output = Buffer.allocUnsafe(count * SAMPLE_BYTES);
      for (let index = 0; index < count; index++) {
        const at = position + index * step;
        const left = Math.floor(at);
        const from = input.readInt16LE(left * SAMPLE_BYTES);
        const to = input.readInt16LE((left + 1) * SAMPLE_BYTES);
        output.writeInt16LE(Math.round(from + (to - from) * (at - left)), index * SAMPLE_BYTES);
      }
      const next = position + count * step;
      const used = Math.min(Math.floor(next), Math.max(0, samples - 1));
      position = next - used;
      rest = input.subarray(used * SAMPLE_BYTES);
      return output;
    },
  };
}
