/** Settings and files that a package drops without a warning, found before a request is sent. */
import { LRUCache } from 'lru-cache';
import { isObject, type JsonObject, readArray, readObject, readString } from '../../../contract/index.ts';

/** Returns the first request that a package would send, as text; undefined if it sends none. Nothing is sent. */
export type Draft = (work: () => PromiseLike<unknown>) => Promise<string | undefined>;

/** Parts of a request that a package drops without a warning. */
export interface Losses {
  /** Fields of OpenAI's form. */
  readonly fields: readonly string[];
  /** Media types of files. */
  readonly files: readonly string[];
}

const NONE: Losses = Object.freeze({ fields: [], files: [] });

/** Call of a model, and what may be lost of it. */
export interface Examined {
  /** Name of the model, after its kind. */
  readonly of: string;
  readonly options: JsonObject;
  readonly run: (options: JsonObject) => PromiseLike<unknown>;
  /** Short content in place of the caller's. It has the {@link MARK}. */
  readonly sample: JsonObject;
  readonly settings: readonly Setting[];
  readonly files?: readonly SampleFile[];
}

type FindLosses = (examined: Examined, draft: Draft) => Promise<Losses>;

/** Maximum number of combinations that are remembered, and length of a combination. */
const MAX_KNOWN = 500;
const MAX_KEY = 1000;

/** Creates a function that finds what a package drops, once for each combination of settings and media types of a model. */
export function createLossFinder(): FindLosses {
  const known = new LRUCache<string, Losses>({ max: MAX_KNOWN });
  return async (examined, draft) => {
    const { of, settings, files = [] } = examined;
    if (settings.length === 0 && files.length === 0) return NONE;
    const key = JSON.stringify([of, ...[settings, files].map((each) => each.map((one) => one.key))]);
    const before = known.get(key);
    if (before) return before;
    const { isSure, ...losses } = await findLosses(examined, draft);
    if (isSure && key.length <= MAX_KEY) known.set(key, losses);
    return losses;
  };
}

/** Text of drafts. */
export const MARK = 'tollgate-draft-text';
const MARKS = [MARK, Buffer.from(MARK).toString('base64')];

/** Compares drafts with and without each setting. Not sure if the first request is another one, such as for a token. */
async function findLosses(
  { options, run, sample, settings, files = [] }: Examined,
  draft: Draft,
): Promise<Losses & { readonly isSure: boolean }> {
  const write = (changed: JsonObject): Promise<string | undefined> =>
    draft(() => run({ ...options, ...changed, ...sample }));
  const whole = await write({});
  if (whole === undefined || !MARKS.some((mark) => whole.includes(mark))) return { ...NONE, isSure: false };
  const fields = new Set<string>();
  let isSure = true;
  for (const { field, without, value } of settings) {
    if (fields.has(field) || (await write(without)) !== whole) continue;
    if (isIn(whole, value)) isSure = false;
    else fields.add(field);
  }
  const missing = files.filter(({ forms }) => !forms.some((form) => whole.includes(form)));
  return { fields: [...fields], files: [...new Set(missing.map(({ mediaType }) => mediaType))], isSure };
}

/** True for a value that the request has: a package may send the same one by default. */
function isIn(request: string, value: unknown): boolean {
  if (typeof value === 'string') return request.includes(JSON.stringify(value));
  if (typeof value !== 'number') return false;
  return new RegExp(`[:,[]${String(value).replace(/[.+]/g, '\\$&')}[\\],}]`).test(request);
}

export interface Setting {
  readonly field: string;
  /** Key of the answer: everything that decides if the setting arrives. */
  readonly key: string;
  /** Options without the setting. */
  readonly without: JsonObject;
  /** Value that a default of the package may equal. */
  readonly value?: unknown;
}

/** Settings that are one option each, by its name. */
export function plainSettings(options: JsonObject, fields: Readonly<Record<string, string>>): readonly Setting[] {
  return Object.entries(fields).flatMap(([name, field]) => {
    const value = options[name];
    // A penalty of 0 has no effect.
    if (value === undefined || value === null || (value === 0 && field.endsWith('penalty'))) return [];
    return [{ field, key: field, without: { [name]: undefined }, value }];
  });
}

