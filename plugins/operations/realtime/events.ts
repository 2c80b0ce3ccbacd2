import { randomUUID } from 'node:crypto';
import { GatewayError, isObject, type JsonObject, readArray, readObject, readString } from '../../../contract/index.ts';
import { CHARACTERS_PER_TOKEN, MAX_LIMIT } from './usage.ts';

/** Model of a session that transcribes the caller's audio, and the tokens of its prompt. */
export interface Transcriber {
  readonly model: string;
  readonly text: number;
}

/** Client events. */
const EVENTS: ReadonlySet<unknown> = new Set([
  ...['session.update', 'response.create', 'response.cancel', 'output_audio_buffer.clear'],
  ...['input_audio_buffer.append', 'input_audio_buffer.commit', 'input_audio_buffer.clear'],
  ...['conversation.item.create', 'conversation.item.retrieve', 'conversation.item.truncate'],
  'conversation.item.delete',
]);

/** Field names with an effect, at any depth; vendors may read them in any case. */
const NAMES: ReadonlySet<string> = new Set([
  ...['arguments', 'audio', 'content', 'conversation', 'delta', 'format', 'image_url', 'input', 'instructions', 'item'],
  ...[
    'max_output_tokens',
    'max_response_output_tokens',
    'modalities',
    'model',
    'output',
    'output_modalities',
    'prompt',
  ],
  ...['rate', 'response', 'role', 'server_url', 'session', 'text', 'tool_choice', 'tools', 'tracing', 'transcript'],
  ...['transcription', 'truncation', 'turn_detection', 'type', 'voice'],
]);

/** Fields with names of the client's own. */
const FREE: ReadonlySet<string> = new Set(['parameters', 'metadata', 'variables', 'headers']);

/** Rejects unknown events, which may start billed work, and effective names in another case. */
export function assertEvent(event: JsonObject): void {
  if (!EVENTS.has(event['type'])) throw invalid('type', 'must be a supported event type');
  assertNames(event);
}

/** Session settings that determine the cost. */
interface State {
  readonly output: number | null;
  /** True if responses are spoken, and if the vendor starts them by itself. */
  readonly speaks: boolean;
  readonly responds: boolean;
  /** True if input audio is G.711. */
  readonly isCompressed: boolean;
  /** Model that transcribes the caller's audio; undefined without one. Its name is missing if it was never set. */
  readonly transcriber: Partial<Transcriber> | undefined;
}

/** Maximum number of update ids kept until the vendor responds, and the maximum length of an id. */
const MAX_UPDATES = 64;
const MAX_ID = 512;

/**
 * Session settings that determine the cost: those the vendor last reported. Until it has confirmed all updates,
 * requested settings count if they are more expensive.
 */
export class Settings {
  /** Defaults of a vendor. */
  #reported: State = { output: null, speaks: true, responds: true, isCompressed: false, transcriber: undefined };
  #wanted: Partial<State> = {};
  /** Unconfirmed updates, and the ids of their events, oldest first. */
  #unanswered = 0;
  readonly #updates: (string | undefined)[] = [];
  /** Output limit that the gateway set in the vendor's session, if its client set none. */
  #own: number | null = null;

  get output(): number | null {
    const { output } = this.#wanted;
    return output === undefined || fits(output, this.#reported.output) ? this.#reported.output : output;
  }

  get speaks(): boolean {
    return this.#wanted.speaks ?? this.#reported.speaks;
  }

  get responds(): boolean {
    return this.#wanted.responds ?? this.#reported.responds;
  }

  get isCompressed(): boolean {
    return this.#wanted.isCompressed ?? this.#reported.isCompressed;
  }

  get transcriber(): Partial<Transcriber> | undefined {
    const { transcriber } = this.#wanted;
    return transcriber ? { ...this.#reported.transcriber, ...transcriber } : this.#reported.transcriber;
  }

  /** Returns true if the vendor currently transcribes committed audio. */
  get transcribes(): boolean {
    return this.#reported.transcriber !== undefined;
  }

  /** Reads the settings that the vendor reports. */
  read({ type, max_output_tokens: most, output_modalities: writes, audio }: JsonObject): void {
    const { turn_detection: detects, format, transcription } = readObject(readObject(audio)['input']);
    const reported = this.#reported;
    const output = outputOf(most) === this.#own ? null : outputOf(most);
    const transcriber = isObject(transcription) ? readTranscriber(transcription) : undefined;
    this.#reported = {
      output: most === undefined ? reported.output : output,
      speaks: writes === undefined ? reported.speaks : readArray(writes).includes('audio'),
      responds: type !== 'transcription' && isObject(detects) && detects['create_response'] !== false,
      isCompressed: isG711(format),
      transcriber: transcription === undefined ? reported.transcriber : transcriber,
    };
  }

  /** Adds the client's settings: the more expensive ones count until the vendor reports the actual ones. */
  widen({ max_output_tokens: most, output_modalities: writes, audio }: JsonObject): void {
    const { turn_detection: detects, format, transcription } = readObject(readObject(audio)['input']);
    const { output, transcriber } = this.#wanted;
    const isWider = most !== undefined && (output === undefined || !fits(outputOf(most), output));
    this.#wanted = {
      ...this.#wanted,
      ...(isWider && { output: outputOf(most) }),
      ...(readArray(writes).includes('audio') && { speaks: true }),
      ...(isObject(detects) && { responds: true }),
      ...(isG711(format) && { isCompressed: true }),
      ...(isObject(transcription) && { transcriber: { ...transcriber, ...readTranscriber(transcription) } }),
    };
  }

