/** Lengths are counted in characters as people and vendors do: code points, not UTF-16 units. */
export function countCharacters(text: string): number {
  let count = 0;
  for (const _ of text) count += 1;
  return count;
}

/**
 * Cuts a text into pieces of at most `max` characters, at the last border that fits: of a sentence, else of a word,
 * else between two characters. The pieces together are the text; pieces of nothing but space are left out.
 */
export function splitText(text: string, max: number): readonly string[] {
  if (countCharacters(text) <= max) return [text];
  const pieces: string[] = [];
  let piece = '';
  let length = 0;
  for (const part of cut(text, max, ['sentence', 'word', 'grapheme'])) {
    const partLength = countCharacters(part);
    if (length + partLength > max) {
      pieces.push(piece);
      piece = '';
      length = 0;
    }
    piece += part;
    length += partLength;
  }
  pieces.push(piece);
  return pieces.filter((each) => each.trim() !== '');
}

type Granularity = 'sentence' | 'word' | 'grapheme';

/** Segments of a text; one that is too long is cut finer, in the end between code points. */
function* cut(text: string, max: number, granularities: readonly Granularity[]): Generator<string> {
  const [granularity, ...finer] = granularities;
  if (granularity === undefined) {
    yield* text;
    return;
  }
  for (const { segment } of new Intl.Segmenter('und', { granularity }).segment(text)) {
    if (countCharacters(segment) <= max) yield segment;
    else yield* cut(segment, max, finer);
  }
}
