import type { ChatMessage, ContentPart } from '../../../contract/index.ts';
import { GatewayError, isObject, readObject, readString } from '../../../contract/index.ts';

/** Value of a request with its path for an error's `param`. */
export interface Located<T> {
  readonly value: T;
  /** Such as `messages[2].content[0]`. */
  readonly at: string;
}

/** Content of a message as parts, from any of its three forms; empty text is omitted. */
export function readParts(content: ChatMessage['content'], at: string): readonly Located<ContentPart>[] {
  if (content === null || content === undefined || content === '') return [];
  if (typeof content === 'string') return [{ value: { type: 'text', text: content }, at }];
  if (!Array.isArray(content)) throw invalid(at, 'must be a string, an array of parts or null');
  return content.flatMap((part: unknown, index) => {
    const path = `${at}[${index}]`;
    if (!isObject(part) || typeof part['type'] !== 'string') throw invalid(path, 'must be an object with a `type`');
    if (part['type'] === 'text') {
      if (typeof part['text'] !== 'string') throw invalid(`${path}.text`, 'must be a string');
      if (part['text'] === '') return [];
    }
    return [{ value: part as ContentPart, at: path }];
  });
}

/** The text of a part that is text or a refusal; undefined for any other part. */
export function textOf(part: ContentPart): string | undefined {
  if (part.type === 'text' && typeof part['text'] === 'string') return part['text'];
  if (part.type === 'refusal' && typeof part['refusal'] === 'string') return part['refusal'];
  return undefined;
}

/** Transcript of a model's audio output, for formats without audio; undefined without one. */
export function transcriptOf(spoken: object): string | undefined {
  return readString(readObject(readObject(spoken)['audio'])['transcript']);
}

/** URL of an `image_url`, `video_url` or `file_url` part; throws if it is missing. */
export function urlOf(part: Located<ContentPart>): string {
  const holder = part.value[part.value.type];
  const url = isObject(holder) ? holder['url'] : holder;
  if (typeof url !== 'string' || url === '') throw invalid(`${part.at}.${part.value.type}.url`, 'must be a URL');
  return url;
}

/** Media type (lower case, without parameters) and base64 of a `data:` URL; undefined for anything else. */
export function readDataUrl(url: string): { readonly mediaType: string; readonly data: string } | undefined {
  const comma = url.indexOf(',');
  if (comma < 0 || comma > 200 || !/^data:/i.test(url)) return undefined;
  const [mediaType = '', ...parameters] = url.slice(5, comma).split(';');
  const data = url.slice(comma + 1).replace(/\s+/g, '');
  if (parameters.at(-1)?.trim().toLowerCase() !== 'base64' || !/^[A-Za-z0-9+/_-]+=*$/.test(data)) return undefined;
  return { mediaType: mediaType.trim().toLowerCase(), data };
}

/** Creates an `invalid_request` error about the field at a path. */
export function invalid(param: string, problem: string): GatewayError {
  return new GatewayError('invalid_request', `\`${param}\` ${problem}.`, { param });
}
