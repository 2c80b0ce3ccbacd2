import { randomUUID } from 'node:crypto';
import { GatewayError, isObject, type JsonObject, readArray, readObject, readString } from '../../../contract/index.ts';
import { CHARACTERS_PER_TOKEN, MAX_LIMIT } from './usage.ts';

/** The model of a session that transcribes the caller's sound, and the tokens of its prompt. */
export interface Transcriber {
  readonly model: string;
  readonly text: number;
}

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

/** What of a session decides what it may cost. */
interface State {
  readonly output: number | null;
  /** Whether responses are spoken, and whether the vendor begins them by itself. */
  readonly speaks: boolean;
  readonly responds: boolean;
  /** Whether sound comes in as G.711. */
  readonly isCompressed: boolean;
  /** The model that transcribes the caller's sound; undefined where none does. Its name is missing where nobody has named it. */
  readonly transcriber: Partial<Transcriber> | undefined;
}

/** Updates whose ids are kept until the vendor answers them, and the longest id that is kept. */
const MAX_UPDATES = 64;
const MAX_ID = 512;

/**
 * What of a session decides what it may cost: what the vendor said last, and, until it has answered all updates, what they want where that
 * is dearer.
 */
export class Settings {
  /** At first what a vendor does by itself. */
  #told: State = { output: null, speaks: true, responds: true, isCompressed: false, transcriber: undefined };
  #wanted: Partial<State> = {};
  /** Updates without an answer, and the ids of their events, the oldest first. */
  #unanswered = 0;
  readonly #updates: (string | undefined)[] = [];
  /** The limit of output that the vendor's session has from here, where its client named none. */
  #own: number | null = null;

  get output(): number | null {
    const { output } = this.#wanted;
    return output === undefined || fits(output, this.#told.output) ? this.#told.output : output;
  }

  get speaks(): boolean {
    return this.#wanted.speaks ?? this.#told.speaks;
  }

  get responds(): boolean {
    return this.#wanted.responds ?? this.#told.responds;
  }

  get isCompressed(): boolean {
    return this.#wanted.isCompressed ?? this.#told.isCompressed;
  }

  get transcriber(): Partial<Transcriber> | undefined {
    const { transcriber } = this.#wanted;
    return transcriber ? { ...this.#told.transcriber, ...transcriber } : this.#told.transcriber;
  }

  /** Whether the vendor transcribes what it commits now. */
  get transcribes(): boolean {
    return this.#told.transcriber !== undefined;
  }

  /** As the vendor says that it is. */
  read({ type, max_output_tokens: most, output_modalities: writes, audio }: JsonObject): void {
    const { turn_detection: detects, format, transcription } = readObject(readObject(audio)['input']);
    const told = this.#told;
    const output = outputOf(most) === this.#own ? null : outputOf(most);
    const transcriber = isObject(transcription) ? readTranscriber(transcription) : undefined;
    this.#told = {
      output: most === undefined ? told.output : output,
      speaks: writes === undefined ? told.speaks : readArray(writes).includes('audio'),
      responds: type !== 'transcription' && isObject(detects) && detects['create_response'] !== false,
      isCompressed: isG711(format),
      transcriber: transcription === undefined ? told.transcriber : transcriber,
    };
  }

  /** As a client wants it: until the vendor says what is, the dearer one holds. */
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

  /** An update goes to the vendor. */
  send({ event_id: id, session }: JsonObject): void {
    this.widen(readObject(session));
    this.#unanswered += 1;
    this.#updates.push(typeof id === 'string' && id.length <= MAX_ID ? id : undefined);
    if (this.#updates.length > MAX_UPDATES) this.#updates.shift();
  }

  /** The vendor has done the oldest update, and says how its session is now. */
  update(session: JsonObject): void {
    if (this.#updates.length === this.#unanswered) this.#updates.shift();
    this.#settle();
    this.read(session);
  }

  /** The vendor has refused the event with this id, which may be an update. */
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

  /** The most that a response may write which the vendor begins, whoever set it. */
  get most(): number | null {
    return this.output ?? this.#own;
  }

  /** What makes the vendor's session have this limit of output, null for none, where its client named none; undefined where it has. */
  limitTo(limit: number | null): JsonObject | undefined {
    if (this.output !== null || limit === this.#own) return undefined;
    this.#own = limit;
    const session = { type: 'realtime', max_output_tokens: limit ?? 'inf' };
    return { type: 'session.update', event_id: `event_${randomUUID()}`, session };
  }

  /** What a client's limit of output is sent as: while that much is held and no more, no more. */
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
