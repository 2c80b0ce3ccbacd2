import { randomUUID } from 'node:crypto';
import { createRequire } from 'node:module';
import type { WebSocket } from 'ws';
import {
  type ApiOfKind,
  type Call,
  definePlugin,
  formatUsd,
  GatewayError,
  isObject,
  type PluginApi,
  parseDuration,
  parseSize,
  type Schema,
  StreamFailure,
  toGatewayError,
  type Upgrade,
} from '../../../contract/index.ts';
import type { RealtimeRequest, RealtimeResponse } from '../../formats/kit/index.ts';
import { invalid } from './events.ts';
import { Session } from './session.ts';
import type { Run } from './turn.ts';
import { estimateRealtime } from './usage.ts';

const require = createRequire(import.meta.url);

/** Loads the library with the first websocket. */
function loadWs(): typeof import('ws') {
  return require('ws') as typeof import('ws');
}

const PATH = '/v1/realtime';

/** Prefix of the subprotocol in which a web page sends its key, as OpenAI's SDK for browsers does. */
const KEY_PROTOCOL = 'openai-insecure-api-key.';

/** Maximum number of websockets, and the interval for checking open ones, in milliseconds. */
const LIMITS = Object.freeze({ perKey: 16, perUser: 64, perProcess: 2000, lookMs: 5000, looksPerPing: 6 });

const count = { type: 'integer', minimum: 0 } as const;

const REQUEST: Schema & { readonly $id: string } = Object.freeze({
  $id: 'tollgate:RealtimeRequest',
  type: 'object',
  required: ['model', 'kind', 'ticket', 'text', 'audio', 'images', 'max_tokens', 'speaks'],
  properties: {
    model: { type: 'string', minLength: 1, maxLength: 256 },
    kind: { enum: ['open', 'response', 'begun', 'transcription', 'transcribed'] },
    ticket: { type: 'string' },
    text: count,
    audio: count,
    images: count,
    max_tokens: { type: ['integer', 'null'], minimum: 0 },
    speaks: { type: 'boolean' },
  },
});

/**
 * Speech and text in both directions by OpenAI's realtime websocket. Each response is a call, reserved before it
 * begins and charged by its usage.
 */
export default definePlugin({
  name: 'realtime',
  kind: 'operation',
  apiVersion: 1,
  configSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      maxDuration: {
        type: 'string',
        format: 'duration',
        default: '60m',
        description: 'Maximum age of a websocket. OpenAI closes its own after 60 minutes.',
      },
      idleTimeout: {
        type: 'string',
        format: 'duration',
        default: '10m',
        description: 'Time without messages from either side after which a websocket is closed.',
      },
      maxEventSize: {
        type: ['string', 'integer'],
        format: 'size',
        default: '16mb',
        description: 'Maximum size of an event from either side; `server.bodyLimit` applies if it is lower.',
      },
    },
  },
  setup(api, config) {
    const bounds: Bounds = {
      maxMs: parseDuration(config.maxDuration),
      idleMs: parseDuration(config.idleTimeout),
      maxBytes: parseSize(config.maxEventSize),
    };
    const sessions = api.keep(
      'sessions',
      () => new Sessions(),
      (kept) => kept.close(),
    );
    api.operation({
      name: 'realtime',
      request: REQUEST,
      texts: {
        request: [],
        response: [],
        unseen: {
          sides: ['request', 'response'],
          what: 'a realtime websocket',
          instead: 'Use /v1/chat/completions.',
        },
      },
      estimate: estimateRealtime,
      attempt: (work) => sessions.run(work),
      isResponse: (value): value is RealtimeResponse => isObject(value),
    });
    api.upgrade(PATH, (upgrade) => sessions.open(api, bounds, upgrade), { keyProtocol: KEY_PROTOCOL });
    addRoutes(api);
    api.onReady(() => sessions.serve(api));
    api.onClose(() => sessions.leave(api));
  },
});

