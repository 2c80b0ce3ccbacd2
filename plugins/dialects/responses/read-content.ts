import {
  type ContentPart,
  type DialectNeed,
  isObject,
  type JsonObject,
  readArray,
  readObject,
  readString,
} from '../../../core/index.ts';
import type { Item } from './types.ts';

/** What reading a body finds beside messages. */
export interface Findings {
  readonly needs: DialectNeed[];
  readonly dropped: Set<string>;
}

export interface ReadParts {
  readonly parts: readonly ContentPart[];
  /** Where each of the parts stands. */
  readonly places: readonly string[];
  readonly refusal?: string;
}

const DETAILS: ReadonlySet<unknown> = new Set(['auto', 'low', 'high']);

/** The content of a message or of a tool's output: a text, or parts. */
export function readContent(content: unknown, at: string): ReadParts {
  if (typeof content === 'string') return { parts: [{ type: 'text', text: content }], places: [at] };
  const parts: ContentPart[] = [];
  const places: string[] = [];
  const refusals: string[] = [];
  for (const [index, part] of readArray(content).entries()) {
    if (!isObject(part)) continue;
    const place = `${at}[${index}]`;
    if (part['type'] === 'refusal') refusals.push(readString(part['refusal']) ?? '');
    else {
      parts.push(readPart(part));
      places.push(place);
    }
  }
  return { parts, places, ...(refusals.length > 0 && { refusal: refusals.join('') }) };
}

function readPart(part: JsonObject): ContentPart {
  const { type, text, detail } = part;
  if (type === 'input_text' || type === 'output_text' || type === 'text')
    return { type: 'text', text: readString(text) ?? '' };
  if (type === 'input_image' && typeof part['image_url'] === 'string') {
    const wanted = detail === 'original' ? 'high' : detail;
    return {
      type: 'image_url',
      image_url: { url: part['image_url'], ...(DETAILS.has(wanted) && { detail: String(wanted) }) },
    };
  }
  // LangChain writes images of its older form as chat does.
  if (type === 'image_url' && typeof readObject(part['image_url'])['url'] === 'string')
    return { type: 'image_url', image_url: readObject(part['image_url']) };
  if (type === 'input_file' && (typeof part['file_data'] === 'string' || typeof part['file_url'] === 'string'))
    return { type: 'file', file: pickStrings(part, ['filename', 'file_data', 'file_url']) };
  if (type === 'input_audio') return { type: 'input_audio', input_audio: readObject(part['input_audio']) };
  return { type: 'opaque', dialect: 'responses', value: part };
}

function pickStrings(part: JsonObject, names: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(
    names.flatMap((name) => {
      const value = readString(part[name]);
      return value === undefined ? [] : [[name, value] as const];
    }),
  );
}

/** Parts as the canonical shape has them: a single plain text is a string. */
export function contentOf(parts: readonly ContentPart[]): string | readonly ContentPart[] {
  const [first] = parts;
  if (first === undefined) return '';
  const isText = parts.length === 1 && first.type === 'text' && Object.keys(first).length === 2;
  return isText ? String(first['text']) : parts;
}

/** The longest text that an item of another kind may become. */
const MAX_TEXT = 4096;

/** What a tool of the vendor did, as text for models that have no such tool; undefined where it is too long. */
export function historyText(item: Item): string | undefined {
  const { id: _id, encrypted_content: _secret, ...rest } = item;
  const text = JSON.stringify(rest);
  return Buffer.byteLength(text) <= MAX_TEXT ? text : undefined;
}
