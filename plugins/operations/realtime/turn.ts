import {
  type Attempt,
  GatewayError,
  type HttpRequest,
  type JsonObject,
  type Metered,
  readObject,
  readString,
  StreamFailure,
  type TransportResponse,
} from '../../../contract/index.ts';
import type { RealtimeResponse } from '../../formats/kit/index.ts';
import { fits } from './events.ts';
import { heldFor, MAX_LIMIT, meterResponse } from './usage.ts';

/** A promise that is resolved from outside. */
export class Deferred<T> {
  resolve: (value: T) => void = () => {};
  readonly promise = new Promise<T>((resolve) => {
    this.resolve = resolve;
  });
}

/** What is told of each event, so that a response that goes on does not fall silent. */
const PULSE = Buffer.from([0]);

/** Works on a call. */
export type Run = (work: Attempt<'realtime'>) => Promise<RealtimeResponse>;

/** How a turn writes to its vendor. */
type Write = (event: JsonObject) => Promise<void>;

/**
 * One response of a session, which is one call: from when what it may cost is held until its usage is known. It is begun by the client's
 * `response.create`, or by the vendor once it has heard enough.
 */
export class Turn {
  /** The tokens that it may write at most; null where nobody named them. */
  readonly output: number | null;
  /** Those that are held for it then; null for as many as the model can write. */
  limit: number | null = null;
  /** What its call is made by. */
  owner: unknown;
  /** The id that the vendor gave the response. */
  responseId: string | undefined;
  /** Resolves when the call was let in: what it may cost is held. */
  readonly admitted = new Deferred<void>();
  /** Resolves when the client's event has gone to the vendor. */
  readonly sent = new Deferred<void>();
  /** Whether the vendor said itself why there is no response. */
  isRefused = false;
  readonly #write: Write;
  readonly #stop = new AbortController();
  #event: JsonObject | undefined;
  #isNamed = false;
  /** Whether it is to go on: false where nothing came of it. */
  readonly #begun = new Deferred<boolean>();
  #wasSent = false;
  #hasWritten = false;
  #done: JsonObject | undefined;
  #broken: Error | undefined;
  #wake: (() => void) | undefined;

  constructor(write: Write, output: number | null, event?: JsonObject) {
    this.#write = write;
    this.output = output;
    if (event) this.take(event, output);
  }

  /** Ends the call of a turn that comes to no end. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /** The id of the client's event that it was begun by. */
  get eventId(): string | undefined {
    return readString(this.#event?.['event_id']);
  }

  /** Whether the client has requested it, and no response was seen. */
  get isRequested(): boolean {
    return this.#event !== undefined && this.responseId === undefined;
  }

  /** Whether what is held is enough for a response of so many tokens. */
  covers(output: number | null): boolean {
    return output === null ? this.output === null : fits(output, this.limit ?? this.output);
  }

  /** Uses it for a client's `response.create`, which may write so many tokens by what it or the session names. */
  take(event: JsonObject, output: number | null): void {
    this.#event = event;
    this.#isNamed = output !== null;
    this.#begun.resolve(true);
  }

  /** The vendor has begun the response. */
  begin(responseId: string): void {
    this.responseId = responseId;
    this.#begun.resolve(true);
    this.#pulse();
  }

  /** An event of the response; `isContent` where it has some of it. */
  note(isContent: boolean): void {
    this.#hasWritten ||= isContent;
    this.#pulse();
  }

  /** The response as `response.done` has it. */
  finish(response: JsonObject): void {
    this.#done = response;
    this.#begun.resolve(true);
    this.#pulse();
  }

  /** The vendor said by an error that there is no response. */
  refuse(): void {
    this.isRefused = true;
    this.finish({ status: 'failed' });
  }

  /** Tells the vendor that nobody wants it any more; one that has not begun is let go. */
  cancel(): void {
    this.release();
    const id = this.responseId === undefined ? {} : { response_id: this.responseId };
    if (this.isRequested || this.responseId !== undefined)
      this.#write({ type: 'response.cancel', ...id }).catch(() => {});
  }

  /** Nothing came of it, and nothing is owed; harmless for one that has begun. */
  release(): void {
    this.#begun.resolve(false);
  }

  /** The vendor is gone: what was begun costs what was held. */
  break(error: Error): void {
    this.#broken = error;
    this.release();
    this.#pulse();
  }

  /** Ends the call whatever it does. */
  abort(): void {
    this.release();
    this.#stop.abort();
  }

  /** Works on the call. */
  async run(work: Attempt<'realtime'>): Promise<RealtimeResponse> {
    if (this.#isSent())
      throw new GatewayError('provider_unavailable', 'The provider broke off in the middle of a response.');
    const { price, meter } = work;
    const { max_tokens: most } = work.request;
    this.limit = this.output === null && most !== null ? Math.min(most, MAX_LIMIT) : null;
    const request = { ...work.request, max_tokens: this.limit ?? most };
    this.admitted.resolve();
    if (!(await this.#begun.promise)) return {};
    try {
      const body = this.#limited(readObject(this.#event?.['response']));
      const response = await work.send({ path: '/realtime', body }, { transport: (sent) => this.#send(sent) });
      await response.readAll();
    } catch (error) {
      if (this.#isSent()) meter(heldFor(request, work));
      throw error;
    }
    const { usage, status, status_details: details } = this.#done ?? {};
    const told = meterResponse(readObject(usage), price);
    const hasFailed = status === 'failed';
    if (told || !hasFailed || this.#hasWritten) meter(told ?? heldFor(request, work));
    const code = readString(readObject(readObject(details)['error'])['code']) ?? 'the response failed';
    if (hasFailed) throw new StreamFailure({ class: 'invalid_request', message: code });
    return {};
  }

  /** What a client's response is to be made of: where it names no limit of output, with what is held for it. */
  #limited(response: JsonObject): JsonObject {
    return this.limit === null || this.#isNamed ? response : { ...response, max_output_tokens: this.limit };
  }

  async #send({ body }: HttpRequest): Promise<TransportResponse> {
    this.#wasSent = true;
    const event = this.#event;
    if (event) await this.#write(Object.keys(readObject(body)).length === 0 ? event : { ...event, response: body });
    this.sent.resolve();
    return { status: 200, headers: {}, body: this.#pulses() };
  }

  async *#pulses(): AsyncGenerator<Uint8Array> {
    while (!this.#done) {
      if (this.#broken) throw this.#broken;
      await new Promise<void>((resolve) => (this.#wake = resolve));
      yield PULSE;
    }
  }

  #isSent(): boolean {
    return this.#wasSent;
  }

  #pulse(): void {
    this.#wake?.();
  }
}

/** Meters a call of which nothing is left to send: the vendor has done the work on the websocket that is open. */
export async function meterUnsent(work: Attempt<'realtime'>, metered: Metered): Promise<RealtimeResponse> {
  const transport = async () => ({ status: 200, headers: {}, body: (async function* () {})() });
  await (await work.send({ path: '/realtime' }, { transport })).readAll();
  work.meter(metered);
  return {};
}

/** Cancels the responses of turns, which may say what they came to within a time, and ends the calls of those that do not. */
export async function endTurns(calls: ReadonlyMap<Turn, Promise<unknown>>, graceMs: number): Promise<void> {
  const turns = [...calls.keys()];
  for (const turn of turns) turn.cancel();
  const timer = setTimeout(() => {
    for (const turn of turns) turn.abort();
  }, graceMs);
  await Promise.allSettled(calls.values());
  clearTimeout(timer);
}