/** Routes for requests without a websocket, with an error that names the alternative. */
function addRoutes(api: ApiOfKind['operation']): void {
  api.route({
    method: 'GET',
    path: PATH,
    auth: ['key'],
    summary: 'Realtime by websocket; the model is `provider/model` or an alias',
    description:
      'OpenAI’s realtime websocket: `GET /v1/realtime?model=…` with `upgrade: websocket`, and events as text frames. A request without the upgrade returns 426.',
    query: { type: 'object', properties: { model: { type: 'string' } }, additionalProperties: true },
    responses: { 101: 'The websocket.' },
    handler() {
      throw new GatewayError('upgrade_required', `${PATH} is a websocket. Send "upgrade: websocket".`, {
        headers: { upgrade: 'websocket' },
      });
    },
  });
  const noKeys = 'Session keys are not supported. Use an API key of this gateway with a budget and an expiry.';
  for (const [path, what] of [
    ['client_secrets', noKeys],
    ['calls', 'Realtime by WebRTC is not supported.'],
    ['sessions', noKeys],
  ] as const)
    api.route({
      method: 'POST',
      path: `${PATH}/${path}`,
      auth: ['key'],
      summary: 'Not supported; the error names the alternative',
      description: what,
      responses: { 404: `${what} Use the websocket.` },
      errorNote: () => `${what} Open the websocket at ${PATH}?model=….`,
      handler() {
        throw new GatewayError('not_found', `${PATH}/${path} is not supported.`);
      },
    });
}

interface Bounds {
  readonly maxMs: number;
  readonly idleMs: number;
  readonly maxBytes: number;
}

type OwnApi = ApiOfKind['operation'];

/** Websocket that is open or opening. */
interface Entry {
  readonly upgrade: Upgrade;
  readonly key: string;
  readonly bounds: Bounds;
  readonly endsAt: number;
  session?: Session;
  socket?: WebSocket;
  looks: number;
  isAlive: boolean;
}

/** Websockets of this process; they survive a reload. */
class Sessions {
  /** APIs of active configurations, latest last. */
  readonly #apis: OwnApi[] = [];
  readonly #open = new Set<Entry>();
  /** Work of the calls in progress, by ticket. */
  readonly #runs = new Map<string, Run>();
  readonly #timer = setInterval(() => this.#checkSessions(), LIMITS.lookMs).unref();

