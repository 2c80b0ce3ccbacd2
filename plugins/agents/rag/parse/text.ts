import type { Parsed } from '../section.ts';

/** Plain text: one section, which chunking cuts at paragraphs. */
export function parseText(source: string): Parsed {
  const text = source.trim();
  return { title: undefined, sections: text === '' ? [] : [{ text, location: { line: 1 } }] };
}
