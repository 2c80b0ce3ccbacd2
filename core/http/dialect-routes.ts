import type Koa from 'koa';
import type { Target } from '../../contract/call.ts';
import { normalChat } from '../../contract/chat-form.ts';
import { CHAT_REQUEST } from '../../contract/chat-schemas.ts';
import type {
  DialectContext,
  DialectDefinition,
  DialectInput,
  DialectNeed,
  DialectRequest,
  DialectRoute,
  DialectStream,
} from '../../contract/dialect.ts';
import { GatewayError, isGatewayError, rewordError, toGatewayError } from '../../contract/errors.ts';
import { type BodyShape, bodyFactsOf, factsOf } from '../../contract/facts.ts';
import { isObject } from '../../contract/json.ts';
import type { PluginApi, Route, RouteContext } from '../../contract/plugin.ts';
import type { RouteState } from '../../contract/route.ts';
import { createSseWriter, type SseWriter } from '../../contract/sse-writer.ts';
import { targetOfPath, targetsOfRequest } from '../../models/catalog.ts';
import { type Call, type CallInput, createId } from '../calls/call.ts';
import type { CallDeps } from '../calls/call-deps.ts';
import { completeChat } from '../calls/chat.ts';
import { type Batch, type ChatStream, streamChat } from '../calls/chat-stream.ts';
import { type Counter, createCounter, draftChat } from '../calls/count.ts';
import { isAtCallersPlace } from '../calls/error-marks.ts';
import { nameOf } from '../calls/hedge.ts';
import type { Ingress } from '../calls/ingress.ts';
import { placeInBody } from '../calls/native-texts.ts';
import { ownTokens } from '../calls/own-token.ts';
import { deploymentOf } from '../calls/seals.ts';
import { own, ownerOf, runAs, runOwned } from '../plugins/attribution.ts';
import type { Owned, RequestSchemas } from '../plugins/registry.ts';
import { withoutCredentials } from './authenticate.ts';
import { requestError } from './error-answer.ts';
import type { RequestState } from './lifecycle.ts';
import { BODY_BOUNDS, parseBody } from './read-body.ts';

/** Routes of all dialects, and the dialect of each route. */
interface DialectRoutes {
  readonly routes: readonly Owned<Route>[];
  /** Reads one request of a file as its dialect's route would. */
  readonly draft: PluginApi['models']['draft'];
  dialectOf(route: Route): DialectDefinition | undefined;
}

/** Creates the chat routes: read, call and write in the client's own format. */
export function createDialectRoutes(
  dialects: readonly Owned<DialectDefinition>[],
  deps: CallDeps,
  keepAliveMs: number,
  requests: RequestSchemas,
): DialectRoutes {
  const spoken = new Map<Route, DialectDefinition>();
  const counter = createCounter(deps);
  const routes = dialects.flatMap(({ owner, value: dialect }) =>
    dialect.routes.map((row) => {
      const respond = (ctx: RouteContext, input: DialectInput): Promise<void> => {
        const conversation = readConversation(deps, { owner, value: dialect }, input, ctx);
        if (row.action === 'count') return respondCount(counter, ctx, conversation);
        if (conversation.callInput.stream) return respondStream(deps, ctx, conversation, keepAliveMs);
        return respondWhole(deps, ctx, conversation);
      };
      const route = routeOf(dialect, row, (ctx) => {
        const input: DialectInput = {
          body: ctx.state.body,
          params: ctx.params,
          query: ctx.querystring === '' ? {} : Object.fromEntries(new URLSearchParams(ctx.querystring)),
          headers: withoutCredentials(
            ctx.headers,
            (ctx.state as RouteState & Pick<RequestState, 'places'>).places?.headers,
          ),
          route: row,
        };
        const keys = deps.seals.ready();
        // Other dialects seal nothing in their responses.
        if (!dialect.native && !dialect.expand) return respond(ctx, input);
        return expand(keys, { owner, value: dialect }, input, ctx).then((expanded) => respond(ctx, expanded));
      });
      spoken.set(route, dialect);
      return { owner, value: route };
    }),
  );
  return {
    routes,
    dialectOf: (route) => spoken.get(route),
    draft: (ctx, name, bytes, takes) => {
      const found = dialects.find(({ value }) => value.name === name);
      return draftOf(deps, requests, { found, name, bytes, takes }, ctx);
    },
  };
}

