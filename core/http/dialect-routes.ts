import type Koa from 'koa';
import { type Call, type Caller, type CallInput, createId, type Destination } from '../calls/call.ts';
import type { CallDeps } from '../calls/call-deps.ts';
import { completeChat } from '../calls/chat.ts';
import { type Batch, type ChatStream, streamChat } from '../calls/chat-stream.ts';
import { type Counter, createCounter } from '../calls/count.ts';
import { isAtCallersPlace } from '../calls/error-marks.ts';
import { bodyFactsOf, freezeRequest } from '../calls/facts.ts';
import type { Ingress } from '../calls/ingress.ts';
import { targetOfPath, targetsOfRequest } from '../calls/models.ts';
import { deploymentOf } from '../calls/seals.ts';
import type { Target } from '../contract/call.ts';
import type {
  DialectContext,
  DialectDefinition,
  DialectInput,
  DialectRequest,
  DialectRoute,
  DialectStream,
} from '../contract/dialect.ts';
import { GatewayError, isGatewayError, toGatewayError } from '../contract/errors.ts';
import type { Route, RouteContext } from '../contract/plugin.ts';
import { callOwned, own, ownerOf, runAs, runOwned } from '../plugins/attribution.ts';
import type { Owned } from '../plugins/registry.ts';
import { withoutCredentials } from './authenticate.ts';
import { createSseWriter, type SseWriter } from './sse-writer.ts';

/** The routes of all dialects, and which dialect each of them speaks. */
interface DialectRoutes {
  readonly routes: readonly Owned<Route>[];
  dialectOf(route: Route): DialectDefinition | undefined;
}

/** Makes the routes by which clients chat: read, call, write, each in the client's own format. */
export function createDialectRoutes(
  dialects: readonly Owned<DialectDefinition>[],
  deps: CallDeps,
  keepAliveMs: number,
): DialectRoutes {
  const spoken = new Map<Route, DialectDefinition>();
  const counter = createCounter(deps);
  const routes = dialects.flatMap(({ owner, value: dialect }) =>
    dialect.routes.map((row) => {
      const respond = (ctx: RouteContext, conversation: Conversation): Promise<void> => {
        if (row.action === 'count') return respondCount(counter, dialect, ctx, conversation);
        if (conversation.callInput.stream) return respondStream(deps, dialect, ctx, conversation, keepAliveMs);
        return respondWhole(deps, dialect, ctx, conversation);
      };
      const route = routeOf(dialect, row, (ctx) => {
        const reading = readConversation(deps, { owner, value: dialect }, row, ctx);
        return reading instanceof Promise
          ? reading.then((conversation) => respond(ctx, conversation))
          : respond(ctx, reading);
      });
      spoken.set(route, dialect);
      return { owner, value: route };
    }),
  );
  return { routes, dialectOf: (route) => spoken.get(route) };
}

function routeOf(dialect: DialectDefinition, row: DialectRoute, handler: Route['handler']): Route {
  const { path, summary, description, request = dialect.request, response = dialect.response } = row;
  return {
    ...{ method: 'POST', path, summary, auth: ['key'], body: request, handler },
    isIdempotent: row.action !== 'count',
    ...(description !== undefined && { description }),
    responses: {
      200: { description: row.action === 'count' ? 'The number of tokens.' : 'The completion.', schema: response },
    },
  };
}

async function respondWhole(
  deps: CallDeps,
  dialect: DialectDefinition,
  ctx: RouteContext,
  conversation: Conversation,
): Promise<void> {
  const { context, callInput, owner } = conversation;
  try {
    const { native, response, headers, call } = await completeChat(deps, callInput);
    conversation.onCall(call);
    const body =
      native !== undefined && dialect.native ? dialect.native.write(native, context) : dialect.write(response, context);
    if (dialect.remember) await runAs(owner, () => dialect.remember?.(body, context, callInput.caller.principal));
    ctx.status = 200;
    ctx.set(headers());
    ctx.type = 'application/json; charset=utf-8';
    ctx.body = JSON.stringify(body);
  } catch (thrown) {
    throw conversation.atCallersPlace(thrown);
  }
}

function readConversation(
  deps: CallDeps,
  spoken: Owned<DialectDefinition>,
  row: DialectRoute,
  ctx: RouteContext,
): Conversation | Promise<Conversation> {
  const { owner, value: dialect } = spoken;
  const { principal } = ctx.state;
  const keys = deps.seals.ready();
  const sent = inputOf(ctx, dialect, row);
  const expand = (): Conversation | Promise<Conversation> =>
    dialect.expand
      ? runOwned(owner, () => dialect.expand?.(sent, principal) ?? sent).then((input) =>
          conversationOf(deps, spoken, input, ctx),
        )
      : conversationOf(deps, spoken, sent, ctx);
  // Only a dialect with a native lane seals what it writes.
  return dialect.native ? keys.then(expand) : expand();
}

