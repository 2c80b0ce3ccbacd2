import type { Parsed } from '../section.ts';

/** Plain text: one section, which chunking cuts at paragraphs. */
export function parseText(source: string): Parsed {
  return { title: undefined, sections: source.trim() === '' ? [] : [{ text: source, location: { line: 1 } }] };
}
