import { isObject, type JsonObject, parseJson, readArray, readObject, readString } from '../../../contract/index.ts';
import { readDataUrl } from '../kit/index.ts';
import { openMarks } from './marks.ts';
import type { SpecVersion } from './package.ts';

/** Options of `doGenerate` and `doStream`, and the fields of the request that they do not have. */
export interface WrittenOptions {
  readonly options: JsonObject;
  readonly dropped: readonly string[];
}

/** Part of a request that the package does not take; another target may. */
export class NotTaken extends Error {
  override readonly name = 'NotTaken';
}

/**
 * Writes a request in OpenAI's form as options of a language model. Source:
 * https://github.com/vercel/ai/tree/main/packages/provider/src/language-model
 */
export function writeOptions(body: JsonObject, version: SpecVersion, urls: SupportedUrls): WrittenOptions {
  const dropped: string[] = [];
  const effort = readString(body['reasoning_effort']);
  const reasoning = effort !== undefined && version === 'v4' ? (EFFORTS[effort] ?? undefined) : undefined;
  if (effort !== undefined && reasoning === undefined) dropped.push('reasoning_effort');
  const stop = body['stop'];
  const { tools, toolChoice } = writeTools(body, version, dropped);
  const given = {
    prompt: writePrompt(readArray(body['messages']).map(readObject), version, urls),
    maxOutputTokens: body['max_tokens'],
    temperature: body['temperature'],
    topP: body['top_p'],
    topK: body['top_k'],
    presencePenalty: body['presence_penalty'],
    frequencyPenalty: body['frequency_penalty'],
    seed: body['seed'],
    stopSequences: typeof stop === 'string' ? [stop] : (stop ?? undefined),
    responseFormat: writeFormat(readObject(body['response_format'])),
    tools,
    toolChoice,
    reasoning,
  };
  const set = Object.entries(given).filter(([, value]) => value !== undefined && value !== null);
  return { options: Object.fromEntries(set), dropped };
}

/** URLs that a model fetches itself, by media type. */
export type SupportedUrls = Readonly<Record<string, readonly RegExp[]>>;

/** Efforts of specification v4. */
const EFFORTS: Readonly<Record<string, string>> = Object.freeze({
  none: 'none',
  minimal: 'minimal',
  low: 'low',
  medium: 'medium',
  high: 'high',
  xhigh: 'xhigh',
  max: 'xhigh',
});

function writeFormat({ type, json_schema: given }: JsonObject): JsonObject | undefined {
  if (type !== 'json_object' && type !== 'json_schema') return undefined;
  const { schema, name, description } = readObject(given);
  return {
    type: 'json',
    ...(isObject(schema) && { schema }),
    ...(typeof name === 'string' && { name }),
    ...(typeof description === 'string' && { description }),
  };
}

function writeTools(
  body: JsonObject,
  version: SpecVersion,
  dropped: string[],
): { readonly tools?: readonly JsonObject[]; readonly toolChoice?: JsonObject } {
  const own = readArray(body['tools'])
    .map(readObject)
    .find(({ type }) => type !== 'function');
  if (own) throw new NotTaken(`The AI SDK has no tools of type ${String(own['type']).slice(0, 40)}. Use functions.`);
  const given = readArray(body['tools']).map((tool) => readObject(readObject(tool)['function']));
  if (given.length === 0) return {};
  if (version === 'v2' && given.some(({ strict }) => strict === true)) dropped.push('tools.strict');
  const tools = given.map(({ name, description, parameters, strict }) => ({
    type: 'function',
    name,
    ...(typeof description === 'string' && { description }),
    inputSchema: isObject(parameters) ? parameters : { type: 'object', properties: {} },
    ...(strict === true && version !== 'v2' && { strict: true }),
  }));
  const choice = body['tool_choice'];
  if (choice === 'none' || choice === 'required' || choice === 'auto') return { tools, toolChoice: { type: choice } };
  const toolName = readString(readObject(readObject(choice)['function'])['name']);
  return { tools, ...(toolName !== undefined && { toolChoice: { type: 'tool', toolName } }) };
}

function writePrompt(
  messages: readonly JsonObject[],
  version: SpecVersion,
  urls: SupportedUrls,
): readonly JsonObject[] {
  const prompt: { readonly role: string; readonly content: unknown }[] = [];
  const names = new Map<unknown, unknown>();
  let results: JsonObject[] | undefined;
  for (const message of messages) {
    const { role, content } = message;
    if (role === 'tool') {
      if (!results) {
        results = [];
        prompt.push({ role: 'tool', content: results });
      }
      results.push({
        type: 'tool-result',
        toolCallId: message['tool_call_id'],
        toolName: names.get(message['tool_call_id']) ?? 'unknown',
        output: { type: 'text', value: textOf(content) },
      });
      continue;
    }
    results = undefined;
    if (role === 'system') prompt.push({ role, content: textOf(content) });
    else if (role === 'assistant') prompt.push({ role, content: assistantParts(message, names) });
    else prompt.push({ role: 'user', content: partsOf(content).map((part) => userPart(part, version, urls)) });
  }
  return prompt;
}

