/** Converts 16-bit mono samples between rates, piece by piece. */

export interface Resampler {
  /** Whole or torn samples in, whole samples out. */
  push(bytes: Uint8Array): Buffer;
}

const SAMPLE_BYTES = 2;

/** Linear interpolation: good enough for speech, exact in length, and it needs no library. */
export function createResampler(fromRate: number, toRate: number): Resampler {
  const step = fromRate / toRate;
  let rest: Buffer = Buffer.alloc(0);
  /** Where the next output sample lies, counted in input samples from the start of `rest`. */
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
