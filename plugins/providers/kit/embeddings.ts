/** Base64 of the numbers as little-endian 32-bit floats: what OpenAI's `encoding_format: "base64"` means. */
export function floatsToBase64(values: readonly number[]): string {
  const bytes = Buffer.alloc(values.length * 4);
  values.forEach((value, index) => {
    bytes.writeFloatLE(value, index * 4);
  });
  return bytes.toString('base64');
}

/** The numbers of a base64 text of little-endian 32-bit floats; bytes beyond a multiple of four are ignored. */
export function base64ToFloats(text: string): readonly number[] {
  const bytes = Buffer.from(text, 'base64');
  return Array.from({ length: Math.floor(bytes.length / 4) }, (_, index) => bytes.readFloatLE(index * 4));
}

/** The vector scaled to length 1, as OpenAI's embeddings are; a zero vector stays as it is. */
export function toUnitLength(values: readonly number[]): readonly number[] {
  const length = Math.sqrt(values.reduce((sum, value) => sum + value * value, 0));
  return length > 0 && Number.isFinite(length) ? values.map((value) => value / length) : values;
}
