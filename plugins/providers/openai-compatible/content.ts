import { isObject, readString } from '../../../core/index.ts';

/** Names under which vendors send the model's thinking; the first that is not empty is taken, some send it twice. */
const REASONING = ['reasoning_content', 'reasoning', 'reasoning_text'] as const;

export interface Content {
  /** Undefined when the vendor sent none; null where it said so. */
  readonly content: string | null | undefined;
  readonly reasoning: string | undefined;
}

/** Text and thinking of a message or delta; content that comes as a list of parts (Mistral) is flattened. */
export function readContent(message: Readonly<Record<string, unknown>>): Content {
  const { content } = message;
  const named = REASONING.map((name) => readString(message[name])).find((value) => value !== undefined);
  if (typeof content === 'string' || content === null || content === undefined) {
    return { content, reasoning: named ?? detailsText(message['reasoning_details']) };
  }
  const parts = Array.isArray(content) ? content : [content];
  const reasoning = parts.map(thinkingText).join('');
  return { content: parts.map(plainText).join(''), reasoning: named ?? readString(reasoning) };
}

function plainText(part: unknown): string {
  if (typeof part === 'string') return part;
  return isObject(part) && (part['type'] === 'text' || part['type'] === 'output_text')
    ? (readString(part['text']) ?? '')
    : '';
}

/** Mistral: `{ type: "thinking", thinking: [{ type: "text", text }] }`, or thinking as a plain string. */
function thinkingText(part: unknown): string {
  if (!isObject(part) || part['type'] !== 'thinking') return '';
  const { thinking } = part;
  return Array.isArray(thinking) ? thinking.map(plainText).join('') : (readString(thinking) ?? '');
}

/** OpenRouter: the readable ones of `reasoning_details`. */
function detailsText(details: unknown): string | undefined {
  if (!Array.isArray(details)) return undefined;
  return readString(
    details
      .map((part) => (isObject(part) ? (readString(part['text']) ?? readString(part['summary']) ?? '') : ''))
      .join(''),
  );
}