/** Request of a file, in a dialect's format. */
interface Draft {
  /** Dialect with that name. */
  readonly found: Owned<DialectDefinition> | undefined;
  readonly name: string;
  readonly bytes: Parameters<PluginApi['models']['draft']>[2];
  readonly takes: Parameters<PluginApi['models']['draft']>[3];
}

async function draftOf(
  deps: CallDeps,
  requests: RequestSchemas,
  { found, name, bytes, takes }: Draft,
  ctx: RouteContext,
): ReturnType<PluginApi['models']['draft']> {
  const [route] = found?.value.routes ?? [];
  if (!found || !route)
    throw new GatewayError('unknown_url', `The request format "${name}" is disabled on this gateway.`);
  const { owner, value: dialect } = found;
  const body = parseBody(bytes, BODY_BOUNDS, undefined, shapeOf(dialect));
  const validate = requests.compile(owner, dialect.request, `the request of "${name}"`);
  const [wrong] = validate(body) ? [] : (validate.errors ?? []);
  if (wrong) throw requestError(wrong, body, undefined);
  if (isObject(body) && body['stream'] === true)
    throw new GatewayError('invalid_request', 'Batches do not support streams. Remove `stream`.', { param: 'stream' });
  const { params } = ctx;
  const input: DialectInput = { body, params, query: {}, headers: withoutCredentials(ctx.headers), route };
  const read = await expand(deps.seals.ready(), found, input, ctx);
  const conversation = readConversation(deps, found, read, ctx);
  return draftChat(deps, conversation.callInput, takes).catch((thrown) => {
    throw atCallersPlace(thrown, conversation);
  });
}

/** Returns the parameters of the walk over a dialect's body. */
export function shapeOf({ request, native }: DialectDefinition): BodyShape {
  return { isChat: request === CHAT_REQUEST, effects: native?.effects };
}

/** Waits for the sealing keys if needed, and resolves references of a body. */
async function expand(
  keys: Promise<void>,
  { owner, value: dialect }: Owned<DialectDefinition>,
  input: DialectInput,
  ctx: RouteContext,
): Promise<DialectInput> {
  // Both the references and the response may be sealed.
  await keys;
  if (!dialect.expand) return input;
  return runOwned(owner, () => dialect.expand?.(input, ctx.state.principal) ?? input);
}

function routeOf(dialect: DialectDefinition, row: DialectRoute, handler: Route['handler']): Route {
  const { path, summary, description, request = dialect.request, response = dialect.response } = row;
  return {
    ...{ method: 'POST', path, summary, auth: ['key'], body: request, handler },
    isIdempotent: row.action !== 'count',
    ...(description !== undefined && { description }),
    responses: {
      200: { description: row.action === 'count' ? 'Number of tokens.' : 'The completion.', schema: response },
    },
  };
}

async function respondWhole(deps: CallDeps, ctx: RouteContext, conversation: Conversation): Promise<void> {
  const { dialect, context, callInput, owner } = conversation;
  let call: Call | undefined;
  try {
    const result = await completeChat(deps, callInput);
    ({ call } = result);
    const { native, response, headers } = result;
    conversation.responder = call.record.target;
    const body =
      native !== undefined && dialect.native ? dialect.native.write(native, context) : dialect.write(response, context);
    call.finish('ok');
    if (dialect.remember) await runAs(owner, () => dialect.remember?.(body, context, callInput.caller.principal));
    ctx.status = 200;
    const told = headers();
    const leftOut = callInput.ingress?.leftOut;
    if (leftOut?.size) {
      const { 'x-tollgate-dropped': dropped = [] } = told;
      told['x-tollgate-dropped'] = [dropped, ...leftOut].flat().join(', ');
    }
    const { res } = ctx;
    for (const name in told) res.setHeader(name, told[name] ?? '');
    res.setHeader('content-type', 'application/json; charset=utf-8');
    ctx.body = JSON.stringify(body);
  } catch (thrown) {
    const error = atCallersPlace(thrown, conversation);
    // For a response that could not be written.
    call?.finish('error', toGatewayError(error));
    throw error;
  }
}

