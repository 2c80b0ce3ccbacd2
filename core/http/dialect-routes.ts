import type Koa from 'koa';
import type { CallDeps } from '../calls/call-deps.ts';
import { completeChat } from '../calls/chat.ts';
import { type ChatStream, streamChat } from '../calls/chat-stream.ts';
import { createId } from '../calls/ids.ts';
import type { CallInit, CallRequest } from '../calls/live-call.ts';
import { targetOfPath, targetsOfRequest } from '../calls/targets.ts';
import { estimateInputTokens } from '../calls/tokens.ts';
import type {
  DialectContext,
  DialectDefinition,
  DialectInput,
  DialectRequest,
  DialectRoute,
} from '../contract/dialect.ts';
import { isGatewayError, toGatewayError } from '../contract/errors.ts';
import { deepFreeze } from '../contract/json.ts';
import type { Route, RouteContext } from '../contract/plugin.ts';
import { callOwned, ownerOf } from '../plugins/attribution.ts';
import type { Owned } from '../plugins/registry.ts';
import { createSseWriter, type SseWriter } from './sse-writer.ts';

/** The routes of all dialects, and which dialect each of them speaks. */
export interface DialectRoutes {
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
  const routes = dialects.flatMap(({ owner, value }) => {
    const dialect = ownDialect(owner, value);
    return dialect.routes.map((row) => {
      const route = routeOf(dialect, row, (ctx) => handleChat(deps, dialect, ctx, keepAliveMs));
      spoken.set(route, dialect);
      return { owner, value: route };
    });
  });
  return { routes, dialectOf: (route) => spoken.get(route) };
}

/** A dialect whose errors are known as its plugin's. */
function ownDialect(owner: string, dialect: DialectDefinition): DialectDefinition {
  const own =
    <Args extends readonly unknown[], T>(run: (...args: Args) => T) =>
    (...args: Args): T =>
      callOwned(owner, () => run(...args));
  return {
    ...dialect,
    read: own((input) => dialect.read(input)),
    write: own((response, context) => dialect.write(response, context)),
    error: own((error, requestId) => dialect.error(error, requestId)),
    stream: own((context) => {
      const stream = dialect.stream(context);
      return {
        push: own((chunk) => stream.push(chunk)),
        end: own(() => stream.end()),
        fail: own((error, requestId) => stream.fail(error, requestId)),
      };
    }),
  };
}

function routeOf(dialect: DialectDefinition, row: DialectRoute, handler: Route['handler']): Route {
  const { path, summary, description } = row;
  return {
    ...{ method: 'POST', path, summary, auth: ['key'], body: dialect.request, handler },
    ...(description !== undefined && { description }),
    responses: { 200: { description: 'The completion.', schema: dialect.response } },
  };
}

async function handleChat(
  deps: CallDeps,
  dialect: DialectDefinition,
  ctx: RouteContext,
  keepAliveMs: number,
): Promise<void> {
  const input = inputOf(ctx);
  const read = dialect.read(input);
  const request = deepFreeze(read.request);
  const callRequest: CallRequest<'chat'> = {
    operation: 'chat',
    request,
    stream: request.stream === true,
    ...targetsOf(deps, read),
  };
  const context: DialectContext = {
    input,
    request,
    id: createId(''),
    created: Math.floor(Date.now() / 1000),
    requestId: ctx.state.requestId,
    estimatedInputTokens: estimateInputTokens(request),
  };
  if (callRequest.stream) return respondStream(deps, dialect, ctx, callRequest, context, keepAliveMs);
  const result = await completeChat(deps, callRequest, callInitOf(ctx));
  ctx.status = 200;
  ctx.set(result.headers());
  ctx.type = 'application/json; charset=utf-8';
  ctx.body = JSON.stringify(dialect.write(result.response, context));
}

function inputOf(ctx: RouteContext): DialectInput {
  const { authorization: _, 'x-api-key': __, cookie: ___, ...headers } = ctx.headers;
  return {
    body: ctx.state.body,
    params: ctx.params,
    query: ctx.querystring === '' ? {} : Object.fromEntries(new URLSearchParams(ctx.querystring)),
    headers,
  };
}

function targetsOf(
  { partsOf, aliases }: CallDeps,
  { request: { model }, provider }: DialectRequest,
): Pick<CallRequest, 'targets' | 'requested'> {
  const { catalog } = partsOf('chat');
  return provider === undefined
    ? targetsOfRequest({ catalog, aliases }, model)
    : { targets: [targetOfPath(catalog, provider, model)] };
}

function callInitOf({ state: { requestId, principal, signal, onOutcome } }: RouteContext): CallInit {
  return { requestId, principal, signal, onOutcome };
}

/**
 * Streams to the caller. While the provider is silent the stream opens with a sign of life, so that proxies keep it; a target
 * that then fails can still be replaced, since nothing of a response was sent.
 */
async function respondStream(
  deps: CallDeps,
  dialect: DialectDefinition,
  ctx: RouteContext,
  callRequest: CallRequest<'chat'>,
  context: DialectContext,
  keepAliveMs: number,
): Promise<void> {
  const { signal, requestId } = ctx.state;
  const writer = createSseWriter(ctx.res, { keepAliveMs, keepAlive: dialect.keepAlive, signal });
  const written = dialect.stream(context);
  const silence = setTimeout(() => {
    openStream(ctx, writer, {});
    writer.write(dialect.keepAlive);
  }, keepAliveMs);
  let stream: ChatStream | undefined;
  try {
    stream = await streamChat(deps, callRequest, callInitOf(ctx)).finally(() => clearTimeout(silence));
    openStream(ctx, writer, stream.headers());
    for await (const batch of stream.chunks) {
      if (!writer.write(batch.map((chunk) => written.push(chunk)).join(''))) await writer.drained();
      if (writer.closed) return;
    }
    writer.write(written.end());
    writer.end();
  } catch (thrown) {
    if (!writer.started) throw thrown;
    if (!isGatewayError(thrown) && !signal.aborted)
      deps.log.error({ request_id: requestId, plugin: ownerOf(thrown), err: thrown }, 'internal error');
    if (isGatewayError(thrown) || !signal.aborted) writer.write(written.fail(toGatewayError(thrown), requestId));
    writer.end();
  } finally {
    stream?.close();
  }
}

function openStream(ctx: Koa.Context | RouteContext, writer: SseWriter, headers: Record<string, string>): void {
  if (writer.started) return;
  ctx.respond = false;
  ctx.status = 200;
  ctx.set(headers);
  writer.start();
}
