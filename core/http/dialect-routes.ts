import { CHAT, COUNT, type Target } from '../../contract/call.ts';
import type { ChatResponse } from '../../contract/chat.ts';
import { CHAT_REQUEST } from '../../contract/chat-schemas.ts';
import type { ServerTool, ServerTools } from '../../contract/chat-tools.ts';
import type { DialectDefinition, DialectInput, DialectRoute, DialectStream } from '../../contract/dialect.ts';
import { GatewayError, isGatewayError, toGatewayError } from '../../contract/errors.ts';
import { openEventStream } from '../../contract/event-stream.ts';
import { writeJson } from '../../contract/exact-json.ts';
import type { BodyShape } from '../../contract/facts.ts';
import { isObject } from '../../contract/json.ts';
import type { PluginApi, Route, RouteContext } from '../../contract/plugin.ts';
import type { RouteState } from '../../contract/route.ts';
import { responseHeaders } from '../calls/attempt.ts';
import { Call } from '../calls/call.ts';
import type { CallDeps } from '../calls/call-deps.ts';
import { completeChat } from '../calls/chat.ts';
import { type Batch, type ChatStream, streamChat } from '../calls/chat-stream.ts';
import { type Counter, createCounter, draftChat } from '../calls/count.ts';
import { nameOf } from '../calls/hedge.ts';
import { InboundChat } from '../calls/inbound-chat.ts';
import { endRefused } from '../calls/run-call.ts';
import { type FoundServers, findServers, fitTools, ToolLoop, withServerTools } from '../calls/tool-loop.ts';
import { callAttributed, ownerOf, runAs, runAttributed } from '../plugins/attribution.ts';
import type { Attributed, RequestSchemas } from '../plugins/registry.ts';
import { withoutCredentials } from './authenticate.ts';
import { requestError } from './error-answer.ts';
import type { RequestState } from './lifecycle.ts';
import { BODY_BOUNDS, parseBody } from './read-body.ts';

/** Routes of all dialects, and the dialect of each route. */
interface DialectRoutes {
  readonly routes: readonly Attributed<Route>[];
  /** Reads one request of a file as its dialect's route would. */
  readonly draft: PluginApi['models']['draft'];
  dialectOf(route: Route): DialectDefinition | undefined;
}

/** Creates the chat routes: read, call and write in the client's own format. */
export function createDialectRoutes(
  dialects: readonly Attributed<DialectDefinition>[],
  deps: CallDeps,
  requests: RequestSchemas,
): DialectRoutes {
  const spoken = new Map<Route, DialectDefinition>();
  const countTokens = createCounter(deps);
  const routes = dialects.flatMap((dialect) => {
    const { owner, value: format } = dialect;
    return format.routes.map((row) => {
      const respond = createResponder({ deps, dialect, row, countTokens });
      const route = routeOf(format, row, (ctx) => {
        const input = inputOf(ctx, row);
        const keys = deps.seals.ready();
        // Other dialects seal nothing in their responses.
        if (!format.native && !format.expand) return respond(ctx, input);
        return expand(keys, dialect, input, ctx).then((expanded) => respond(ctx, expanded));
      });
      spoken.set(route, format);
      return { owner, value: route };
    });
  });
  return {
    routes,
    dialectOf: (route) => spoken.get(route),
    draft: (ctx, name, bytes, takes) => {
      const found = dialects.find(({ value }) => value.name === name);
      return draftOf(deps, requests, { found, name, bytes, takes }, ctx);
    },
  };
}

/** Parts of one route of a dialect. */
interface RouteParts {
  readonly deps: CallDeps;
  readonly dialect: Attributed<DialectDefinition>;
  readonly row: DialectRoute;
  readonly countTokens: Counter;
}

/** Creates the function that responds to the requests of a route. */
function createResponder(parts: RouteParts): (ctx: RouteContext, input: DialectInput) => Promise<void> {
  const { deps, dialect } = parts;
  const { serverTools } = deps;
  if (!serverTools) return (ctx, input) => respondTo(parts, ctx, readChat(parts, ctx, input));
  return (ctx, input) => {
    let found: ReturnType<typeof findServers>;
    try {
      found = findServers(deps, serverTools, dialect, input, ctx.state.principal);
    } catch (thrown) {
      return refuse(parts, ctx, readChat(parts, ctx, input), thrown);
    }
    if (!found) return respondTo(parts, ctx, readChat(parts, ctx, input));
    return respondByTools(parts, serverTools, ctx, input, found);
  };
}

function readChat({ deps, dialect }: RouteParts, ctx: RouteContext, input: DialectInput): InboundChat {
  return new InboundChat(deps, dialect, input, ctx.state, ctx.req);
}

function respondTo({ deps, row, countTokens }: RouteParts, ctx: RouteContext, client: InboundChat): Promise<void> {
  const { request } = client;
  if (row.action === 'count')
    return respondCount(countTokens, ctx, client, new Call(deps, COUNT, request, ctx.state, client));
  const call = new Call(deps, CHAT, request, ctx.state, client);
  return call.stream ? respondStream(deps, ctx, client, call) : respondWhole(deps, ctx, client, call);
}

