/** What is kept of a request or a response. */
export interface KeptBody {
  /** The value, or the beginning of its JSON where it is longer than what is kept. */
  readonly value: unknown;
  readonly isCut: boolean;
}

/** More than the longest secret: what lies so near a cut is left out, so that no half of one is kept. */
const MARGIN = 4096;

/** A copy of a value for operators to read: every text without secrets, the whole no longer than `maxChars` as JSON. */
export function cleanBody(value: unknown, maxChars: number, redact: (text: string) => string): KeptBody {
  if (value === undefined) return { value: null, isCut: false };
  let isCut = false;
  const text = JSON.stringify(value, (_name, leaf: unknown) => {
    if (typeof leaf !== 'string') return leaf;
    if (leaf.length <= maxChars) return redact(leaf);
    isCut = true;
    return `${redact(leaf.slice(0, maxChars + MARGIN)).slice(0, -MARGIN)}…`;
  });
  if (text.length <= maxChars) return { value: JSON.parse(text) as unknown, isCut };
  return { value: text.slice(0, maxChars), isCut: true };
}
