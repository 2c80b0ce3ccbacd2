import type { Location, Parsed } from './section.ts';

/** A passage as it is indexed, found and cited. */
export interface Chunk {
  readonly text: string;
  readonly title: string;
  readonly location: Location;
}

/** Words of the passage before that a passage begins with, so that no sentence is cut off from its context. */
const OVERLAP_WORDS = 40;

/** Cuts a parsed file into passages of about `words` words: at its own sections first, then at paragraphs, then at words. */
export function chunkFile(parsed: Parsed, name: string, words: number): readonly Chunk[] {
  const fileTitle = parsed.title ?? name;
  return parsed.sections.flatMap(({ text, location, title }) =>
    packParagraphs(text, words).map((piece) => ({ text: piece, title: title ?? fileTitle, location })),
  );
}

function packParagraphs(text: string, words: number): readonly string[] {
  const pieces = text.split(/\n\s*\n/).flatMap((paragraph) => splitWords(paragraph.trim(), words));
  const packed: string[] = [];
  let current: string[] = [];
  let count = 0;
  for (const piece of pieces) {
    const size = countWords(piece);
    if (size === 0) continue;
    if (count > 0 && count + size > words) {
      packed.push(current.join('\n\n'));
      const overlap = lastWords(current.join(' '), OVERLAP_WORDS);
      current = [overlap];
      count = countWords(overlap);
    }
    current.push(piece);
    count += size;
  }
  if (count > 0) packed.push(current.join('\n\n'));
  return packed;
}

/** A paragraph longer than a passage, in parts of at most that many words. */
function splitWords(paragraph: string, words: number): readonly string[] {
  if (countWords(paragraph) <= words) return [paragraph];
  const all = paragraph.split(/\s+/);
  return Array.from({ length: Math.ceil(all.length / words) }, (_, at) =>
    all.slice(at * words, (at + 1) * words).join(' '),
  );
}

function countWords(text: string): number {
  return text.match(/\S+/g)?.length ?? 0;
}

function lastWords(text: string, words: number): string {
  return (text.match(/\S+/g) ?? []).slice(-words).join(' ');
}
