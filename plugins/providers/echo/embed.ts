import { createHash } from 'node:crypto';
import { toUnitLength } from '../kit/index.ts';

/**
 * A vector made of the text's words by hashing: the same for the same text, nearer for texts that share words. No
 * model is behind it.
 */
export function embedWords(text: string, dimensions: number): readonly number[] {
  const vector = new Array<number>(dimensions).fill(0);
  for (const word of text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [text]) {
    const hash = createHash('sha256').update(word).digest();
    for (let at = 0; at < 4; at++) {
      const bits = hash.readUInt32LE(at * 4);
      const slot = bits % dimensions;
      vector[slot] = (vector[slot] ?? 0) + (bits >>> 31 === 0 ? 1 : -1);
    }
  }
  return toUnitLength(vector);
}