  serve(api: OwnApi): void {
    this.#apis.push(api);
    for (const session of this.#sessions()) session.renew();
  }

  /** Ends the work of a configuration that ends. */
  async leave(api: OwnApi): Promise<void> {
    const at = this.#apis.indexOf(api);
    if (at === -1) return;
    this.#apis.splice(at, 1);
    await Promise.all(this.#sessions().map((session) => session.leave(api)));
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    const off = new GatewayError('upgrade_required', 'Realtime is disabled on this gateway.');
    const sessions = this.#sessions();
    for (const session of sessions) session.end(off, 1012, 'realtime is disabled');
    await Promise.all(sessions.map(({ done }) => done));
  }

  #sessions(): readonly Session[] {
    return [...this.#open].flatMap(({ session }) => session ?? []);
  }

  run: Run = (work) => {
    const run = this.#runs.get(work.request.ticket);
    if (!run) throw new GatewayError('provider_unavailable', 'The realtime websocket of this call is closed.');
    return run(work);
  };

  /** Opens a websocket at the vendor, then that of the client. Throws the errors of a chat by this caller. */
  async open(api: OwnApi, bounds: Bounds, upgrade: Upgrade): Promise<void> {
    const { request, stream, head, principal, signal } = upgrade;
    const model = readModel(request.url);
    assertServed(api, model);
    const entry: Entry = {
      upgrade,
      key: principal.keyId ?? principal.userId,
      bounds,
      looks: 0,
      isAlive: true,
      endsAt: Date.now() + bounds.maxMs,
    };
    this.#assertRoom(entry);
    const requestId = `req_${randomUUID()}`;
    const hungUp = new AbortController();
    this.#open.add(entry);
    stream.once('close', () => {
      if (entry.session) return;
      hungUp.abort();
      this.#open.delete(entry);
    });
    const maxBytes = Math.min(bounds.maxBytes, upgrade.maxBytes);
    const opening: Run = async (work) => {
      const { target, offer, meter } = work;
      const websocket = { maxMessageBytes: maxBytes, totalMs: bounds.maxMs + LIMITS.lookMs };
      const response = await work.send({ path: offer.path(target.model) }, { websocket });
      meter({ units: {}, cost: 0 });
      if (response.send) return { socket: response, target };
      response.destroy();
      throw new StreamFailure({ class: 'upstream_error', message: 'did not open a websocket' });
    };
    const nothing = { text: 0, audio: 0, images: 0, max_tokens: 0, speaks: false };
    try {
      const opened = await this.#call(
        api,
        { upgrade, requestId, signal: hungUp.signal },
        { model, kind: 'open', ...nothing },
        opening,
      );
      const { socket: vendor, target } = opened.response;
      if (!vendor || !target)
        throw new GatewayError('internal_error', 'A plugin hook replaced the provider’s websocket.');
      const acceptor = new (loadWs().WebSocketServer)({
        noServer: true,
        perMessageDeflate: false,
        maxPayload: maxBytes,
        maxFragments: 4096,
        handleProtocols: (offered) => (offered.has('realtime') ? 'realtime' : false),
      });
      acceptor.handleUpgrade(request, stream, head, (socket) => {
        const log = api.log.child({ request_id: requestId });
        const session = new Session(socket, {
          upgrade,
          vendor,
          target,
          requested: model,
          log,
          redact: api.redact,
          api: () => this.#current(),
          call: (wanted, run, stop, other) => {
            const own = { upgrade, requestId: `req_${randomUUID()}`, signal: stop };
            const to = { targets: [other ?? target], ...(other === undefined && { requested: model }) };
            const sent = { ...wanted, model: (other ?? target).model };
            return this.#call(this.#current(), { ...own, ...to }, sent, run);
          },
        });
        this.#watch(entry, socket, session, log);
        const drain = (): void => void session.drain(toGatewayError(signal.reason));
        signal.addEventListener('abort', drain, { once: true });
        socket.once('close', () => signal.removeEventListener('abort', drain));
        if (signal.aborted) drain();
      });
      // A client that disconnected, or sent an invalid handshake, leaves no session.
      if (!entry.session) {
        vendor.destroy();
        this.#open.delete(entry);
      }
    } catch (thrown) {
      this.#open.delete(entry);
      throw thrown;
    }
  }

  #watch(entry: Entry, socket: WebSocket, session: Session, log: OwnApi['log']): void {
    const { address: ip } = entry.upgrade;
    Object.assign(entry, { socket, session });
    log.info({ path: PATH, ip, key: entry.key }, 'websocket opened');
    const note = (): void => {
      entry.isAlive = true;
    };
    socket.on('pong', note).on('message', note);
    // For an invalid frame, the library itself closes with the right code.
    socket.on('error', () => {});
    socket.once('close', (code) => log.info({ path: PATH, ip, key: entry.key, code }, 'websocket closed'));
    void session.done.then(() => this.#open.delete(entry));
  }

  async #call(
    api: OwnApi,
    {
      upgrade,
      ...context
    }: Pick<Parameters<PluginApi['models']['call']>[2], 'requestId' | 'signal' | 'targets' | 'requested'> & {
      readonly upgrade: Upgrade;
    },
    request: Omit<RealtimeRequest, 'ticket'>,
    run: Run,
  ) {
    const ticket = randomUUID();
    const isUnlimited = request.kind !== 'open' && request.kind !== 'response';
    this.#runs.set(ticket, run);
    try {
      return await api.models.call(
        'realtime',
        { ...request, ticket },
        {
          principal: upgrade.principal,
          onOutcome: logOutcome(api.log),
          ...context,
          ...(isUnlimited && { skip: ['rpm', 'concurrency'] as const }),
        },
      );
    } finally {
      this.#runs.delete(ticket);
    }
  }

