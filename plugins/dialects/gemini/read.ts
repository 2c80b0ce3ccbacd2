import {
  type ChatMessage,
  type ChatRequest,
  type ContentPart,
  type DialectInput,
  type DialectRequest,
  isObject,
  type JsonObject,
  readString,
} from '../../../core/index.ts';
import { invalid } from '../../providers/kit/index.ts';
import { readConfig } from './read-config.ts';
import { readContents } from './read-contents.ts';
import { contentOf, partsOf } from './read-parts.ts';
import { readToolConfig, readTools } from './read-tools.ts';
import { checkSpelling, fieldOf, nameIn, othersOf } from './spelling.ts';
import type { ChatFields, GeminiBody, Reading } from './types.ts';

const READ: readonly string[] = Object.freeze([
  'model',
  'contents',
  'systemInstruction',
  'tools',
  'generationConfig',
  'cachedContent',
  'serviceTier',
]);
const KNOWN: readonly string[] = Object.freeze([...READ, 'toolConfig', 'safetySettings', 'labels']);

/** The end of a path that streams. */
export const STREAM_METHOD = 'streamGenerateContent';

/** A request of generateContent, streamGenerateContent or countTokens in the canonical form. */
export function readGemini(input: DialectInput<GeminiBody>): DialectRequest {
  const model = modelOf(input.params['model'] ?? '');
  const { body, at } = requestOf(input);
  const reading: Reading = { places: [['messages', `${at}contents`]], dropped: [], needs: [] };
  checkSpelling(body, KNOWN, at.slice(0, -1));
  checkModel(input.body, '', model);
  if (body !== input.body) checkModel(body, at, model);
  const system = readSystem(body, at, reading);
  const messages = [...system, ...readContents(body['contents'], `${at}contents`, system.length, reading)];
  if (messages.length === 0) throw invalid(`${at}contents`, 'must hold text or another part');
  const { fields, rest } = readConfig(body, at, reading);
  const toolChoice = readToolConfig(body, at, reading);
  const request: ChatRequest = {
    model,
    messages,
    ...readTools(body, at, reading),
    ...toolChoice,
    ...fields,
    ...readTier(body),
    ...readRest(body, at, rest, reading),
    ...(input.route.path.endsWith(STREAM_METHOD) && { stream: true }),
  };
  return {
    request,
    ...(reading.dropped.length > 0 && { dropped: reading.dropped }),
    ...(reading.needs.length > 0 && { needs: reading.needs }),
    place: (param) => placeOf(param, reading),
  };
}

/** The request itself: the body, or what a count wraps it in. */
function requestOf({ body, route }: DialectInput<GeminiBody>): { readonly body: GeminiBody; readonly at: string } {
  if (route.action !== 'count') return { body, at: '' };
  const name = 'generateContentRequest';
  checkSpelling(body, [name, ...KNOWN], '');
  const wrapped = fieldOf(body, name);
  if (!isObject(wrapped)) {
    if (fieldOf(body, 'contents') === undefined) throw invalid('contents', 'is required, or `generateContentRequest`');
    return { body, at: '' };
  }
  if (fieldOf(body, 'contents') !== undefined)
    throw invalid('contents', 'must not stand beside `generateContentRequest`');
  return { body: wrapped, at: `${nameIn(body, name)}.` };
}

/** The name of a model without what Google's paths put before it. */
export function modelOf(name: string): string {
  return name.replace(/^(?:models|tunedModels)\//, '');
}

function checkModel(body: GeminiBody, at: string, model: string): void {
  const inside = readString(body['model']);
  if (inside !== undefined && modelOf(inside) !== model)
    throw invalid(`${at}model`, 'must be the model of the path, or be left out');
}

function readSystem(body: GeminiBody, at: string, reading: Reading): readonly ChatMessage[] {
  const instruction = fieldOf(body, 'systemInstruction');
  if (!isObject(instruction)) return [];
  const place = `${at}${nameIn(body, 'systemInstruction')}`;
  const parts: ContentPart[] = [];
  reading.places.push(['messages[0]', place]);
  for (const [part, where] of partsOf(instruction, place)) {
    const text = fieldOf(part, 'text');
    if (typeof text !== 'string') throw invalid(where, 'must be a text in the system instruction');
    if (text === '') continue;
    reading.places.push([`messages[0].content[${parts.length}]`, where]);
    parts.push({ type: 'text', text });
  }
  return parts.length === 0 ? [] : [{ role: 'system', content: contentOf(parts) }];
}

function readTier(body: GeminiBody): ChatFields {
  const tier = readString(fieldOf(body, 'serviceTier'));
  return tier === undefined ? {} : { service_tier: tier.toLowerCase().replace(/^service_tier_/, '') };
}

/** What only Gemini understands, told as left out elsewhere. */
function readRest(body: GeminiBody, at: string, config: JsonObject, reading: Reading): ChatFields {
  const cached = readString(fieldOf(body, 'cachedContent'));
  if (cached !== undefined)
    reading.needs.push({ kind: 'reference', name: 'cachedContent', param: `${at}${nameIn(body, 'cachedContent')}` });
  const others = othersOf(body, [...READ, 'toolConfig', 'generateContentRequest']);
  reading.dropped.push(...Object.keys(others));
  const toolConfig = fieldOf(body, 'toolConfig');
  const choices = isObject(toolConfig) ? othersOf(toolConfig, ['functionCallingConfig']) : {};
  const fields = {
    ...others,
    ...(cached !== undefined && { cachedContent: cached }),
    ...(Object.keys(choices).length > 0 && { toolConfig: choices }),
    ...(Object.keys(config).length > 0 && { generationConfig: config }),
  };
  return Object.keys(fields).length === 0 ? {} : { dialect_fields: { gemini: fields } };
}

/** The caller's place of a canonical one: that of the longest canonical place around it. */
function placeOf(param: string, { places }: Reading): string {
  let found: readonly [string, string] | undefined;
  for (const each of places) {
    const [canonical] = each;
    const isAround =
      param === canonical || (param.startsWith(canonical) && /^[.[]/.test(param.slice(canonical.length)));
    if (isAround && canonical.length >= (found?.[0].length ?? 0)) found = each;
  }
  return found?.[1] ?? param;
}
