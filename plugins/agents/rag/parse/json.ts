import { BadFile, type Parsed, type Section } from '../section.ts';

/** Deeper values are not walked. */
const MAX_DEPTH = 20;

/**
 * JSON: a list is one section an item, an object one section. An item's `text` (or `content`) is its text when it has one,
 * its `title` its title; else its fields become `name: value` lines.
 */
export function parseJsonFile(source: string): Parsed {
  const value = parse(source, 'the file');
  const items = Array.isArray(value) ? value : [value];
  return { title: undefined, sections: items.flatMap((item, at) => toSection(item, at + 1)) };
}

/** JSON Lines: one item a line; a broken line makes the file a bad one, with its number. */
export function parseJsonLines(source: string): Parsed {
  const lines = source.split(/\r?\n/);
  return {
    title: undefined,
    sections: lines.flatMap((line, at) => (line.trim() === '' ? [] : toSection(parse(line, `line ${at + 1}`), at + 1))),
  };
}

function parse(source: string, where: string): unknown {
  try {
    return JSON.parse(source);
  } catch {
    throw new BadFile(`${where} is not JSON`);
  }
}

function toSection(item: unknown, row: number): readonly Section[] {
  const record =
    typeof item === 'object' && item !== null && !Array.isArray(item) ? (item as Record<string, unknown>) : {};
  const own = record['text'] ?? record['content'];
  const text = (typeof own === 'string' ? own : flatten(item, '', 0).join('\n')).trim();
  const title = record['title'] ?? record['name'];
  return text === '' ? [] : [{ text, location: { row }, ...(typeof title === 'string' && { title }) }];
}

function flatten(value: unknown, name: string, depth: number): readonly string[] {
  if (depth > MAX_DEPTH || value === null || value === undefined) return [];
  if (typeof value !== 'object') return [name === '' ? String(value) : `${name}: ${String(value)}`];
  return Object.entries(value).flatMap(([key, child]) =>
    flatten(child, Array.isArray(value) ? name : name === '' ? key : `${name}.${key}`, depth + 1),
  );
}