function conversationOf(
  deps: CallDeps,
  { owner, value: dialect }: Owned<DialectDefinition>,
  input: DialectInput,
  ctx: RouteContext,
): Conversation {
  const { principal, requestId } = ctx.state;
  const read = callOwned(owner, () => dialect.read(input));
  const { request } = read;
  const { inputTokens: estimatedInputTokens } = freezeRequest(request);
  const ingress = ingressOf(dialect, input, request, read);
  let responder: Target | undefined;
  const context: DialectContext = {
    input,
    request,
    requestId,
    id: createId(''),
    created: Math.floor(Date.now() / 1000),
    estimatedInputTokens,
    responder: () => responder,
    seal(data) {
      const provider = responder?.provider ?? '';
      return deps.seals.seal(
        principal.account,
        deploymentOf(deps.partsOf('chat').offers.get(provider), provider),
        data,
      );
    },
  };
  const stream = request.stream === true;
  return {
    context,
    callInput: {
      ...{ operation: 'chat', request, ingress, stream, follows: input.follows },
      caller: callerOf(ctx),
      findTargets: () => targetsOf(deps, dialect, read),
    },
    owner,
    onCall({ record: { target } }) {
      responder = target;
    },
    // A call ends in GatewayErrors only, so anything else was thrown by the dialect.
    atCallersPlace: (thrown) => (isGatewayError(thrown) ? atCallersPlace(thrown, read) : own(thrown, owner)),
  };
}

function inputOf(ctx: RouteContext, dialect: DialectDefinition, route: DialectRoute): DialectInput {
  return {
    body: ctx.state.body,
    params: ctx.params,
    query: ctx.querystring === '' ? {} : Object.fromEntries(new URLSearchParams(ctx.querystring)),
    headers: withoutCredentials(ctx.headers, dialect.credentials?.headers),
    route,
  };
}

/** The most that the headers of a caller which a provider may see can have together, in characters. */
const MAX_PASSED = 4096;

function ingressOf(
  { name, native }: DialectDefinition,
  input: DialectInput,
  before: CallInput<'chat'>['request'],
  { needs = [], dropped = [] }: DialectRequest,
): Ingress {
  const cacheControl = input.headers['cache-control'];
  const { body } = input;
  const facts = native?.effects && bodyFactsOf(body, native.effects);
  const found = facts
    ? facts.needs.filter((need) => !needs.some((told) => told.kind === need.kind && isWithin(need.param, told.param)))
    : [];
  const all = [...needs, ...found];
  const own = {
    dialect: name,
    body,
    before,
    needs: all,
    media: facts?.media ?? [],
    dropped,
    cacheControl: cacheControl?.toString(),
    headers: {},
  };
  if (!native) return own;
  const headers = Object.fromEntries(
    (native.headers ?? []).flatMap((header) => {
      const value = input.headers[header];
      return value === undefined ? [] : [[header, [value].flat().join(',')]];
    }),
  );
  const length = Object.values(headers).reduce((sum, value) => sum + value.length, 0);
  if (length > MAX_PASSED)
    throw new GatewayError('headers_too_large', `The headers ${Object.keys(headers).join(', ')} are over 4 KiB.`);
  return {
    ...own,
    headers,
    patch: (change) => native.patch(body, change),
  };
}

