import { isObject, type JsonObject, readString } from '../../../core/index.ts';
import { toolCallId } from '../../providers/kit/index.ts';
import { isPacked } from './signatures.ts';
import { fieldOf, nameIn } from './spelling.ts';

/** The longest id of a call that Google takes. */
const MAX_ID = 64;

/**
 * Contents as Google takes them: thinking of other formats is left out, ids of calls are made valid. What needs no change stays the
 * very object that it was.
 */
export function cleanContents(contents: unknown, dropped: string[]): unknown {
  return mapList(contents, (content) => {
    if (!isObject(content)) return content;
    const parts = mapList(content['parts'], (part) => (isObject(part) ? cleanPart(part, dropped) : part));
    return parts === content['parts'] ? content : { ...content, parts };
  });
}

function cleanPart(part: JsonObject, dropped: string[]): JsonObject | undefined {
  const signature = readString(fieldOf(part, 'thoughtSignature'));
  if (signature !== undefined && isPacked(signature)) {
    if (!dropped.includes('reasoning')) dropped.push('reasoning');
    if (part['thought'] === true) return undefined;
    const { thoughtSignature: _, thought_signature: __, ...rest } = part;
    return cleanPart(rest, dropped);
  }
  for (const kind of ['functionCall', 'functionResponse']) {
    const called = fieldOf(part, kind);
    const id = isObject(called) ? readString(called['id']) : undefined;
    const valid = id === undefined ? undefined : toolCallId(id, MAX_ID);
    if (valid !== id && isObject(called)) return { ...part, [nameIn(part, kind)]: { ...called, id: valid } };
  }
  return part;
}

/** A list, or its only member, with each member changed or left out; the very same where no member changed. */
function mapList(value: unknown, change: (item: unknown) => unknown): unknown {
  if (!Array.isArray(value)) return isObject(value) ? change(value) : value;
  const changed = value.map(change);
  return changed.some((item, at) => item !== value[at]) ? changed.filter((item) => item !== undefined) : value;
}