/** Plain settings of language models. */
const PLAIN = Object.freeze({
  maxOutputTokens: 'max_tokens',
  temperature: 'temperature',
  topP: 'top_p',
  topK: 'top_k',
  presencePenalty: 'presence_penalty',
  frequencyPenalty: 'frequency_penalty',
  seed: 'seed',
  stopSequences: 'stop',
});

/** Examines a call of a language model. */
export function examineChat({ options, ...of }: Pick<Examined, 'of' | 'options' | 'run'>): Examined {
  const files = filesOf(options['prompt']);
  const content = [{ type: 'text', text: MARK }, ...files.map(({ part }) => part)];
  const sample = { prompt: [{ role: 'user', content }] };
  return { ...of, options, sample, settings: settingsOf(options), files };
}

function settingsOf(options: JsonObject): readonly Setting[] {
  const settings = [...plainSettings(options, PLAIN)];
  const { reasoning, responseFormat: format, tools, toolChoice } = options;
  // A model without thoughts has nothing to turn off.
  if (reasoning !== undefined && reasoning !== 'none')
    settings.push({
      field: 'reasoning_effort',
      key: `reasoning_effort ${String(reasoning)}`,
      without: { reasoning: undefined },
      value: reasoning,
    });
  if (isObject(format)) {
    settings.push({ field: 'response_format', key: 'response_format', without: { responseFormat: undefined } });
    if (isObject(format['schema']))
      settings.push({
        field: 'response_format',
        key: 'schema',
        without: { responseFormat: { type: format['type'] } },
      });
  }
  if (tools !== undefined) {
    const given = readArray(tools).map(readObject);
    settings.push({ field: 'tools', key: 'tools', without: { tools: undefined, toolChoice: undefined } });
    if (given.some(({ strict }) => strict === true))
      settings.push({
        field: 'tools.strict',
        key: 'tools.strict',
        without: { tools: given.map(({ strict: _, ...tool }) => tool) },
      });
    const { type } = readObject(toolChoice);
    if (type !== undefined && type !== 'auto')
      settings.push({ field: 'tool_choice', key: `tool_choice ${type}`, without: { toolChoice: undefined } });
  }
  return settings;
}

export interface SampleFile {
  readonly key: string;
  readonly mediaType: string;
  /** Short file of the same type. */
  readonly part: JsonObject;
  /** Texts of a request with the file. */
  readonly forms: readonly string[];
}

/** A short file for each media type of a prompt's files. */
function filesOf(prompt: unknown): readonly SampleFile[] {
  const found = new Map<string, SampleFile>();
  for (const message of readArray(prompt).map(readObject))
    for (const part of readArray(message['content']).map(readObject)) {
      if (part['type'] !== 'file') continue;
      const sample = sampleOf(part);
      if (!found.has(sample.key)) found.set(sample.key, sample);
    }
  return [...found.values()];
}

function sampleOf(part: JsonObject): SampleFile {
  const mediaType = readString(part['mediaType']) ?? '';
  // Specification v4 has the data in an object.
  const { type: kind, data: given = part['data'], url = given } = readObject(part['data']);
  if (url instanceof URL) return { key: `url ${mediaType}`, mediaType, part, forms: [url.href] };
  const isText = /^text\/|json|xml/.test(mediaType);
  // Bytes that are no text, which a package must not send as one.
  const bytes = Buffer.from(isText ? 'tollgate-draft-file' : [0xff, 0xfe, 0x80, 0x81, 0xc0, 0x00, 0xff, 0xfe, 0xfd]);
  const base64 = bytes.toString('base64');
  const data = typeof given === 'string' ? base64 : new Uint8Array(bytes);
  return {
    key: mediaType,
    mediaType,
    part: { ...part, data: kind === 'data' ? { type: kind, data } : data },
    forms: isText ? [base64, bytes.toString()] : [base64],
  };
}