/** Request after reading by its dialect. */
interface Conversation {
  readonly dialect: DialectDefinition;
  /** Plugin of the dialect. */
  readonly owner: string;
  readonly read: DialectRequest;
  readonly context: DialectContext;
  readonly callInput: CallInput<'chat'>;
  /** Target of the call, once known: the response contains its sealed texts. */
  responder: Target | undefined;
}

function readConversation(
  deps: CallDeps,
  { owner, value: dialect }: Owned<DialectDefinition>,
  input: DialectInput,
  { state, headers, req }: RouteContext,
): Conversation {
  const { principal, requestId, signal, onOutcome, session, trace } = state;
  const isIdempotent = Boolean(headers['idempotency-key']);
  const read = readRequest(owner, dialect, input);
  const { request, provider } = read;
  const { inputTokens: estimatedInputTokens } = factsOf(request, true);
  const token = ownTokens.get(req);
  const ingress = ingressOf(dialect, input, read, token !== undefined);
  if (token) ownTokens.set(ingress, token);
  const conversation: Conversation = {
    dialect,
    owner,
    read,
    responder: undefined,
    context: {
      input,
      request,
      requestId,
      estimatedInputTokens,
      id: createId(''),
      created: Math.floor(Date.now() / 1000),
      responder: () => conversation.responder,
      leaveOut(what) {
        if (ingress.leftOut.has(what)) return;
        ingress.leftOut.add(what);
        deps.log.info(
          { request_id: requestId, left_out: what },
          'the response has parts that its format does not support',
        );
      },
      seal(data) {
        const { provider: instance = '' } = conversation.responder ?? {};
        const deployment = deploymentOf(deps.partsOf('chat').offers.get(instance), instance);
        return deps.seals.seal(principal.account, deployment, data);
      },
    },
    callInput: {
      operation: 'chat',
      request,
      stream: request.stream === true,
      follows: input.follows,
      ingress,
      caller: { requestId, principal, signal, onOutcome, session, trace, isIdempotent },
      findTargets() {
        const { catalog } = deps.partsOf('chat');
        if (provider !== undefined) return { targets: [targetOfPath(catalog, provider, request.model)] };
        return targetsOfRequest({ catalog, aliases: deps.aliases, dialectAliases: dialect.aliases }, request.model);
      },
    },
  };
  return conversation;
}

/** Reads a request in its normal form, which hooks, checks and vendors all receive. */
function readRequest(owner: string, dialect: DialectDefinition, input: DialectInput): DialectRequest {
  let read: DialectRequest;
  try {
    read = dialect.read(input);
  } catch (thrown) {
    throw own(thrown, owner);
  }
  factsOf(read.request, true);
  try {
    const request = normalChat(read.request);
    return request === read.request ? read : { ...read, request };
  } catch (thrown) {
    throw atCallersPlace(thrown, { read, owner });
  }
}

/** Maximum total length of the caller's headers that a provider may receive, in characters. */
const MAX_PASSED = 4096;

function ingressOf(
  { name, native, demandsLimit }: DialectDefinition,
  { body, headers: sent, route }: DialectInput,
  { request: before, needs = [], dropped = [] }: DialectRequest,
  ownSubscription: boolean,
): Ingress {
  const cacheControl = sent['cache-control']?.toString();
  const wishes = { cacheControl, demandsLimit, ownSubscription };
  const own = {
    dialect: name,
    row: route.native ?? name,
    body,
    before,
    needs,
    media: [],
    dropped,
    leftOut: new Set<string>(),
    headers: {},
    ...wishes,
  };
  if (!native) return own;
  const facts = native.effects && bodyFactsOf(body, native.effects);
  const isNew = (need: DialectNeed): boolean =>
    !needs.some((told) => told.kind === need.kind && isWithin(need.param, told.param));
  const headers = Object.fromEntries(
    (native.headers ?? []).flatMap((header) =>
      sent[header] === undefined ? [] : [[header, [sent[header]].flat().join(',')]],
    ),
  );
  const length = Object.values(headers).reduce((sum, value) => sum + value.length, 0);
  if (length > MAX_PASSED)
    throw new GatewayError('headers_too_large', `The headers ${Object.keys(headers).join(', ')} are over 4 KiB.`);
  return {
    ...own,
    needs: facts ? [...needs, ...facts.needs.filter(isNew)] : needs,
    media: facts?.media ?? [],
    headers,
    patch: (change) => native.patch(body, change),
  };
}

