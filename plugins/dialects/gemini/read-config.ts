import { isObject, type JsonObject, readArray, readString } from '../../../core/index.ts';
import { invalid } from '../../providers/kit/index.ts';
import { jsonSchemaOf } from './json-schema.ts';
import { checkSpelling, fieldOf, nameIn, othersOf } from './spelling.ts';
import { effortOf } from './thinking.ts';
import type { ChatFields, Reading } from './types.ts';

/** Fields of `generationConfig` that are numbers or lists on both sides, by their canonical names. */
export const PLAIN_FIELDS: Readonly<Record<string, string>> = Object.freeze({
  maxOutputTokens: 'max_completion_tokens',
  temperature: 'temperature',
  topP: 'top_p',
  topK: 'top_k',
  stopSequences: 'stop',
  candidateCount: 'n',
  seed: 'seed',
  frequencyPenalty: 'frequency_penalty',
  presencePenalty: 'presence_penalty',
  responseLogprobs: 'logprobs',
  logprobs: 'top_logprobs',
});

const FORMAT_FIELDS = ['responseMimeType', 'responseSchema', 'responseJsonSchema', '_responseJsonSchema'] as const;
const READ: readonly string[] = Object.freeze([...Object.keys(PLAIN_FIELDS), ...FORMAT_FIELDS, 'responseModalities']);
const KNOWN: readonly string[] = Object.freeze([...READ, 'thinkingConfig']);

/** `generationConfig` as canonical fields; `rest` is what only Gemini understands. */
export function readConfig(
  body: JsonObject,
  base: string,
  reading: Reading,
): { readonly fields: ChatFields; readonly rest: JsonObject } {
  const config = fieldOf(body, 'generationConfig');
  if (!isObject(config)) return { fields: {}, rest: {} };
  const at = `${base}${nameIn(body, 'generationConfig')}`;
  checkSpelling(config, KNOWN, at);
  const plain = Object.entries(PLAIN_FIELDS).flatMap(([name, canonical]): [string, unknown][] => {
    const value = fieldOf(config, name);
    if (value === undefined) return [];
    reading.places.push([canonical, `${at}.${nameIn(config, name)}`]);
    return [[canonical, value]];
  });
  const rest = othersOf(config, READ);
  for (const name of Object.keys(rest))
    if (name !== nameIn(rest, 'thinkingConfig')) reading.dropped.push(`generationConfig.${name}`);
  return {
    fields: {
      ...Object.fromEntries(plain),
      ...readFormat(config, at, reading),
      ...readThinking(config, at, reading),
      ...readModalities(config, at, reading),
    },
    rest,
  };
}

function readFormat(config: JsonObject, at: string, reading: Reading): ChatFields {
  const name = FORMAT_FIELDS.slice(1).find((field) => fieldOf(config, field) !== undefined);
  const type = readString(fieldOf(config, 'responseMimeType'));
  reading.places.push(['response_format', `${at}.${nameIn(config, name ?? 'responseMimeType')}`]);
  if (type === 'text/x.enum')
    reading.needs.push({ kind: 'native', name: type, param: `${at}.${nameIn(config, 'responseMimeType')}` });
  if (type !== undefined && type !== 'application/json') {
    if (type !== 'text/plain' && type !== 'text/x.enum')
      throw invalid(
        `${at}.${nameIn(config, 'responseMimeType')}`,
        'must be `text/plain`, `application/json` or `text/x.enum`',
      );
    return {};
  }
  const schema = name === undefined ? undefined : fieldOf(config, name);
  if (schema === undefined) return type === undefined ? {} : { response_format: { type: 'json_object' } };
  const place = `${at}.${nameIn(config, name ?? '')}`;
  if (!isObject(schema)) throw invalid(place, 'must be a schema');
  const own = name === 'responseSchema' ? jsonSchemaOf(schema, place) : schema;
  return { response_format: { type: 'json_schema', json_schema: { name: 'response', schema: own } } };
}

function readThinking(config: JsonObject, at: string, reading: Reading): ChatFields {
  const thinking = fieldOf(config, 'thinkingConfig');
  if (!isObject(thinking)) return {};
  const place = `${at}.${nameIn(config, 'thinkingConfig')}`;
  checkSpelling(thinking, ['includeThoughts', 'thinkingBudget', 'thinkingLevel'], place);
  const effort = effortOf(thinking);
  reading.places.push(['reasoning_effort', place]);
  return effort === undefined ? {} : { reasoning_effort: effort };
}

function readModalities(config: JsonObject, at: string, reading: Reading): ChatFields {
  const name = nameIn(config, 'responseModalities');
  const modalities = readArray(config[name]).map((each) => String(each).toLowerCase());
  reading.places.push(['modalities', `${at}.${name}`]);
  const other = modalities.find((each) => each !== 'text' && each !== 'image');
  if (other !== undefined) reading.needs.push({ kind: 'native', name: other.toUpperCase(), param: `${at}.${name}` });
  return modalities.includes('image')
    ? { modalities: modalities.filter((each) => each === 'text' || each === 'image') }
    : {};
}
