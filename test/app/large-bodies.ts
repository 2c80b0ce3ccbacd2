/** Large chat requests of several shapes. The large value is in an unknown field or in a text. */

const filler = {
  /** Millions of small objects. */
  objects: (bytes: number) => `[${'{},'.repeat(bytes / 3)}{}]`,
  /** Maximum number of objects in one body. */
  'most objects': () => `[${'{},'.repeat(399_980)}{}]`,
  numbers: () => `[${'1,'.repeat(399_980)}1]`,
  fields: () => `{${Array.from({ length: 199_980 }, (_, at) => `"k${at}":1`).join(',')}}`,
  text: (bytes: number) => `"${'x'.repeat(bytes)}"`,
  /** Two bytes per character in memory. */
  'wide text': (bytes: number) => `"€${'x'.repeat(bytes)}"`,
  escapes: (bytes: number) => `"${'\\n'.repeat(bytes / 2)}"`,
} as const;

export type BodyShape = keyof typeof filler;

export function chatBody(shape: BodyShape, bytes: number): Buffer {
  return Buffer.from(
    `{"model":"echo/echo","messages":[{"role":"user","content":"hi"}],"extra":${filler[shape](bytes)}}`,
  );
}
