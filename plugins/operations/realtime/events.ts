import { randomUUID } from 'node:crypto';
import { GatewayError, isObject, type JsonObject, readArray, readObject, readString } from '../../../core/index.ts';
import type { Transcriber } from './transcripts.ts';
import { CHARACTERS_PER_TOKEN, MAX_LIMIT } from './usage.ts';

/** The events that clients send. */
const EVENTS: ReadonlySet<unknown> = new Set([
  ...['session.update', 'response.create', 'response.cancel', 'output_audio_buffer.clear'],
  ...['input_audio_buffer.append', 'input_audio_buffer.commit', 'input_audio_buffer.clear'],
  ...['conversation.item.create', 'conversation.item.retrieve', 'conversation.item.truncate'],
  'conversation.item.delete',
]);

/** Names that act, in whatever case a vendor may read them. */
const NAMES: readonly string[] = Object.freeze([
  ...[
    'audio',
    'input',
    'item',
    'max_output_tokens',
    'model',
    'prompt',
    'response',
    'session',
    'tools',
    'tracing',
    'type',
  ],
]);

/** Refuses an event that nobody knows here, since it may begin what costs, and names that act in another case. */
export function assertEvent(event: JsonObject): void {
  if (!EVENTS.has(event['type'])) throw invalid('type', 'is no event that is taken here');
  assertNames(event);
}

/** What of a session decides what its responses may cost; at first what a vendor does by itself. */
export class Settings {
  output: number | null = null;
  /** The limit of output that the vendor's session has from here, where its client named none. */
  #own: number | null = null;
  /** Whether responses are spoken, and whether the vendor begins them by itself. */
  speaks = true;
  responds = true;
  /** Whether sound comes in as G.711. */
  isCompressed = false;
  /** The model that transcribes the caller's sound; undefined where none does. Its name is missing where nobody has named it. */
  transcriber: Partial<Transcriber> | undefined;

  /** As the vendor says that it is. */
  read({ type, max_output_tokens: most, output_modalities: writes, audio }: JsonObject): void {
    const { turn_detection: detects, format, transcription } = readObject(readObject(audio)['input']);
    if (most !== undefined) this.output = outputOf(most) === this.#own ? null : outputOf(most);
    if (writes !== undefined) this.speaks = readArray(writes).includes('audio');
    this.responds = type !== 'transcription' && isObject(detects) && detects['create_response'] !== false;
    if (transcription !== undefined)
      this.transcriber = isObject(transcription) ? readTranscriber(transcription) : undefined;
    this.isCompressed = /^audio\/pcm[ua]$/.test(readString(readObject(format)['type']) ?? '');
  }

  /** As a client wants it: until the vendor says what is, the dearer one holds. */
  widen({ max_output_tokens: most, output_modalities: writes, audio }: JsonObject): void {
    const { turn_detection: detects, transcription } = readObject(readObject(audio)['input']);
    if (isObject(transcription)) this.transcriber = { ...this.transcriber, ...readTranscriber(transcription) };
    if (most !== undefined && !fits(outputOf(most), this.output)) this.output = outputOf(most);
    if (readArray(writes).includes('audio')) this.speaks = true;
    if (isObject(detects)) this.responds = true;
  }

  /** The most that a response may write which the vendor begins, whoever set it. */
  get most(): number | null {
    return this.output ?? this.#own;
  }

  /** What makes the vendor's session have this limit of output, null for none, where its client named none; undefined where it has. */
  limitTo(limit: number | null): JsonObject | undefined {
    if (this.output !== null || limit === this.#own) return undefined;
    this.#own = limit;
    return { type: 'session.update', session: { type: 'realtime', max_output_tokens: limit ?? 'inf' } };
  }

  /** What a client's limit of output is sent as: while that much is held and no more, no more. */
  limit(named: unknown, isHeld: boolean): unknown {
    if (isHeld && !fits(outputOf(named), this.#own)) return this.#own;
    this.#own = null;
    return named;
  }
}

function readTranscriber({ model, prompt }: JsonObject): Partial<Transcriber> {
  const name = readString(model);
  const text = Math.ceil((readString(prompt)?.length ?? 0) / CHARACTERS_PER_TOKEN);
  return name === undefined ? { text } : { model: name, text };
}

/** The tokens that a limit allows; null for as many as the model can write, and for what vendors do not take. */
export function outputOf(limit: unknown): number | null {
  return typeof limit === 'number' && limit > 0 && limit <= MAX_LIMIT ? Math.ceil(limit) : null;
}

/** Whether one limit is within another one. */
export function fits(output: number | null, most: number | null): boolean {
  return most === null || (output !== null && output <= most);
}

/** What ends a session, and the code that it is closed with; anything else is told, and it goes on. */
export const CLOSE_CODES: ReadonlyMap<number, number> = new Map([
  [401, 1008],
  [402, 1008],
  [404, 1008],
]);

/** An error in OpenAI's format, with the id of the client's event that it is about. */
export function errorEvent({ code, message, param, type }: GatewayError, eventId?: string): JsonObject {
  const error = { type, code, message, param: param ?? null, event_id: eventId ?? null };
  return { type: 'error', event_id: `event_${randomUUID()}`, error };
}

export function invalid(param: string, problem: string): GatewayError {
  return new GatewayError('invalid_request', `\`${param}\` ${problem}.`, { param });
}

/** Refuses what acts under a name in another case. */
function assertNames(event: JsonObject): void {
  for (const fields of [event, readObject(event['session']), readObject(event['response']), readObject(event['item'])])
    for (const name of Object.keys(fields)) {
      const plain = name.toUpperCase().toLowerCase();
      if (plain !== name && NAMES.includes(plain)) throw invalid(name, `is \`${plain}\` in another case: write that`);
    }
}
