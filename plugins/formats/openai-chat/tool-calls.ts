import {
  isObject,
  type JsonObject,
  parseJson,
  readObject,
  readString,
  type ToolCall,
  type ToolCallDelta,
  writeJson,
} from '../../../contract/index.ts';
import { toolCallId } from '../kit/index.ts';
import { shortId } from './messages.ts';

/** Maximum length of a call id that every vendor accepts, so that the conversation may continue at any of them. */
const MAX_ID = 64;

/** Tool calls of a complete response: missing or repeated ids are generated, arguments are always text. */
export function readToolCalls(value: unknown, seed: string): readonly ToolCall[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const ids = new Set<string>();
  const calls = value.filter(isObject).flatMap((call, position): readonly ToolCall[] => {
    const given = readString(call['id']);
    let id = given === undefined ? newCallId(seed, position) : toolCallId(given, MAX_ID);
    if (ids.has(id)) id = newCallId(seed, position);
    ids.add(id);
    const { index: _index, ...rest } = call;
    const custom: JsonObject = { ...rest, id };
    if (isCustomCall(custom)) return [custom];
    const called = readObject(call['function']);
    const name = readString(called['name']) ?? '';
    const text = argumentsText(called['arguments']) || '{}';
    return [{ ...rest, id, type: 'function', function: { ...called, name, arguments: text } }];
  });
  return calls.length > 0 ? calls : undefined;
}

/** Returns true for a call of a custom tool, which OpenAI has and the canonical types lack; it passes unchanged. */
function isCustomCall(call: JsonObject): call is JsonObject & ToolCall {
  return call['type'] === 'custom';
}

interface OpenCall {
  readonly index: number;
  /** Vendor's id, if any. */
  readonly vendorId: string | undefined;
  name: string | undefined;
  /** Arguments so far. */
  written: string;
  isCustom: boolean;
}

export interface ToolCallTracker {
  /** Repaired deltas of one chunk; undefined if they are empty. */
  push(deltas: unknown): readonly ToolCallDelta[] | undefined;
  /** Returns true if any call has started. */
  used(): boolean;
  /** Arguments for calls without any at the end: an empty string is invalid JSON, which vendors would reject later. */
  finish(): readonly ToolCallDelta[];
  /** Arguments of all calls so far, as text. */
  written(): readonly string[];
}

/**
 * Tracks the tool calls of one streamed choice. Vendors omit the index, send 0 for every call, and repeat or blank
 * ids and names. Calls are emitted numbered from 0, each with its id, type and name once.
 */
export function trackToolCalls(seed: string): ToolCallTracker {
  return new Tracker(seed);
}

class Tracker implements ToolCallTracker {
  readonly #seed: string;
  readonly #byIndex = new Map<number, OpenCall>();
  readonly #byId = new Map<string, OpenCall>();
  readonly #ids = new Set<string>();
  readonly #calls: OpenCall[] = [];
  #last: OpenCall | undefined;

  constructor(seed: string) {
    this.#seed = seed;
  }

  push(deltas: unknown): readonly ToolCallDelta[] | undefined {
    if (!Array.isArray(deltas) || deltas.length === 0) return undefined;
    const repaired = deltas.filter(isObject).flatMap((delta) => this.#repair(delta));
    return repaired.length > 0 ? repaired : undefined;
  }

  used(): boolean {
    return this.#calls.length > 0;
  }

  finish(): readonly ToolCallDelta[] {
    const empty = this.#calls.filter(({ written, isCustom }) => written === '' && !isCustom);
    return empty.map(({ index }) => ({ index, function: { arguments: '{}' } }));
  }

  written(): readonly string[] {
    return this.#calls.map(({ written }) => written);
  }

  #repair(delta: JsonObject): ToolCallDelta[] {
    const called = readObject(delta['function']);
    const id = readString(delta['id']);
    const name = readString(called['name']);
    const sent = argumentsText(called['arguments']);
    const index = typeof delta['index'] === 'number' && Number.isInteger(delta['index']) ? delta['index'] : undefined;
    const known = this.#find(index, id, name);
    if (isObject(delta['custom'])) return [this.#customDelta(delta, known ?? this.#open(index, id), !known)];
    if (!known && id === undefined && name === undefined && sent === '') return [];
    const call = known ?? this.#open(index, id);
    this.#last = call;
    const naming = name !== undefined && call.name === undefined;
    if (naming) call.name = name;
    call.written += sent;
    if (!known) return [firstDelta(delta, called, { index: call.index, id: this.#idOf(id, call.index), sent })];
    if (sent === '' && !naming) return [];
    return [{ index: call.index, function: { ...(naming && { name }), arguments: sent } }];
  }

  /** Delta of a custom tool call, which has text input in place of arguments. */
  #customDelta(delta: JsonObject, call: OpenCall, isFirst: boolean): ToolCallDelta {
    const { id: _id, index: _index, type: _type, ...rest } = delta;
    this.#last = call;
    call.isCustom = true;
    if (!isFirst) return { ...rest, index: call.index };
    const first: JsonObject = { ...rest, id: this.#idOf(call.vendorId, call.index), type: 'custom' };
    return { ...first, index: call.index };
  }

  #find(index: number | undefined, id: string | undefined, name: string | undefined): OpenCall | undefined {
    if (index === undefined) return id !== undefined ? this.#byId.get(id) : name === undefined ? this.#last : undefined;
    const call = this.#byIndex.get(index);
    if (!call || !isAnother(call, id, name)) return call;
    return id === undefined ? undefined : this.#byId.get(id);
  }

  #open(index: number | undefined, vendorId: string | undefined): OpenCall {
    const call: OpenCall = { index: this.#calls.length, vendorId, name: undefined, written: '', isCustom: false };
    this.#calls.push(call);
    if (index !== undefined) this.#byIndex.set(index, call);
    if (vendorId !== undefined) this.#byId.set(vendorId, call);
    return call;
  }

  /** Id for the caller: the vendor's, if every vendor accepts it and it is unique. */
  #idOf(vendorId: string | undefined, position: number): string {
    const given = vendorId === undefined ? undefined : toolCallId(vendorId, MAX_ID);
    const id = given === undefined || this.#ids.has(given) ? newCallId(this.#seed, position) : given;
    this.#ids.add(id);
    return id;
  }
}

/**
 * Returns true if a delta starts another call than the one with its index: some vendors send index 0 for every call.
 * With an id, a different id together with a name starts one. Without an id, a different name does, or any name once
 * the arguments are complete.
 */
function isAnother(call: OpenCall, id: string | undefined, name: string | undefined): boolean {
  if (call.name === undefined || name === undefined) return false;
  if (id !== undefined) return call.vendorId !== id;
  return name !== call.name || isObject(parseJson(call.written));
}

function firstDelta(
  delta: Readonly<Record<string, unknown>>,
  called: Readonly<Record<string, unknown>>,
  { index, id, sent }: { readonly index: number; readonly id: string; readonly sent: string },
): ToolCallDelta {
  const { id: _id, index: _index, type: _type, function: _function, ...extras } = delta;
  const { name, arguments: _arguments, ...more } = called;
  return {
    ...extras,
    index,
    id,
    type: 'function',
    function: { ...more, name: readString(name) ?? '', arguments: sent },
  };
}

/** Arguments in OpenAI's form: JSON in a string, also if the vendor sends the object itself. */
function argumentsText(value: unknown): string {
  if (typeof value === 'string') return value;
  return value === undefined || value === null ? '' : writeJson(value);
}

function newCallId(seed: string, position: number): string {
  return `call_${shortId(`${seed}:${position}`, 24)}`;
}