/** Returns whether a path equals another one or is below it. */
function isWithin(place: string, other: string): boolean {
  return place.startsWith(other) && /^(?:$|[.[])/.test(place.slice(other.length));
}

/** Converts an error's path to the caller's body. Calls end in GatewayErrors only, so other errors come from the dialect. */
function atCallersPlace(thrown: unknown, { read: { place }, owner }: Pick<Conversation, 'read' | 'owner'>): unknown {
  if (!isGatewayError(thrown)) return own(thrown, owner);
  if (thrown.param === undefined || isAtCallersPlace(thrown)) return thrown;
  const param = placeInBody(thrown.param) ?? place?.(thrown.param) ?? thrown.param;
  if (param === thrown.param) return thrown;
  return rewordError(thrown, { message: thrown.message.replaceAll(thrown.param, param), param });
}

/**
 * Streams to the caller. While the provider is silent, the stream starts with a keep-alive, so that proxies keep the connection. A
 * target that then fails can still be replaced, because no part of a response was sent.
 */
async function respondStream(
  deps: CallDeps,
  ctx: RouteContext,
  conversation: Conversation,
  keepAliveMs: number,
): Promise<void> {
  const { dialect, context, callInput, owner } = conversation;
  const { signal, requestId } = ctx.state;
  let written: FrameWriter = ofChunks(dialect.stream(context));
  const { contentType, keepAlive = dialect.keepAlive } = written;
  const writer = createSseWriter(ctx.res, {
    keepAliveMs,
    keepAlive,
    signal,
    ...(contentType !== undefined && { headers: { 'content-type': contentType } }),
  });
  const silence = setTimeout(() => {
    openStream(ctx, writer, {});
    writer.write(keepAlive);
  }, keepAliveMs);
  let stream: ChatStream | undefined;
  try {
    stream = await streamChat(deps, callInput).finally(() => clearTimeout(silence));
    conversation.responder = stream.call.record.target;
    if (dialect.native && stream.call.record.lane === 'native' && callInput.ingress?.patch)
      written = ofEvents(dialect.native.stream(context));
    openStream(ctx, writer, stream.headers());
    const { record } = stream.call;
    let resumedAt: Target | undefined;
    for await (const batch of stream.batches) {
      if (record.resumedAt !== resumedAt) {
        resumedAt = record.resumedAt;
        if (contentType === undefined && resumedAt) writer.write(toldResumed(resumedAt));
      }
      if (!writer.write(written.write(batch))) await writer.drained();
      if (writer.closed) return;
    }
    const last = written.end();
    const response = dialect.remember && written.response?.();
    // Runs before the last frame: the next request may refer to this response at once.
    if (response !== undefined)
      await runAs(owner, () => dialect.remember?.(response, context, callInput.caller.principal));
    writer.write(last);
    writer.end();
  } catch (thrown) {
    const error = atCallersPlace(thrown, conversation);
    if (!writer.started) throw error;
    if (!isGatewayError(error) && !signal.aborted)
      deps.log.error({ request_id: requestId, plugin: ownerOf(error) ?? owner, err: error }, 'internal error');
    if (isGatewayError(error) || !signal.aborted) writer.write(written.fail(toGatewayError(error), requestId));
    writer.end();
  } finally {
    stream?.close();
  }
}

/** Returns a comment, which clients of event streams ignore. */
function toldResumed(target: Target): string {
  return `: stream interrupted; resumed by ${nameOf(target).replace(/[^\x20-\x7e]/g, '?')}\n\n`;
}

/** Writes the frames of a stream, from canonical chunks or from the vendor's own events. */
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

/** Returns all members of a stream except `push`; its methods may belong to a class. */
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

/** Responds with the number of input tokens of a request, in the client's own format. */
async function respondCount(counter: Counter, ctx: RouteContext, conversation: Conversation): Promise<void> {
  const { dialect, context, callInput } = conversation;
  try {
    const { count, headers } = await counter(callInput, context.input.body);
    ctx.status = 200;
    ctx.set(headers);
    ctx.type = 'application/json; charset=utf-8';
    ctx.body = JSON.stringify(dialect.count?.(count.inputTokens, context));
  } catch (thrown) {
    throw atCallersPlace(thrown, conversation);
  }
}