  #current(): OwnApi {
    const api = this.#apis.at(-1);
    if (!api) throw new GatewayError('shutting_down', 'The gateway is shutting down.');
    return api;
  }

  #assertRoom({ key, upgrade }: Entry): void {
    const { perKey, perUser, perProcess } = LIMITS;
    const all = [...this.#open];
    const retryAfterMs = 5000;
    if (all.filter((each) => each.key === key).length >= perKey)
      throw new GatewayError(
        'rate_limited',
        `Limit of ${perKey} realtime websockets per key reached. Close one or reuse it.`,
        {
          retryAfterMs,
        },
      );
    const { userId } = upgrade.principal;
    if (all.filter((each) => each.upgrade.principal.userId === userId).length >= perUser)
      throw new GatewayError(
        'rate_limited',
        `Limit of ${perUser} realtime websockets per user reached. Close one or reuse it.`,
        {
          retryAfterMs,
        },
      );
    if (all.length >= perProcess)
      throw new GatewayError('overloaded', 'Websocket limit of the gateway reached. Try again later.', {
        retryAfterMs,
      });
  }

  /** Ends sessions that are too old, silent, or whose key is no longer valid. */
  #checkSessions(): void {
    const now = Date.now();
    for (const entry of this.#open) {
      const { session, socket, bounds, endsAt, upgrade } = entry;
      if (!session || !socket) continue;
      entry.looks += 1;
      if (now > endsAt)
        session.end(expired('session_expired: this websocket reached its maximum age.'), 1000, 'maximum age reached');
      else if (now - session.lastEventAt > bounds.idleMs)
        session.end(expired('The websocket was idle for too long.'), 1000, 'idle');
      else if (entry.looks % LIMITS.looksPerPing === 0) {
        if (!entry.isAlive && !socket.isPaused) socket.terminate();
        entry.isAlive = false;
        socket.ping();
      }
      upgrade.recheck().catch((thrown: unknown) => {
        const error = toGatewayError(thrown);
        // An unavailable store does not invalidate the key.
        if (error.code === 'upgrade_required') session.end(error, 1012, 'realtime is disabled');
        else if (error.status === 401 || error.status === 403) session.end(error);
      });
    }
  }
}

/** Logs a line for each call, like the access log for each request. */
function logOutcome(log: OwnApi['log']): NonNullable<Parameters<PluginApi['models']['call']>[2]['onOutcome']> {
  return (call, outcome) => {
    const { requestId: request_id, principal, request } = call as Call<'realtime'>;
    const { status, error, target, units, cost, durationMs } = outcome;
    log.info(
      {
        request_id,
        user: principal.userId,
        key: principal.keyId,
        kind: request.kind,
        outcome: status,
        ...(target && { provider: target.provider, model: target.model }),
        units,
        cost_usd: cost === undefined ? undefined : formatUsd(cost),
        error: error?.code,
        dur_ms: Math.round(durationMs),
      },
      'realtime call',
    );
  };
}

function expired(message: string): GatewayError {
  return new GatewayError('request_timeout', `${message} Open a new one.`);
}

function readModel(url = '/'): string {
  const query = new URL(url, 'http://localhost').searchParams;
  const model = query.get('model');
  if (query.has('call_id')) throw invalid('call_id', 'is for WebRTC, which is not supported; use `model`');
  if (!model || model.length > 256) throw invalid('model', `is required: ${PATH}?model=openai/gpt-realtime-2`);
  return model;
}

/** Rejects a provider without realtime, named in the model. */
function assertServed(api: OwnApi, model: string): void {
  const provider = model.split('/', 1)[0] ?? '';
  const offers = api.models.offers('realtime');
  if (!model.includes('/') || offers.has(provider) || !api.models.catalog.has(provider) || api.models.alias(model))
    return;
  const others = [...offers.keys()];
  throw new GatewayError(
    'unsupported_provider',
    `The provider "${provider}" does not support realtime; ${others.length > 0 ? `use one of ${others.join(', ')}` : 'no configured provider does'}.`,
    { param: 'model' },
  );
}
