import type { ChatAnswer } from '../../calls/chat.ts';
import type { ChatStream } from '../../calls/chat-stream.ts';
import type { CallInit } from '../../calls/live-call.ts';
import type { Ask } from '../../calls/run.ts';
import { type Aliases, type Catalog, requestedTargets, targetOfPath } from '../../calls/targets.ts';
import type { ChatRequest } from '../../contract/chat.ts';
import { isGatewayError, toGatewayError } from '../../contract/errors.ts';
import type { Schema } from '../../contract/json.ts';
import type { Route, RouteContext } from '../../contract/plugin.ts';
import { DONE, formatData, KEEP_ALIVE } from '../../upstream/event-reader.ts';
import { CHAT_REQUEST, CHAT_RESPONSE } from '../schemas.ts';
import { createSseWriter, type SseWriter } from '../sse-writer.ts';
import { answerHeaders, sendAnswer } from './answer.ts';

export interface ChatRouteDeps {
  readonly catalog: Catalog;
  readonly aliases: Aliases;
  complete(ask: Ask<'chat'>, init: CallInit): Promise<ChatAnswer>;
  stream(ask: Ask<'chat'>, init: CallInit): Promise<ChatStream>;
  readonly keepAliveMs: number;
}

type Targets = Pick<Ask<'chat'>, 'targets' | 'requested'>;

/** Chat completions on both surfaces: the provider in the path, or in the model. */
export function chatRoutes(deps: ChatRouteDeps): readonly Route<Schema>[] {
  const route = (
    path: string,
    summary: string,
    find: (ctx: RouteContext, model: string) => Targets,
  ): Route<Schema> => ({
    method: 'POST',
    path,
    summary,
    description:
      'A stream of server-sent events when `stream` is true, whatever `Accept` says. Fields beyond the listed ones are carried to the provider where it has them.',
    auth: ['key'],
    body: CHAT_REQUEST,
    responses: { 200: { description: 'The completion.', schema: CHAT_RESPONSE } },
    handler(ctx) {
      const request = ctx.state.body as unknown as ChatRequest;
      return handleChat(deps, ctx as RouteContext, {
        operation: 'chat',
        request,
        stream: request.stream === true,
        ...find(ctx as RouteContext, request.model),
      });
    },
  });
  return [
    route('/api/core/:provider/chat/completions', 'Chat completion by one provider', (ctx, model) => ({
      targets: [targetOfPath(deps.catalog, ctx.params['provider'] ?? '', model)],
    })),
    route('/v1/chat/completions', 'Chat completion; the model is `provider/model` or an alias', (_ctx, model) =>
      requestedTargets(deps, model),
    ),
  ];
}

/** What every route passes into the pipeline. */
export function callInit(ctx: RouteContext): CallInit {
  const { requestId, principal, signal, onOutcome } = ctx.state;
  return { requestId, principal, signal, onOutcome };
}

async function handleChat(deps: ChatRouteDeps, ctx: RouteContext, ask: Ask<'chat'>): Promise<void> {
  if (ask.stream) return streamAnswer(deps, ctx, ask);
  const answer = await deps.complete(ask, callInit(ctx));
  sendAnswer(ctx, answer, JSON.stringify(answer.response));
}

/** Writes what comes as it comes, and waits for a caller that is behind. */
async function relay(stream: ChatStream, writer: SseWriter): Promise<void> {
  for await (const chunk of stream.chunks) {
    if (!writer.write(formatData(JSON.stringify(chunk)))) await writer.drained();
  }
}

/**
 * Streams to the caller. While the provider is silent the stream opens with a comment, so that proxies keep it; a target
 * that then fails can still be replaced, since nothing of an answer was sent.
 */
async function streamAnswer(deps: ChatRouteDeps, ctx: RouteContext, ask: Ask<'chat'>): Promise<void> {
  const writer = createSseWriter(ctx.res, { keepAliveMs: deps.keepAliveMs, signal: ctx.state.signal });
  let opened = false;
  const open = (headers: Record<string, string> = {}): void => {
    if (opened) return;
    opened = true;
    ctx.respond = false;
    ctx.status = 200;
    ctx.set(headers);
    writer.start();
  };
  const silence = setTimeout(() => {
    open();
    writer.write(KEEP_ALIVE);
  }, deps.keepAliveMs);
  let stream: ChatStream | undefined;
  try {
    stream = await deps.stream(ask, callInit(ctx));
    clearTimeout(silence);
    open(answerHeaders(stream));
    await relay(stream, writer);
    writer.write(DONE);
    writer.end();
  } catch (thrown) {
    clearTimeout(silence);
    // oxlint-disable-next-line typescript/no-unnecessary-condition -- `open` above changes it
    if (!opened) throw thrown;
    if (isGatewayError(thrown) || !ctx.state.signal.aborted)
      writer.fail(toGatewayError(thrown).toBody(ctx.state.requestId));
  } finally {
    stream?.close();
  }
}
