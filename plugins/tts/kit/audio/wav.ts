/** RIFF/WAVE headers. The sizes of a stream are unknown when its header is written, which 0xFFFFFFFF indicates. */

export const UNKNOWN_SIZE = 0xffff_ffff;

/** Streaming writers put 0 or a huge number in place of the size; espeak-ng writes 0x7ffff000. */
const PLACEHOLDER_FROM = 0x7fff_0000;
const LONGEST_HEADER = 65_536;

export interface WavFacts {
  /** Start of the sound. */
  readonly headerBytes: number;
  /** 1 means integer samples, 3 floating point. */
  readonly encoding: number;
  readonly channels: number;
  readonly sampleRate: number;
  readonly bitsPerSample: number;
  /** Undefined if the header has a placeholder. */
  readonly dataBytes: number | undefined;
}

/** Reads the header at the beginning of `bytes`; `more` if it is incomplete, `invalid` if it is not a WAV. */
export function readWavHeader(bytes: Uint8Array): WavFacts | 'more' | 'invalid' {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (!'RIFF'.startsWith(view.toString('latin1', 0, 4))) return 'invalid';
  if (view.length < 12) return 'more';
  if (view.toString('latin1', 8, 12) !== 'WAVE') return 'invalid';
  let format: Omit<WavFacts, 'headerBytes' | 'dataBytes'> | undefined;
  for (let at = 12; at < LONGEST_HEADER; ) {
    if (view.length < at + 8) return 'more';
    const id = view.toString('latin1', at, at + 4);
    const size = view.readUInt32LE(at + 4);
    if (id === 'data') {
      if (!format) return 'invalid';
      const known = size > 0 && size < PLACEHOLDER_FROM;
      return { ...format, headerBytes: at + 8, dataBytes: known ? size : undefined };
    }
    if (id === 'fmt ') {
      if (size < 16) return 'invalid';
      if (view.length < at + 24) return 'more';
      format = readFormat(view, at + 8);
      if (format.channels === 0 || format.sampleRate === 0 || format.bitsPerSample === 0) return 'invalid';
    }
    at += 8 + size + (size % 2);
  }
  return 'invalid';
}

function readFormat(view: Buffer, at: number): Omit<WavFacts, 'headerBytes' | 'dataBytes'> {
  return {
    encoding: view.readUInt16LE(at),
    channels: view.readUInt16LE(at + 2),
    sampleRate: view.readUInt32LE(at + 4),
    bitsPerSample: view.readUInt16LE(at + 14),
  };
}

/** Creates a 44-byte header for 16-bit mono sound; with `dataBytes` undefined, the header of a stream. */
export function wavHeader(sampleRate: number, dataBytes?: number): Buffer {
  const header = Buffer.alloc(44);
  header.write('RIFF', 0, 'latin1');
  header.writeUInt32LE(dataBytes === undefined ? UNKNOWN_SIZE : dataBytes + 36, 4);
  header.write('WAVEfmt ', 8, 'latin1');
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(sampleRate, 24);
  header.writeUInt32LE(sampleRate * 2, 28);
  header.writeUInt16LE(2, 32);
  header.writeUInt16LE(16, 34);
  header.write('data', 36, 'latin1');
  header.writeUInt32LE(dataBytes ?? UNKNOWN_SIZE, 40);
  return header;
}

/** Copies a header with both sizes set; `dataBytes` undefined marks them as unknown. */
export function withWavSizes(header: Uint8Array, dataBytes: number | undefined): Buffer {
  const copy = Buffer.from(header);
  copy.writeUInt32LE(dataBytes === undefined ? UNKNOWN_SIZE : copy.length - 8 + dataBytes, 4);
  copy.writeUInt32LE(dataBytes ?? UNKNOWN_SIZE, copy.length - 4);
  return copy;
}

/** Returns a complete WAV with its true size in the header; unchanged if it already has it. */
export function mendWav(wav: Buffer): Buffer {
  const facts = readWavHeader(wav);
  if (typeof facts === 'string' || facts.dataBytes !== undefined) return wav;
  const { headerBytes } = facts;
  return Buffer.concat([
    withWavSizes(wav.subarray(0, headerBytes), wav.length - headerBytes),
    wav.subarray(headerBytes),
  ]);
}