/** Whether a place of a body is another one, or stands within it. */
function isWithin(place: string, other: string): boolean {
  return place.startsWith(other) && /^(?:$|[.[])/.test(place.slice(other.length));
}

function targetsOf(
  { partsOf, aliases }: CallDeps,
  { aliases: dialectAliases }: DialectDefinition,
  { request: { model }, provider }: DialectRequest,
): Destination {
  const { catalog } = partsOf('chat');
  return provider === undefined
    ? targetsOfRequest({ catalog, aliases, dialectAliases }, model)
    : { targets: [targetOfPath(catalog, provider, model)] };
}

function callerOf({ state, headers }: RouteContext): Caller {
  const { requestId, principal, signal, onOutcome, session } = state;
  const isIdempotent = Boolean(headers['idempotency-key']);
  return { requestId, principal, signal, onOutcome, session, isIdempotent };
}

/** An error about a place of the canonical request, as one about the caller's own body. */
function atCallersPlace(thrown: GatewayError, { place }: DialectRequest): GatewayError {
  if (!place || thrown.param === undefined || isAtCallersPlace(thrown)) return thrown;
  const param = place(thrown.param);
  if (param === thrown.param) return thrown;
  const { code, message, retryAfterMs, headers, cause } = thrown;
  return new GatewayError(code, message.replaceAll(thrown.param, param), {
    ...{ param, headers, cause },
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  });
}

/** A request as its dialect read it. */
interface Conversation {
  readonly context: DialectContext;
  readonly callInput: CallInput<'chat'>;
  /** The plugin of the dialect. */
  readonly owner: string;
  /** Notes which call it became: its target is whose sealed texts the response has. */
  onCall(call: Call): void;
  /** An error as one about the caller's own body. */
  atCallersPlace(thrown: unknown): unknown;
}

/**
 * Streams to the caller. While the provider is silent the stream opens with a sign of life, so that proxies keep it; a target
 * that then fails can still be replaced, since nothing of a response was sent.
 */
async function respondStream(
  deps: CallDeps,
  dialect: DialectDefinition,
  ctx: RouteContext,
  conversation: Conversation,
  keepAliveMs: number,
): Promise<void> {
  const { context, callInput, owner } = conversation;
  const { signal, requestId } = ctx.state;
  let written: FrameWriter = ofChunks(dialect.stream(context));
  const { contentType, keepAlive = dialect.keepAlive } = written;
  const writer = createSseWriter(ctx.res, {
    ...{ keepAliveMs, keepAlive, signal },
    ...(contentType !== undefined && { headers: { 'content-type': contentType } }),
  });
  const silence = setTimeout(() => {
    openStream(ctx, writer, {});
    writer.write(keepAlive);
  }, keepAliveMs);
  let stream: ChatStream | undefined;
  try {
    stream = await streamChat(deps, callInput).finally(() => clearTimeout(silence));
    conversation.onCall(stream.call);
    if (dialect.native && stream.call.record.lane === 'native' && callInput.ingress?.patch)
      written = ofEvents(dialect.native.stream(context));
    openStream(ctx, writer, stream.headers());
    for await (const batch of stream.batches) {
      if (!writer.write(written.write(batch))) await writer.drained();
      if (writer.closed) return;
    }
    const last = written.end();
    const response = dialect.remember && written.response?.();
    // Before the last frame: what follows it may refer to this response at once.
    if (response !== undefined)
      await runAs(owner, () => dialect.remember?.(response, context, callInput.caller.principal));
    writer.write(last);
    writer.end();
  } catch (thrown) {
    const error = conversation.atCallersPlace(thrown);
    if (!writer.started) throw error;
    if (!isGatewayError(error) && !signal.aborted)
      deps.log.error({ request_id: requestId, plugin: ownerOf(error) ?? owner, err: error }, 'internal error');
    if (isGatewayError(error) || !signal.aborted) writer.write(written.fail(toGatewayError(error), requestId));
    writer.end();
  } finally {
    stream?.close();
  }
}

/** What writes the frames of a stream: from canonical chunks, or from the vendor's own events. */
interface FrameWriter extends Omit<DialectStream, 'push'> {
  write(batch: Batch): string;
}

function ofChunks(stream: DialectStream): FrameWriter {
  return {
    ...endsOf(stream),
    write({ chunks }) {
      let frames = '';
      for (const chunk of chunks) frames += stream.push(chunk);
      return frames;
    },
  };
}

function ofEvents(stream: ReturnType<NonNullable<DialectDefinition['native']>['stream']>): FrameWriter {
  return { ...endsOf(stream), write: ({ events }) => events.map((event) => stream.push(event)).join('') };
}

/** All of a stream but `push`; its methods may be those of a class. */
function endsOf(stream: Omit<DialectStream, 'push'>): Omit<DialectStream, 'push'> {
  const { contentType, keepAlive } = stream;
  return {
    end: () => stream.end(),
    fail: (error, requestId) => stream.fail(error, requestId),
    response: () => stream.response?.(),
    ...(contentType !== undefined && { contentType }),
    ...(keepAlive !== undefined && { keepAlive }),
  };
}

function openStream(ctx: Koa.Context | RouteContext, writer: SseWriter, headers: Record<string, string>): void {
  if (writer.started) return;
  ctx.respond = false;
  ctx.status = 200;
  ctx.set(headers);
  writer.start();
}

/** Tells how many input tokens a request has, in the client's own format. */
async function respondCount(
  counter: Counter,
  dialect: DialectDefinition,
  ctx: RouteContext,
  { context, callInput, atCallersPlace }: Conversation,
): Promise<void> {
  try {
    const { count, headers } = await counter(callInput, context.input.body);
    ctx.status = 200;
    ctx.set(headers);
    ctx.type = 'application/json; charset=utf-8';
    ctx.body = JSON.stringify(dialect.count?.(count.inputTokens, context));
  } catch (thrown) {
    throw atCallersPlace(thrown);
  }
}
