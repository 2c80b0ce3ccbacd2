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

/** Promise that is resolved from outside. */
export class Deferred<T> {
  resolve: (value: T) => void = () => {};
  readonly promise = new Promise<T>((resolve) => {
    this.resolve = resolve;
  });
}

/** Sent to the attempt for each event, so that a running response is not considered stalled. */
const PULSE = Buffer.from([0]);

/** Work on a call. */
export type Run = (work: Attempt<'realtime'>) => Promise<RealtimeResponse>;

/** Sends an event to the turn's vendor. */
type Write = (event: JsonObject) => Promise<void>;

/**
 * Response of a session, which is one call: from the reservation of its cost until its usage is known. It is started
 * by the client's `response.create`, or by the vendor after enough speech.
 */
export class Turn {
  /** Output token limit; null if none was set. */
  readonly output: number | null;
  /** Output tokens reserved for it in that case; null for the model's maximum. */
  limit: number | null = null;
  /** API of the configuration that makes its call. */
  owner: unknown;
  /** Vendor's id of the response. */
  responseId: string | undefined;
  /** Resolves when the call was admitted: its cost is reserved. */
  readonly admitted = new Deferred<void>();
  /** Resolves when the client's event was sent to the vendor. */
  readonly sent = new Deferred<void>();
  /** True if the vendor itself reported why there is no response. */
  isRefused = false;
  readonly #write: Write;
  readonly #stop = new AbortController();
  #event: JsonObject | undefined;
  #isNamed = false;
  /** Resolves with true if the turn continues, with false if it is discarded. */
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

  /** Aborts the call of a turn that does not end. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /** Id of the client's event that started it. */
  get eventId(): string | undefined {
    return readString(this.#event?.['event_id']);
  }

  /** True if the client has requested it, and no response has arrived yet. */
  get isRequested(): boolean {
    return this.#event !== undefined && this.responseId === undefined;
  }

  /** Returns true if the reservation covers a response of this many tokens. */
  covers(output: number | null): boolean {
    return output === null ? this.output === null : fits(output, this.limit ?? this.output);
  }

  /** Assigns a client's `response.create`, with the output limit of the event or the session. */
  take(event: JsonObject, output: number | null): void {
    this.#event = event;
    this.#isNamed = output !== null;
    this.#begun.resolve(true);
  }

  /** Records that the vendor has started the response. */
  begin(responseId: string): void {
    this.responseId = responseId;
    this.#begun.resolve(true);
    this.#pulse();
  }

  /** Records an event of the response; `isContent` is true if it contains content. */
  note(isContent: boolean): void {
    this.#hasWritten ||= isContent;
    this.#pulse();
  }

  /** Records the response of `response.done`. */
  finish(response: JsonObject): void {
    this.#done = response;
    this.#begun.resolve(true);
    this.#pulse();
  }

  /** Records that the vendor reported an error in place of a response. */
  refuse(): void {
    this.isRefused = true;
    this.finish({ status: 'failed' });
  }

  /** Cancels the response at the vendor; a turn that has not started is released. */
  cancel(): void {
    this.release();
    const id = this.responseId === undefined ? {} : { response_id: this.responseId };
    if (this.isRequested || this.responseId !== undefined)
      this.#write({ type: 'response.cancel', ...id }).catch(() => {});
  }

  /** Releases an unused turn without charge; no effect on a started one. */
  release(): void {
    this.#begun.resolve(false);
  }

  /** Records that the vendor is gone: a started response costs the reserved amount. */
  break(error: Error): void {
    this.#broken = error;
    this.release();
    this.#pulse();
  }

  /** Ends the call in any state. */
  abort(): void {
    this.release();
    this.#stop.abort();
  }

  /** Handles the call. */
  async run(work: Attempt<'realtime'>): Promise<RealtimeResponse> {
    if (this.#isSent()) throw new GatewayError('provider_unavailable', 'The provider interrupted the response.');
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
    const reported = meterResponse(readObject(usage), price);
    const hasFailed = status === 'failed';
    if (reported || !hasFailed || this.#hasWritten) meter(reported ?? heldFor(request, work));
    const code = readString(readObject(readObject(details)['error'])['code']) ?? 'the response failed';
    if (hasFailed) throw new StreamFailure({ class: 'invalid_request', message: code });
    return {};
  }

  /** Client's response options, with the reserved output limit if they set none. */
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

/** Meters a call that sends nothing further: the vendor did the work on the open websocket. */
export async function meterUnsent(work: Attempt<'realtime'>, metered: Metered): Promise<RealtimeResponse> {
  const transport = async () => ({ status: 200, headers: {}, body: (async function* () {})() });
  await (await work.send({ path: '/realtime' }, { transport })).readAll();
  work.meter(metered);
  return {};
}

/**
 * Cancels the responses of turns, which may report their usage within a time limit, and aborts the calls of the
 * others.
 */
export async function endTurns(calls: ReadonlyMap<Turn, Promise<unknown>>, graceMs: number): Promise<void> {
  const turns = [...calls.keys()];
  for (const turn of turns) turn.cancel();
  const timer = setTimeout(() => {
    for (const turn of turns) turn.abort();
  }, graceMs);
  await Promise.allSettled(calls.values());
  clearTimeout(timer);
}