/** Responds to a chat that names servers, or whose caller's plan does. */
async function respondByTools(
  parts: RouteParts,
  runner: ServerTools,
  ctx: RouteContext,
  input: DialectInput,
  finding: FoundServers | Promise<FoundServers | undefined>,
): Promise<void> {
  const { deps, row, countTokens } = parts;
  const found = await finding;
  const client = readChat(parts, ctx, found?.input ?? input);
  if (!found) return respondTo(parts, ctx, client);
  const { servers, requiresTool } = found;
  let listed: readonly ServerTool[];
  try {
    listed = await runner.list(servers, ctx.state.principal);
  } catch (thrown) {
    return refuse(parts, ctx, client, thrown);
  }
  let tools: readonly ServerTool[];
  try {
    tools = fitTools(client.request, listed, servers);
  } catch (thrown) {
    return refuse(parts, ctx, client, client.locate(thrown));
  }
  if (tools.length === 0) return respondTo(parts, ctx, client);
  await deps.seals.ready();
  const request = withServerTools(client.request, tools, requiresTool);
  if (row.action === 'count')
    return respondCount(countTokens, ctx, client, new Call(deps, COUNT, request, ctx.state, client));
  const loop = new ToolLoop(deps, runner, ctx.state, request, tools, client);
  const call = loop.next();
  return call.stream ? respondStream(deps, ctx, client, call, loop) : respondWhole(deps, ctx, client, call, loop);
}

/** Ends a chat that was refused before its first turn, so that the records of calls have it. */
async function refuse(
  { deps, row }: RouteParts,
  ctx: RouteContext,
  client: InboundChat,
  thrown: unknown,
): Promise<never> {
  const call = new Call(deps, row.action === 'count' ? COUNT : CHAT, client.request, ctx.state, client);
  throw await endRefused(deps, call, thrown);
}

function inputOf(ctx: RouteContext, route: DialectRoute): DialectInput {
  const { places } = ctx.state as RouteState & Pick<RequestState, 'places'>;
  return {
    body: ctx.state.body,
    params: ctx.params,
    query: ctx.querystring === '' ? {} : Object.fromEntries(new URLSearchParams(ctx.querystring)),
    headers: withoutCredentials(ctx.headers, places?.headers),
    route,
  };
}

/** Request of a file, in a dialect's format. */
interface Draft {
  /** Dialect with that name. */
  readonly found: Attributed<DialectDefinition> | undefined;
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
  assertNoServers(deps, found, body);
  const { params, state } = ctx;
  const input: DialectInput = { body, params, query: {}, headers: withoutCredentials(ctx.headers), route };
  const read = await expand(deps.seals.ready(), found, input, ctx);
  const client = new InboundChat(deps, found, read, state, ctx.req);
  const { principal, requestId, signal, session, trace } = state;
  // The batch has an outcome of its own.
  const context = { principal, requestId, signal, session, trace };
  return draftChat(deps, new Call(deps, COUNT, client.request, context, client), takes).catch((thrown) => {
    throw client.locate(thrown);
  });
}

/** Rejects MCP servers in a request of a file, since nothing runs their tools there. */
function assertNoServers(
  { serverTools }: CallDeps,
  { owner, value: dialect }: Attributed<DialectDefinition>,
  body: unknown,
): void {
  if (!serverTools) return;
  const [named] = callAttributed(owner, () => dialect.servers?.(body, serverTools))?.servers ?? [];
  if (named)
    throw new GatewayError(
      'invalid_request',
      'Batches do not support MCP servers. Remove them, or send the request alone.',
      {
        ...(named.param !== undefined && { param: named.param }),
      },
    );
}

/** Returns the parameters of the walk over a dialect's body. */
export function shapeOf({ request, native }: DialectDefinition): BodyShape {
  return { isChat: request === CHAT_REQUEST, effects: native?.effects };
}

/** Waits for the sealing keys if needed, and resolves references of a body. */
async function expand(
  keys: Promise<void>,
  { owner, value: dialect }: Attributed<DialectDefinition>,
  input: DialectInput,
  ctx: RouteContext,
): Promise<DialectInput> {
  // Both the references and the response may be sealed.
  await keys;
  if (!dialect.expand) return input;
  return runAttributed(owner, () => dialect.expand?.(input, ctx.state.principal) ?? input);
}

function routeOf(dialect: DialectDefinition, row: DialectRoute, handler: Route['handler']): Route {
  const { path, summary, description, request = dialect.request, response = dialect.response } = row;
  return {
    method: 'POST',
    path,
    summary,
    auth: ['key'],
    body: request,
    handler,
    isIdempotent: row.action !== 'count',
    ...(description !== undefined && { description }),
    responses: {
      200: { description: row.action === 'count' ? 'Number of tokens.' : 'The completion.', schema: response },
    },
  };
}

