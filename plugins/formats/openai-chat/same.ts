/** Comparison of what a vendor sent with what was read of it, for callers who get the vendor's own words if both say the same. */
import {
  type ChatChoice,
  type ChatChunk,
  type ChatResponse,
  type ChunkChoice,
  isObject,
  type JsonObject,
  readArray,
  readObject,
} from '../../../contract/index.ts';
import { CHECKS, unixSeconds } from './response.ts';

/** Fields that are compared one by one. */
const COMPARED: ReadonlySet<string> = new Set([
  ...['id', 'object', 'created', 'model', 'choices', 'usage'],
  ...['index', 'delta', 'message', 'finish_reason', 'finish', 'logprobs'],
]);

/** Fields that a caller must not get if reading removed them: repetitions, other forms, and those of other formats. */
const REMOVED: ReadonlySet<string> = new Set([
  ...['role', 'content', 'refusal', 'tool_calls'],
  ...['reasoning_content', 'reasoning', 'reasoning_text', 'reasoning_details'],
  ...['usage', 'message', 'error', 'opaque', 'dialect_fields', '__proto__'],
]);

/** Returns true if a stream's frame says the same as its chunk. */
export function isSameChunk(sent: JsonObject, chunk: ChatChunk): boolean {
  const choices = readArray(sent['choices']);
  if (!hasSameHead(sent, chunk) || !isNothing(sent['usage']) || choices.length !== chunk.choices.length) return false;
  return chunk.choices.every((choice, at) => isSameChunkChoice(choices[at], choice)) && hasSameRest(sent, chunk);
}

/** Returns true if a stream's frame reports usage alone, and the same usage as its chunk. */
export function isSameUsage(sent: JsonObject, chunk: ChatChunk): boolean {
  const isAlone = Array.isArray(sent['choices']) && sent['choices'].length === 0;
  return isAlone && hasSameHead(sent, chunk) && isSame(sent['usage'], chunk.usage, true) && hasSameRest(sent, chunk);
}

/** Returns true if a whole response equals its canonical form. */
export function isSameResponse(sent: JsonObject, response: ChatResponse): boolean {
  const choices = readArray(sent['choices']);
  if (!hasSameHead(sent, response) || choices.length !== response.choices.length) return false;
  if (!response.usage || !isSame(sent['usage'], response.usage, true)) return false;
  return response.choices.every((choice, at) => isSameChoice(choices[at], choice)) && hasSameRest(sent, response);
}

function hasSameHead(sent: JsonObject, { id, object, model }: ChatChunk | ChatResponse): boolean {
  const { created } = sent;
  const isTime = created === unixSeconds(created) && created !== undefined;
  return isTime && sent['id'] === id && sent['object'] === object && sent['model'] === model;
}

function isSameChunkChoice(sent: unknown, choice: ChunkChoice): boolean {
  if (!isObject(sent) || !isObject(sent['delta']) || !isNothing(sent['message'])) return false;
  const isLogged = choice.logprobs === null ? isNothing(sent['logprobs']) : isSame(sent['logprobs'], choice.logprobs);
  return isLogged && hasSameEnd(sent, choice) && hasSameRest(sent['delta'], choice.delta) && hasSameRest(sent, choice);
}

function isSameChoice(sent: unknown, choice: ChatChoice): boolean {
  if (!isObject(sent) || !isObject(sent['message']) || !isNothing(sent['delta'])) return false;
  if (!isSame(sent['logprobs'], choice.logprobs) || !hasSameEnd(sent, choice)) return false;
  return hasSameRest(sent['message'], choice.message) && hasSameRest(sent, choice);
}

/** The vendor's own word for the end is in its choice. */
function hasSameEnd(sent: JsonObject, { index, finish_reason: reason, finish }: ChunkChoice | ChatChoice): boolean {
  return sent['index'] === index && sent['finish_reason'] === reason && !finish?.unmapped && isNothing(sent['finish']);
}

/** Compares the fields that no other function compares. */
function hasSameRest(sent: JsonObject, read: object): boolean {
  const values = read as JsonObject;
  if (readArray(values['annotations']).some(isForeign)) return false;
  for (const name in values) if (!COMPARED.has(name) && !isSame(sent[name], values[name])) return false;
  for (const name in sent) if (!COMPARED.has(name) && values[name] === undefined && !mayStay(name, sent)) return false;
  return true;
}

/** Returns true for an annotation that callers of this format do not get. */
function isForeign(annotation: unknown): boolean {
  const { type } = readObject(annotation);
  return type === 'opaque' || type === 'file_citation';
}

/** Returns true if a caller may get a field that reading removed: nothing, or a field that the canonical form does not know. */
function mayStay(name: string, sent: JsonObject): boolean {
  const value = sent[name];
  if (value === null || (value === '' && name !== 'role')) return true;
  return !REMOVED.has(name) && CHECKS.get(name)?.(value) !== false;
}

function isNothing(value: unknown): boolean {
  return value === null || value === undefined;
}

/** Compares two values of JSON. With `mayHaveMore` an object may have further fields. */
function isSame(sent: unknown, read: unknown, mayHaveMore = false): boolean {
  if (sent === read) return true;
  if (Array.isArray(read))
    return Array.isArray(sent) && sent.length === read.length && read.every((value, at) => isSame(sent[at], value));
  if (!isObject(sent) || !isObject(read)) return false;
  for (const name in read) if (!isSame(sent[name], read[name], mayHaveMore)) return false;
  if (!mayHaveMore) for (const name in sent) if (!(name in read) && sent[name] !== null) return false;
  return true;
}
