import type Koa from 'koa';
import type { CallDeps } from '../calls/call-deps.ts';
import { type ChatStream, streamChat } from '../calls/chat-stream.ts';
import type { Counter } from '../calls/count.ts';
import type { CallInit, CallRequest, LiveCall } from '../calls/live-call.ts';
import type { Batch } from '../calls/open-stream.ts';
import type { DialectContext, DialectDefinition, DialectStream } from '../contract/dialect.ts';
import { isGatewayError, toGatewayError } from '../contract/errors.ts';
import type { RouteContext } from '../contract/plugin.ts';
import { ownerOf, runAs } from '../plugins/attribution.ts';
import { createSseWriter, type SseWriter } from './sse-writer.ts';

/** A request as its dialect read it. */
export interface Conversation {
  readonly context: DialectContext;
  readonly callRequest: CallRequest<'chat'>;
  readonly init: CallInit;
  /** The plugin of the dialect. */
  readonly owner: string;
  /** Notes which call it became: its target is whose sealed texts the response has. */
  onCall(call: LiveCall): void;
  /** An error as one about the caller's own body. */
  atCallersPlace(thrown: unknown): unknown;
}

/**
 * Streams to the caller. While the provider is silent the stream opens with a sign of life, so that proxies keep it; a target
 * that then fails can still be replaced, since nothing of a response was sent.
 */
export async function respondStream(
  deps: CallDeps,
  dialect: DialectDefinition,
  ctx: RouteContext,
  conversation: Conversation,
  keepAliveMs: number,
): Promise<void> {
  const { context, callRequest, init, owner } = conversation;
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
    stream = await streamChat(deps, callRequest, init).finally(() => clearTimeout(silence));
    conversation.onCall(stream.call);
    if (dialect.native && stream.call.record.lane === 'native' && callRequest.ingress?.patch)
      written = ofEvents(dialect.native.stream(context));
    openStream(ctx, writer, stream.headers());
    for await (const batch of stream.batches) {
      if (!writer.write(written.write(batch))) await writer.drained();
      if (writer.closed) return;
    }
    const last = written.end();
    const response = dialect.remember && written.response?.();
    // Before the last frame: what follows it may refer to this response at once.
    if (response !== undefined) await runAs(owner, () => dialect.remember?.(response, context, init.principal));
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
export async function respondCount(
  counter: Counter,
  dialect: DialectDefinition,
  ctx: RouteContext,
  { context, callRequest, init, atCallersPlace }: Conversation,
): Promise<void> {
  try {
    const { count, headers } = await counter(callRequest, context.input.body, init);
    ctx.status = 200;
    ctx.set(headers);
    ctx.type = 'application/json; charset=utf-8';
    ctx.body = JSON.stringify(dialect.count?.(count.inputTokens, context));
  } catch (thrown) {
    throw atCallersPlace(thrown);
  }
}