/** Responds with the whole completion. */
async function respondWhole(
  deps: CallDeps,
  ctx: RouteContext,
  client: InboundChat,
  first: Call,
  loop?: ToolLoop,
): Promise<void> {
  const { owner, value: dialect } = client.format;
  let call = first;
  try {
    let response: ChatResponse;
    if (loop) ({ call, response } = await loop.complete(first));
    else response = await completeChat(deps, call);
    const { record } = call;
    client.respondFrom(record.target);
    const body = nativeBody(dialect, record.native, client) ?? dialect.write(response, client);
    record.native = undefined;
    call.finish('ok');
    if (dialect.remember) await runAs(owner, () => dialect.remember?.(body, client, call.principal));
    ctx.status = 200;
    const { res } = ctx;
    const headers = responseHeaders(call);
    if (loop) headers['x-tollgate-cost-usd'] = loop.cost;
    for (const name in headers) res.setHeader(name, headers[name] ?? '');
    res.setHeader('content-type', 'application/json; charset=utf-8');
    ctx.body = writeJson(body);
  } catch (thrown) {
    const error = client.locate(thrown);
    // For a response that could not be written.
    call.finish('error', toGatewayError(error));
    throw error;
  }
}

/** Returns a vendor's own response as the caller gets it; undefined where the dialect writes the canonical one. */
function nativeBody({ native, passes }: DialectDefinition, body: unknown, client: InboundChat): unknown {
  if (body === undefined) return undefined;
  if (native) return native.write(body, client);
  const isPassed = typeof passes === 'function' ? passes(client.input) : passes;
  return isPassed ? body : undefined;
}

function breaksOff({ breaksOff: rule }: DialectDefinition, { input }: InboundChat): boolean {
  return typeof rule === 'function' ? rule(input) : rule === true;
}

/**
 * Streams to the caller. While the provider is silent, the stream starts with a keep-alive, so that proxies keep the connection. A
 * target that then fails can still be replaced, because no part of a response was sent.
 */
async function respondStream(
  deps: CallDeps,
  ctx: RouteContext,
  client: InboundChat,
  call: Call,
  loop?: ToolLoop,
): Promise<void> {
  const { owner, value: dialect } = client.format;
  const { signal, requestId } = ctx.state;
  let written: FrameWriter = ofChunks(dialect.stream(client));
  const { contentType, keepAlive = dialect.keepAlive } = written;
  const writer = openEventStream(ctx, {
    keepAlive,
    ...(contentType !== undefined && { headers: { 'content-type': contentType } }),
  });
  let stream: ChatStream | undefined;
  try {
    stream = loop ? await loop.stream(call) : await streamChat(deps, call);
    client.respondFrom(call.record.target);
    if (dialect.native && call.record.lane === 'native') written = ofEvents(dialect.native.stream(client));
    if (!writer.started) ctx.set(responseHeaders(call));
    writer.start();
    let resumedAt: Target | undefined;
    for await (const batch of stream.batches) {
      if (call.record.resumedAt !== resumedAt) {
        resumedAt = call.record.resumedAt;
        if (contentType === undefined && resumedAt) writer.write(resumedMessage(resumedAt));
      }
      if (!writer.write(written.write(batch))) await writer.drained();
      if (writer.closed) return;
    }
    const last = written.end();
    const response = dialect.remember && written.response?.();
    // Runs before the last frame: the next request may refer to this response at once.
    if (response !== undefined) await runAs(owner, () => dialect.remember?.(response, client, call.principal));
    writer.write(last);
    writer.end();
  } catch (thrown) {
    const error = client.locate(thrown);
    if (!writer.started) throw error;
    if (!isGatewayError(error) && !signal.aborted)
      deps.log.error({ request_id: requestId, plugin: ownerOf(error) ?? owner, err: error }, 'internal error');
    if (isGatewayError(error) || !signal.aborted) writer.write(written.fail(toGatewayError(error), requestId));
    if (breaksOff(dialect, client)) writer.breakOff();
    else writer.end();
  } finally {
    stream?.close();
  }
}

/** Returns a comment, which clients of event streams ignore. */
function resumedMessage(target: Target): string {
  return `: stream interrupted; resumed by ${nameOf(target).replace(/[^\x20-\x7e]/g, '?')}\n\n`;
}

/** Writes the frames of a stream, from canonical chunks or from the vendor's own events. */
interface FrameWriter extends Omit<DialectStream, 'push'> {
  write(batch: Batch): string;
}

function ofChunks(stream: DialectStream): FrameWriter {
  return {
    ...endsOf(stream),
    write({ chunks, events }) {
      let frames = '';
      if (events.length > 0 && stream.pass) {
        const usage = chunks[0]?.usage ?? undefined;
        for (const event of events) frames += stream.pass(event, usage);
        return frames;
      }
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

/** Responds with the number of input tokens of a request, in the client's own format. */
async function respondCount(countTokens: Counter, ctx: RouteContext, client: InboundChat, call: Call): Promise<void> {
  try {
    const { inputTokens, estimated } = await countTokens(call);
    ctx.status = 200;
    ctx.set(responseHeaders(call));
    if (estimated) ctx.set('x-tollgate-estimated', 'true');
    ctx.type = 'application/json; charset=utf-8';
    ctx.body = JSON.stringify(client.format.value.count?.(inputTokens, client));
  } catch (thrown) {
    throw client.locate(thrown);
  }
}