  /** Records an update that is sent to the vendor. */
  send({ event_id: id, session }: JsonObject): void {
    this.widen(readObject(session));
    this.#unanswered += 1;
    this.#updates.push(typeof id === 'string' && id.length <= MAX_ID ? id : undefined);
    if (this.#updates.length > MAX_UPDATES) this.#updates.shift();
  }

  /** Records that the vendor has applied the oldest update, with the resulting session. */
  update(session: JsonObject): void {
    if (this.#updates.length === this.#unanswered) this.#updates.shift();
    this.#settle();
    this.read(session);
  }

  /** Records that the vendor has rejected the event with this id, which may be an update. */
  refuse(id: string | undefined): void {
    const at = id === undefined ? -1 : this.#updates.indexOf(id);
    if (at === -1) return;
    this.#updates.splice(at, 1);
    this.#settle();
  }

  #settle(): void {
    this.#unanswered = Math.max(0, this.#unanswered - 1);
    if (this.#unanswered === 0) this.#wanted = {};
  }

  /** Output limit of a response that the vendor starts, from the client or the gateway. */
  get most(): number | null {
    return this.output ?? this.#own;
  }

  /**
   * Event that sets this output limit, null for none, in the vendor's session, if its client set none. Undefined if
   * it is already set.
   */
  limitTo(limit: number | null): JsonObject | undefined {
    if (this.output !== null || limit === this.#own) return undefined;
    this.#own = limit;
    const session = { type: 'realtime', max_output_tokens: limit ?? 'inf' };
    return { type: 'session.update', event_id: `event_${randomUUID()}`, session };
  }

  /** Output limit to send for a client's: never more than the reserved amount. */
  limit(named: unknown, isHeld: boolean): unknown {
    if (isHeld && !fits(outputOf(named), this.#own)) return this.#own;
    this.#own = null;
    return named;
  }
}

function isG711(format: unknown): boolean {
  return /^audio\/pcm[ua]$/.test(readString(readObject(format)['type']) ?? '');
}

function readTranscriber({ model, prompt }: JsonObject): Partial<Transcriber> {
  const name = readString(model);
  const text = Math.ceil((readString(prompt)?.length ?? 0) / CHARACTERS_PER_TOKEN);
  return name === undefined ? { text } : { model: name, text };
}

/** Tokens of an output limit; null for the model's maximum, and for values that vendors reject. */
export function outputOf(limit: unknown): number | null {
  return typeof limit === 'number' && limit > 0 && limit <= MAX_LIMIT ? Math.ceil(limit) : null;
}

/** Returns true if a limit is within another one. */
export function fits(output: number | null, most: number | null): boolean {
  return most === null || (output !== null && output <= most);
}

/** Close codes by the status of errors that end a session; other errors are sent to the client without ending it. */
export const CLOSE_CODES: ReadonlyMap<number, number> = new Map([
  [401, 1008],
  [402, 1008],
  [404, 1008],
]);

/** Error in OpenAI's format, with the id of the client's event. */
export function errorEvent({ code, message, param, type }: GatewayError, eventId?: string): JsonObject {
  const error = { type, code, message, param: param ?? null, event_id: eventId ?? null };
  return { type: 'error', event_id: `event_${randomUUID()}`, error };
}

export function invalid(param: string, problem: string): GatewayError {
  return new GatewayError('invalid_request', `\`${param}\` ${problem}.`, { param });
}

/** Rejects effective field names in another case. */
function assertNames(value: unknown): void {
  if (Array.isArray(value)) for (const item of value) assertNames(item);
  if (!isObject(value)) return;
  for (const [name, member] of Object.entries(value)) {
    const plain = name.toUpperCase().toLowerCase();
    if (plain !== name && NAMES.has(plain)) throw invalid(name, `must be spelled \`${plain}\``);
    if (typeof member === 'object' && !FREE.has(name)) assertNames(member);
  }
}
