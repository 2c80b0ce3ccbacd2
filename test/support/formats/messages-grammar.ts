import { expect } from 'chai';
import { type JsonObject, readObject } from '../../../contract/index.ts';
import { readSse } from './codec.ts';

/** Message that a client combines from a stream's events. */
export interface StreamedMessage {
  readonly message: JsonObject;
  readonly content: readonly JsonObject[];
  readonly delta: JsonObject;
  readonly usage: JsonObject;
  /** Error that ended the stream. */
  readonly error?: JsonObject;
}

/**
 * Reads a stream of Messages, and fails unless it is grammatical. Events are named. It starts with one `message_start`.
 * Blocks follow in order, each with the next index: a start, deltas of its own kind, a stop. It ends with one
 * `message_delta` and `message_stop`, or with one `error` in place of the rest. Nothing follows the end. `ping` is
 * allowed anywhere.
 */
export function readMessagesStream(bytes: string | Uint8Array): StreamedMessage {
  const state = { phase: 'before' as 'before' | 'between' | 'block' | 'delta' | 'over' };
  let message: JsonObject = {};
  const content: JsonObject[] = [];
  let [delta, usage]: [JsonObject, JsonObject] = [{}, {}];
  let error: JsonObject | undefined;
  let json = '';
  for (const { event, data } of readSse(Buffer.from(bytes))) {
    const value = JSON.parse(data) as JsonObject;
    const type = String(value['type']);
    expect(event, 'the event has the name of its type').to.equal(type);
    if (type === 'ping') continue;
    const at = `${type} in the phase ${state.phase}`;
    expect(state.phase, at).not.to.equal('over');
    if (type === 'error') {
      expect(readObject(value['error'])).to.have.all.keys('type', 'message');
      expect(value['request_id']).to.match(/^req_/);
      [error, state.phase] = [value, 'over'];
      continue;
    }
    if (type === 'message_start') {
      expect(state.phase, at).to.equal('before');
      message = readObject(value['message']);
      expect(message).to.include({ type: 'message', role: 'assistant', stop_reason: null, stop_sequence: null });
      expect(message['content']).to.deep.equal([]);
      state.phase = 'between';
    } else if (type === 'content_block_start') {
      expect(state.phase, at).to.equal('between');
      expect(value['index'], at).to.equal(content.length);
      content.push({ ...readObject(value['content_block']) });
      [json, state.phase] = ['', 'block'];
    } else if (type === 'content_block_delta') {
      expect(state.phase, at).to.equal('block');
      expect(value['index'], at).to.equal(content.length - 1);
      json += extend(content.at(-1)!, readObject(value['delta']));
    } else if (type === 'content_block_stop') {
      expect(state.phase, at).to.equal('block');
      expect(value['index'], at).to.equal(content.length - 1);
      if (json !== '') content.at(-1)!['input'] = json;
      state.phase = 'between';
    } else if (type === 'message_delta') {
      expect(state.phase, at).to.equal('between');
      [delta, usage, state.phase] = [readObject(value['delta']), readObject(value['usage']), 'delta'];
      expect(delta['stop_reason']).to.be.a('string');
      expect(usage['output_tokens']).to.be.a('number');
      // The format's own provider may omit the usage that it reported at the start.
      if (usage['input_tokens'] !== null) expect(usage['input_tokens']).to.be.a('number');
    } else {
      expect(type).to.equal('message_stop');
      expect(state.phase, at).to.equal('delta');
      state.phase = 'over';
    }
  }
  expect(state.phase, 'the stream ends').to.equal('over');
  return { message, content: content.map(parsed), delta, usage, ...(error && { error }) };
}

/** Adds a delta to its block, which must have the same kind; returns the addition to a call's input. */
function extend(block: JsonObject, delta: JsonObject): string {
  const KINDS: Readonly<Record<string, string>> = {
    text_delta: 'text',
    citations_delta: 'text',
    thinking_delta: 'thinking',
    signature_delta: 'thinking',
    input_json_delta: 'tool_use',
  };
  const type = String(delta['type']);
  expect(block['type'], type).to.equal(KINDS[type]);
  if (type === 'input_json_delta') return String(delta['partial_json']);
  if (type === 'citations_delta')
    block['citations'] = [...((block['citations'] as unknown[]) ?? []), delta['citation']];
  else {
    const field = type.replace('_delta', '');
    block[field] = `${String(block[field] ?? '')}${String(delta[field])}`;
  }
  return '';
}

/** Input of a call as an object; a truncated one stays text. */
function parsed(block: JsonObject): JsonObject {
  if (typeof block['input'] !== 'string') return block;
  try {
    return { ...block, input: JSON.parse(block['input']) as unknown };
  } catch {
    return block;
  }
}
