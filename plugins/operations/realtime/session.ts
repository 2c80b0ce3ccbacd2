import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import type { WebSocket } from 'ws';
import {
  GatewayError,
  type Hold,
  isObject,
  type JsonObject,
  type Log,
  type PluginApi,
  parseJson,
  readArray,
  readObject,
  readString,
  type Target,
  toGatewayError,
  type Upgrade,
} from '../../../contract/index.ts';
import type { RealtimeRequest, RealtimeResponse } from '../../formats/kit/index.ts';
import { assertEvent, CLOSE_CODES, errorEvent, invalid, outputOf, Settings, type Transcriber } from './events.ts';
import { Transcripts } from './transcripts.ts';
import { endTurns, type Run, Turn } from './turn.ts';
import { type Tokens, tokensAfter, tokensOfItem, tokensOfSound } from './usage.ts';

type Api = Pick<PluginApi, 'models'>;

export interface SessionDeps {
  readonly upgrade: Upgrade;
  readonly vendor: NonNullable<RealtimeResponse['socket']>;
  readonly target: Target;
  /** Model name from the client. */
  readonly requested: string;
  readonly log: Log;
  readonly redact: PluginApi['redact'];
  /** API of the current configuration. */
  api(): Api;
  /** Makes a call of this session, which `run` handles. */
  call(
    request: Omit<RealtimeRequest, 'model' | 'ticket'>,
    run: Run,
    signal: AbortSignal,
    target?: Target,
  ): Promise<unknown>;
}

/** Maximum number of buffered bytes for one side before reading the other pauses, and of waiting client events. */
const MAX_BUFFERED = 1024 * 1024;
const MAX_WAITING = 64;
/** Maximum time without reads by one side, and the interval for checking it, in milliseconds. */
const STUCK_MS = 60_000;
const LOOK_MS = 20;
/** Time for a response to report its usage after the client has left. */
const GRACE_MS = 2000;
/** Duration of a reservation for a response while no one speaks; it is then renewed. */
const LISTEN_MS = 240_000;
/** Tokens of speech before the vendor responds: a minute. */
const SPEECH = 600;
/** Field with the transcription model. */
const TRANSCRIPTION_MODEL = 'session.audio.input.transcription.model';
/** Events that end the transcription of an item. */
const TRANSCRIPTION = /^conversation\.item\.input_audio_transcription\.(?:completed|failed)$/;
/** Maximum number of concurrent responses, and of consecutive rejected events before the session ends. */
const MAX_TURNS = 8;
const MAX_REFUSED = 20;