function partsOf(content: unknown): readonly JsonObject[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }];
  return readArray(content).map(readObject);
}

function textOf(content: unknown): string {
  return partsOf(content)
    .map(({ text, refusal }) => readString(text) ?? readString(refusal) ?? '')
    .join('');
}

function assistantParts(message: JsonObject, names: Map<unknown, unknown>): readonly JsonObject[] {
  const details = readArray(message['reasoning_details']).map(readObject);
  const opened = details.map((detail) => ({ detail, marks: openMarks(detail) }));
  const parts: JsonObject[] = [];
  // A detail with all marks makes the others superfluous.
  const all = opened.find(({ marks }) => marks !== undefined && marks.length > 1)?.marks;
  const marks = all ?? opened.flatMap(({ marks: own }) => own ?? []);
  for (const { of, metadata, text = '' } of all ?? [])
    if (of === 'reasoning') parts.push({ type: 'reasoning', text, providerOptions: metadata });
  // Clients of streams keep a thought in pieces, the last one with the metadata.
  let pieces = '';
  for (const { detail, marks: own } of all ? [] : opened) {
    pieces += readString(detail['text']) ?? readString(detail['summary']) ?? '';
    const [mark] = own ?? [];
    if (mark?.of !== 'reasoning') continue;
    parts.push({ type: 'reasoning', text: pieces, providerOptions: mark.metadata });
    pieces = '';
  }
  const thought = pieces || (parts.length === 0 && readString(message['reasoning_content']));
  if (thought) parts.push({ type: 'reasoning', text: thought });
  const metadataOf = (of: string): { readonly providerOptions?: JsonObject } => {
    const found = marks.find((mark) => mark.of === of);
    return found ? { providerOptions: found.metadata } : {};
  };
  const text = textOf(message['content']);
  if (text !== '') parts.push({ type: 'text', text, ...metadataOf('text') });
  for (const call of readArray(message['tool_calls']).map(readObject)) {
    const { name, arguments: written } = readObject(call['function']);
    const id = readString(call['id']) ?? '';
    names.set(id, name);
    const input = parseJson(readString(written) ?? '{}');
    parts.push({
      type: 'tool-call',
      toolCallId: id,
      toolName: name,
      input: isObject(input) ? input : { arguments: input ?? written },
      ...metadataOf(`call ${id}`),
    });
  }
  return parts;
}

/** Media types of OpenAI's audio formats. */
const AUDIO: Readonly<Record<string, string>> = Object.freeze({ wav: 'audio/wav', mp3: 'audio/mpeg' });

function userPart(part: JsonObject, version: SpecVersion, urls: SupportedUrls): JsonObject {
  const { type } = part;
  if (type === 'text') return { type, text: readString(part['text']) ?? '' };
  if (type === 'image_url') return filePart(readObject(part['image_url'])['url'], 'image/*', version, urls);
  if (type === 'input_audio') {
    const { data, format } = readObject(part['input_audio']);
    const mediaType = AUDIO[String(format)] ?? 'audio/wav';
    return { type: 'file', mediaType, data: dataOf(readString(data) ?? '', mediaType, version) };
  }
  if (type === 'file') {
    const { file_data: data, filename } = readObject(part['file']);
    const file = filePart(data, 'application/octet-stream', version, urls);
    return typeof filename === 'string' ? { ...file, filename } : file;
  }
  throw new NotTaken(`Parts of type ${String(type).slice(0, 40)} are not supported by the AI SDK. Remove them.`);
}

function filePart(given: unknown, mediaType: string, version: SpecVersion, urls: SupportedUrls): JsonObject {
  const url = readString(given) ?? '';
  const inline = readDataUrl(url);
  if (inline)
    return { type: 'file', mediaType: inline.mediaType, data: dataOf(inline.data, inline.mediaType, version) };
  const isFetched = Object.entries(urls).some(
    ([type, patterns]) => isSameKind(type, mediaType) && readArray(patterns).some((each) => isMatch(each, url)),
  );
  if (!isFetched || !URL.canParse(url))
    throw new NotTaken('The package takes images and files of this model only as data. Send data URLs.');
  return { type: 'file', mediaType, data: version === 'v4' ? { type: 'url', url: new URL(url) } : new URL(url) };
}

function isMatch(pattern: unknown, url: string): boolean {
  return pattern instanceof RegExp && url.length <= 2048 && pattern.test(url.toLowerCase());
}

/** True for `*`, and for a type of the same kind, such as `image/*` and `image/png`. */
function isSameKind(type: string, mediaType: string): boolean {
  return type.startsWith('*') || type.split('/', 1)[0] === mediaType.split('/', 1)[0];
}

/** Images as base64. Other files as bytes, since a package may take a text for the content itself. */
function dataOf(base64: string, mediaType: string, version: SpecVersion): unknown {
  const data = mediaType.startsWith('image/') ? base64 : new Uint8Array(Buffer.from(base64, 'base64'));
  return version === 'v4' ? { type: 'data', data } : data;
}
