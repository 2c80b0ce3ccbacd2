import { type ChatMessage, type ContentPart, isObject, readObject, readString } from '../../../core/index.ts';
import { type FileRules, isFile, mapFile } from './files.ts';

/** Fields of a part that no vendor of this wire gets: they are for other formats. */
const FOREIGN: readonly string[] = Object.freeze(['annotations', 'citations', 'context', 'dialect_fields']);

export interface PartRules {
  readonly files: FileRules;
  /** Whether `cache_control` stays. */
  readonly cacheMarks: boolean;
  /** Gets what is left out. */
  readonly told: Set<string>;
}

/** The content of the message with this index as the vendor takes it; the same value where nothing has to change. */
export function mapContent(content: ChatMessage['content'], at: number, rules: PartRules): ChatMessage['content'] {
  if (!Array.isArray(content) || content.every((part) => isPlain(part, rules))) return content;
  const parts = content.flatMap((part: ContentPart, index) =>
    mapPart(part, `messages[${at}].content[${index}]`, rules),
  );
  return parts.length > 0 ? parts : '';
}

function isPlain(part: unknown, { cacheMarks }: PartRules): boolean {
  if (!isObject(part)) return true;
  const { type } = part;
  if (type === 'file' || type === 'opaque' || (!cacheMarks && 'cache_control' in part)) return false;
  return !FOREIGN.some((field) => field in part);
}

function mapPart(part: ContentPart, at: string, rules: PartRules): readonly ContentPart[] {
  const { told } = rules;
  if (isPlain(part, rules)) return [part];
  if (part.type === 'opaque') return mapOpaque(part, told);
  const { cache_control: mark, ...rest } = part;
  const marked = rules.cacheMarks && isObject(mark) ? { cache_control: mark } : {};
  if (isFile(part)) {
    if (readObject(part['citations'])['enabled'] === true) told.add('citations');
    const parts = mapFile(part, at, rules.files);
    return parts.map((item, index) => (index === parts.length - 1 ? { ...item, ...marked } : item));
  }
  const kept = Object.entries(rest).filter(([field]) => !FOREIGN.includes(field));
  return [{ ...(Object.fromEntries(kept) as ContentPart), ...marked }];
}

/** A block of another format: what can be told of it in words, or nothing. */
function mapOpaque(part: ContentPart, told: Set<string>): readonly ContentPart[] {
  const text = readString(part['text']);
  if (text !== undefined) return [{ type: 'text', text }];
  const type = readString(readObject(part['value'])['type']);
  told.add(type ?? 'opaque');
  return [];
}