/** Session of one client and its vendor: passes events between them, and charges their cost. */
export class Session {
  /** Time of the last event from either side. */
  lastEventAt = Date.now();
  readonly #deps: SessionDeps;
  readonly #client: WebSocket;
  readonly #calls = new Map<Turn, Promise<unknown>>();
  readonly #transcripts = new Transcripts({
    call: (model, request, run, signal) => {
      const { call, target } = this.#deps;
      const whole = { images: 0, max_tokens: 0, speaks: false, ...request };
      return call(whole, run, signal, { provider: target.provider, model });
    },
    onFailure: (err) => this.#deps.log.error({ err }, 'the cost of a transcription could not be charged'),
  });
  /** Turn that waits for the vendor to start a response by itself. */
  #listening: Turn | undefined;
  #listenUntil: NodeJS.Timeout | undefined;
  /** Input tokens of the model. */
  #tokens: Tokens = { text: 0, audio: 0, images: 0 };
  readonly #settings = new Settings();
  #refused = 0;
  #work: Promise<void> = Promise.resolve();
  #waitingBytes = 0;
  #waitingEvents = 0;
  /** Reason for which no further response is started. */
  #draining: GatewayError | undefined;
  #ending: GatewayError | undefined;
  /** Bytes of an incomplete event. */
  readonly #arriving: Hold;
  #isDisconnected = false;
  #isVendorGone = false;
  #onDone: () => void = () => {};
  /** Resolves when everything has ended and is charged. */
  readonly done = new Promise<void>((resolve) => {
    this.#onDone = resolve;
  });

  constructor(client: WebSocket, deps: SessionDeps) {
    this.#client = client;
    this.#deps = deps;
    const { memory, stream } = deps.upgrade;
    this.#arriving = memory.book();
    stream.prependListener('data', ({ length }: Buffer) => this.#grow(this.#arriving, length));
    client.on('message', (data, isBinary) => this.#take(String(data), isBinary));
    client.once('close', () => void this.#disconnect());
    void this.#listenToVendor();
  }

  /** Ends the session with an error and a reason, which are sent to the client. */
  end(error: GatewayError, code = 1008, reason: string = error.code): void {
    if (this.#ending) return;
    this.#ending = error;
    this.#sendError(error);
    this.#client.close(code, reason);
    setTimeout(() => this.#client.terminate(), GRACE_MS).unref();
  }

  /** Ends the session once no response is running. */
  async drain(error: GatewayError): Promise<void> {
    this.#draining = error;
    this.#listening?.release();
    await Promise.allSettled(this.#calls.values());
    this.end(error, 1001);
  }

  /** Renews the reservations of waiting turns with another configuration. */
  renew(): void {
    this.#listening?.release();
    this.#transcripts.release();
  }

  /** Ends the responses of a configuration that ends. */
  leave(api: Api): Promise<void> {
    return endTurns(new Map([...this.#calls].filter(([turn]) => turn.owner === api)), GRACE_MS);
  }

  /** Handles client events one after the other; reading pauses meanwhile. */
  #take(text: string, isBinary: boolean): void {
    this.lastEventAt = Date.now();
    if (isBinary) this.#client.close(1003, 'text frames only');
    if (isBinary || this.#ending) return;
    this.#arriving.resize(0);
    const hold = this.#deps.upgrade.memory.book();
    if (!this.#grow(hold, text.length)) {
      hold.release();
      return;
    }
    this.#waitingBytes += text.length;
    this.#waitingEvents += 1;
    if (this.#isFull) this.#client.pause();
    this.#work = this.#work
      .then(() => this.#pass(text, (bytes) => hold.grow(bytes)))
      .finally(() => {
        hold.release();
        this.#waitingBytes -= text.length;
        this.#waitingEvents -= 1;
        if (this.#client.isPaused && !this.#isFull) this.#client.resume();
      });
  }

  /** Returns true if reading the client pauses until its events have been passed on. */
  get #isFull(): boolean {
    return this.#waitingBytes > MAX_BUFFERED || this.#waitingEvents > MAX_WAITING;
  }

  /** Reserves memory for received bytes; ends the session if they do not fit. */
  #grow(hold: Hold, bytes: number): boolean {
    try {
      hold.grow(bytes * this.#deps.upgrade.memory.heapPerByte);
      return true;
    } catch (thrown) {
      this.end(toGatewayError(thrown), 1013);
      return false;
    }
  }

  async #pass(text: string, reserve: (bytes: number) => void): Promise<void> {
    if (this.#ending || this.#isDisconnected) return;
    let eventId: string | undefined;
    try {
      const event = await this.#deps.upgrade.memory.parse(text, reserve);
      if (!isObject(event)) throw new GatewayError('invalid_json', 'An event must be a JSON object.');
      eventId = readString(event['event_id']);
      await this.#send(event);
      this.#refused = 0;
    } catch (thrown) {
      this.#refuse(toGatewayError(thrown), eventId);
    }
  }

  async #send(event: JsonObject): Promise<void> {
    const { type } = event;
    assertEvent(event);
    if (type === 'session.update') return this.#write(await this.#update(event));
    if (type === 'response.create') return this.#respond(event);
    if (type === 'conversation.item.create') {
      await this.#check(event);
      this.#add(tokensOfItem(readObject(event['item']), this.#settings.isCompressed));
    } else if (type === 'input_audio_buffer.append') {
      const audio = tokensOfSound(event['audio'], this.#settings.isCompressed);
      await this.#reserveAudio(audio);
      await this.#listen();
      this.#add({ text: 0, audio, images: 0 });
    } else if (type === 'input_audio_buffer.clear') this.#transcripts.clear();
    return this.#write(event);
  }

  /** Session update for the vendor; the model cannot change. */
  async #update(event: JsonObject): Promise<JsonObject> {
    const { model, ...session } = readObject(event['session']);
    const { requested, target } = this.#deps;
    if (model !== undefined && model !== requested && model !== target.model)
      throw invalid('session.model', `cannot change from "${requested}"; open a new websocket for another model`);
    if ((session['type'] ?? 'realtime') !== 'realtime')
      throw invalid('session.type', 'must be "realtime"; other sessions are not supported');
    await this.#check(session);
    this.#assertTranscriber(session);
    this.#settings.widen(session);
    this.#add(tokensOfItem(session, this.#settings.isCompressed));
    const { max_output_tokens: most, output_modalities: writes } = session;
    if ((most ?? writes) !== undefined) await this.#renewListening();
    const update = { event_id: `event_${randomUUID()}`, ...event };
    if (most === undefined) return { ...update, session };
    const limit = this.#settings.limit(most, this.#listening !== undefined);
    return { ...update, session: { ...session, max_output_tokens: limit } };
  }

  /** Rejects an unknown transcription model of the provider: its cost could not be reserved. */
  #assertTranscriber({ audio }: JsonObject): void {
    const model = readString(readObject(readObject(readObject(audio)['input'])['transcription'])['model']);
    const { api, target } = this.#deps;
    const { catalog } = api().models;
    if (model === undefined || catalog.find(target.provider, model)) return;
    const near = catalog.suggest(target.provider, model).map((name) => `"${name}"`);
    const hint = near.length === 0 ? '' : `; did you mean ${near.join(', ')}`;
    throw invalid(TRANSCRIPTION_MODEL, `must be a model of "${target.provider}"${hint}`);
  }

  /** Starts the call of a client's `response.create`, or continues that of the waiting turn. */
  async #respond(event: JsonObject): Promise<void> {
    if (this.#draining) throw this.#draining;
    const { max_output_tokens: named, output_modalities: writes, ...response } = readObject(event['response']);
    await this.#check(response);
    const output = named === undefined ? this.#settings.output : outputOf(named);
    const own = { event_id: `event_${randomUUID()}`, ...event };
    const listening = this.#listening;
    const extra = tokensOfItem(response, this.#settings.isCompressed);
    if (listening?.covers(output) && !response['input']) {
      this.#stopListening();
      listening.take(own, output);
      await Promise.race([listening.sent.promise, this.#calls.get(listening)]);
      return;
    }
    listening?.release();
    this.#stopListening();
    if (this.#calls.size >= MAX_TURNS)
      throw new GatewayError(
        'rate_limited',
        `Limit of ${MAX_TURNS} running responses per websocket reached. Wait for one to end.`,
        {
          retryAfterMs: 1000,
        },
      );
    const speaks = writes === undefined ? this.#settings.speaks : readArray(writes).includes('audio');
    const turn = new Turn((each) => this.#write(each), output, own);
    const call = this.#begin(turn, 'response', extra, speaks);
    await Promise.race([turn.sent.promise, call]);
  }

  /**
   * Reserves the cost of transcribing audio, if the session transcribes. If a limit rejects it (429), the waiting
   * turn's reservation is released first.
   */
  async #reserveAudio(tokens: number): Promise<void> {
    const transcriber = this.#transcriber();
    if (!transcriber) return;
    try {
      await this.#transcripts.hear(transcriber, tokens).catch(async (thrown: unknown) => {
        const listening = this.#listening;
        if (!listening || toGatewayError(thrown).status !== 429) throw thrown;
        this.#stopListening();
        listening.release();
        await Promise.allSettled([this.#calls.get(listening)]);
        return this.#transcripts.hear(transcriber, tokens);
      });
    } catch (thrown) {
      this.#endUnreserved(thrown);
    }
  }

  #transcriber(): Transcriber | undefined {
    const { transcriber } = this.#settings;
    return transcriber && { model: this.#deps.target.model, text: 0, ...transcriber };
  }

  /** Ends the session if the cost of audio cannot be reserved: the audio is not passed on. */
  #endUnreserved(thrown: unknown): never {
    const error = toGatewayError(thrown);
    this.end(error, error.status === 429 || error.status >= 500 ? 1013 : 1008);
    throw thrown;
  }

  /** Reserves the cost of a response that the vendor starts by itself after enough speech. */
  async #listen(): Promise<void> {
    if (!this.#settings.responds || this.#listening || this.#calls.size > 0) return;
    if (this.#draining) throw this.#draining;
    const turn = new Turn((each) => this.#write(each), this.#settings.output);
    const call = this.#begin(turn, 'response', { text: 0, audio: SPEECH, images: 0 }, this.#settings.speaks);
    this.#listening = turn;
    try {
      await Promise.race([turn.admitted.promise, call]);
    } catch (thrown) {
      this.#endUnreserved(thrown);
    }
    this.#listenUntil = setTimeout(() => {
      turn.release();
      if (this.#listening === turn) this.#stopListening();
    }, LISTEN_MS).unref();
    const update = this.#settings.limitTo(turn.limit);
    if (update) await this.#write(update);
  }

  /** Renews the reservation of a vendor-started response whose cost may change. */
  async #renewListening(): Promise<void> {
    const listening = this.#listening;
    if (!listening) return;
    this.#stopListening();
    listening.release();
    await Promise.allSettled([this.#calls.get(listening)]);
    await this.#listen();
  }

  /** Releases the reservation for responses that the vendor no longer starts. */
  #releaseIfUnused(): void {
    if (!this.#settings.responds) this.#listening?.release();
  }

  #stopListening(): void {
    clearTimeout(this.#listenUntil);
    this.#listening = undefined;
  }

  /**
   * Starts the call of a turn. A revoked key starts none, but is charged for a response that the vendor has started.
   */
  #begin(turn: Turn, kind: 'response' | 'begun', more: Tokens, speaks: boolean): Promise<unknown> {
    const { upgrade, call, api } = this.#deps;
    const { text, audio, images } = this.#tokens;
    const most = { text: text + more.text, audio: audio + more.audio, images: images + more.images };
    const checked = kind === 'begun' ? Promise.resolve() : upgrade.recheck();
    const begun = checked.then(() => {
      turn.owner = api();
      return call({ kind, ...most, max_tokens: turn.output, speaks }, (work) => turn.run(work), turn.signal);
    });
    this.#calls.set(turn, begun);
    const end = (): void => {
      this.#calls.delete(turn);
      if (this.#listening === turn) this.#stopListening();
    };
    begun.then(end, (thrown: unknown) => {
      end();
      // Whoever waits for the turn reports an error before it was sent.
      if (turn.responseId !== undefined && !this.#ending && !turn.isRefused) this.#notice(toGatewayError(thrown));
    });
    return begun;
  }

  /**
   * Handles an error of a started response: the vendor reports its own failures, but errors of money or key end the
   * session.
   */
  #notice(error: GatewayError): void {
    const code = CLOSE_CODES.get(error.status);
    if (code === undefined) return;
    void this.#deps.vendor.send?.(JSON.stringify({ type: 'response.cancel' })).catch(() => {});
    this.end(error, code);
  }

  async #listenToVendor(): Promise<void> {
    let broken: unknown;
    try {
      for await (const frame of this.#deps.vendor.body) {
        this.lastEventAt = Date.now();
        await this.#receive(Buffer.from(frame).toString('utf8'));
      }
    } catch (thrown) {
      broken = thrown;
    }
    const error = new GatewayError('provider_unavailable', 'The provider closed the websocket. Open a new one.', {
      cause: broken,
    });
    this.#isVendorGone = true;
    for (const turn of this.#calls.keys()) turn.break(error);
    void this.#transcripts.leave(0);
    if (this.#isDisconnected) return;
    this.#deps.log.warn({ err: broken }, 'a provider closed a realtime websocket');
    this.end(error, 1011);
  }

  async #receive(text: string): Promise<void> {
    const event = parseJson(text);
    if (!isObject(event)) throw new TypeError('an event that is not a JSON object');
    const shown = this.#handleEvent(event) ?? text;
    if (this.#client.readyState !== this.#client.OPEN) return;
    this.#client.send(shown);
    await this.#drained();
  }

  /** Handles a vendor event; returns the text to pass on if it differs. */
  #handleEvent(event: JsonObject): string | undefined {
    const type = readString(event['type']) ?? '';
    if (type === 'session.created') this.#settings.read(readObject(event['session']));
    else if (type === 'session.updated') {
      this.#settings.update(readObject(event['session']));
      this.#releaseIfUnused();
    } else if (type === 'response.created') this.#match(readString(readObject(event['response'])['id']) ?? '');
    else if (type === 'response.done') this.#finish(readObject(event['response']));
    else if (TRANSCRIPTION.test(type)) this.#transcribed(type, event);
    else if (type === 'input_audio_buffer.committed') this.#committed(event);
    else if (type === 'error') return this.#failed(event);
    else if (type.startsWith('response.')) {
      const id = event['response_id'];
      for (const turn of this.#calls.keys()) if (turn.responseId === id) turn.note(type.endsWith('.delta'));
    }
    return undefined;
  }

  /**
   * Assigns a response to a turn: the first one that the client requested, otherwise the waiting one, otherwise a new
   * turn that is charged afterwards.
   */
  #match(id: string): void {
    const requested = [...this.#calls.keys()].find((turn) => turn.isRequested);
    const listening = this.#listening;
    const turn = requested ?? listening ?? new Turn((each) => this.#write(each), this.#settings.most);
    if (turn === listening) this.#stopListening();
    turn.begin(id);
    if (!this.#calls.has(turn))
      this.#begin(turn, 'begun', { text: 0, audio: 0, images: 0 }, this.#settings.speaks).catch(() => {});
  }

  #finish(response: JsonObject): void {
    const { id, usage, conversation_id: conversation } = response;
    if (conversation !== null) this.#tokens = tokensAfter(readObject(usage)) ?? this.#tokens;
    for (const turn of this.#calls.keys()) if (turn.responseId === id) turn.finish(response);
  }

  /** Vendor's error without details that are not for the caller; an error about a `response.create` ends its turn. */
  #failed(event: JsonObject): string {
    const error = readObject(event['error']);
    const about = readString(error['event_id']);
    const turn = [...this.#calls.keys()].find(
      (each) => about !== undefined && each.eventId === about && each.isRequested,
    );
    turn?.refuse();
    this.#settings.refuse(about);
    this.#releaseIfUnused();
    return this.#deps.redact(JSON.stringify(event));
  }

  /** Records the transcription of an item by a separate model, or its failure. */
  #transcribed(type: string, { item_id: id, usage }: JsonObject): void {
    const item = readString(id) ?? '';
    const transcriber = this.#transcriber() ?? { model: this.#deps.target.model, text: 0 };
    if (type.endsWith('.failed')) this.#transcripts.fail(item);
    else this.#transcripts.complete(transcriber, item, readObject(usage));
  }

  /** Records that the audio so far has become an item; without a transcription, it costs nothing. */
  #committed({ item_id: id }: JsonObject): void {
    if (this.#settings.transcribes) this.#transcripts.commit(readString(id) ?? '');
    else this.#transcripts.clear();
  }

  /** Checks that the caller is allowed the effects of a body at the vendor. */
  async #check(body: JsonObject): Promise<void> {
    const { api, target, upgrade } = this.#deps;
    await api().models.checkEffects('realtime', target, body, upgrade.principal);
  }

  #add({ text, audio, images }: Tokens): void {
    this.#tokens.text += text;
    this.#tokens.audio += audio;
    this.#tokens.images += images;
  }

  /** Waits until the vendor has accepted an event; a vendor that accepts none ends the session. */
  async #write(event: JsonObject): Promise<void> {
    if (event['type'] === 'session.update') this.#settings.send(event);
    const stuck = new GatewayError('provider_unavailable', 'The provider does not accept more events.');
    const timer = setTimeout(() => this.end(stuck, 1011), STUCK_MS).unref();
    try {
      await this.#deps.vendor.send?.(JSON.stringify(event));
    } finally {
      clearTimeout(timer);
    }
  }

  /** Waits while the client reads more slowly than it is sent; a client that reads nothing ends the session. */
  async #drained(): Promise<void> {
    const until = performance.now() + STUCK_MS;
    while (this.#client.bufferedAmount > MAX_BUFFERED && this.#client.readyState === this.#client.OPEN) {
      if (performance.now() > until) return this.#client.terminate();
      await pause(LOOK_MS);
    }
  }

  /** Sends the client an error; errors of money or key end the session. */
  #refuse(error: GatewayError, eventId?: string): void {
    if (this.#ending || this.#isDisconnected) return;
    const code = CLOSE_CODES.get(error.status);
    this.#refused += 1;
    if (code !== undefined) this.end(error, code);
    else if (this.#refused >= MAX_REFUSED) this.end(error, 1008, 'too many rejected events');
    else this.#sendError(error, eventId);
  }

  #sendError(error: GatewayError, eventId?: string): void {
    if (this.#client.readyState !== this.#client.OPEN) return;
    this.#client.send(JSON.stringify(errorEvent(error, eventId)));
  }

  /**
   * The client has left. Running responses are cancelled, and may still report their usage; then the vendor's
   * connection is closed.
   */
  async #disconnect(): Promise<void> {
    this.#isDisconnected = true;
    const { vendor } = this.#deps;
    this.#listening?.release();
    this.#stopListening();
    await Promise.all([endTurns(this.#calls, GRACE_MS), this.#transcripts.leave(this.#isVendorGone ? 0 : GRACE_MS)]);
    this.#arriving.release();
    vendor.destroy();
    this.#onDone();
  }
}
