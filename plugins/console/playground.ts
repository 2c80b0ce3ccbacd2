import {
  type CallContext,
  CHAT_REQUEST,
  type ChatRequest,
  formatUsd,
  GatewayError,
  openEventStream,
  type PluginApi,
  type Route,
  type RouteContext,
  toGatewayError,
} from '../../contract/index.ts';
import { FOR_OPERATORS } from '../policies/kit/index.ts';

/**
 * Chat of a signed-in person without a key: charged to the person's own name, with the permissions of the session's
 * credential.
 */
export function playgroundRoute(api: Pick<PluginApi, 'chat'>): Route {
  return {
    ...FOR_OPERATORS,
    scope: 'models:call',
    method: 'POST',
    path: '/api/core/admin/console/chat',
    summary: 'A chat from the console, booked under the person who signed in',
    description:
      'The body and the response are those of `/v1/chat/completions`. A stream ends with an event `done`, which says what it cost.',
    body: CHAT_REQUEST,
    responses: { 200: { description: 'The response, or its events.', contentType: 'application/json' } },
    async handler(ctx) {
      const request = ctx.state.body as ChatRequest;
      if (request.tools?.some((tool: { readonly type: string }) => tool.type === 'mcp'))
        throw new GatewayError('invalid_request', 'MCP servers are not offered here. Use `/v1/chat/completions`.', {
          param: 'tools',
        });
      let done: object = {};
      const { principal, requestId, signal, trace } = ctx.state;
      const context: CallContext = {
        principal,
        requestId,
        signal,
        trace,
        session: 'console',
        onOutcome(call, outcome) {
          ctx.state.onOutcome(call, outcome);
          const { cost, durationMs, firstByteMs, firstTokenMs, usage, target } = outcome;
          done = {
            request_id: requestId,
            target: target ? `${target.provider}/${target.model}` : null,
            cost_usd: cost === undefined ? null : formatUsd(cost),
            duration_ms: durationMs,
            first_byte_ms: firstByteMs ?? null,
            first_token_ms: firstTokenMs ?? null,
            usage: usage ?? null,
          };
        },
      };
      ctx.set('cache-control', 'no-store');
      if (request.stream === true) await respondStream(api, { ...request, stream: true }, context, ctx, () => done);
      else ctx.body = await api.chat({ ...request, stream: false }, context);
    },
  };
}

async function respondStream(
  api: Pick<PluginApi, 'chat'>,
  request: ChatRequest & { readonly stream: true },
  context: CallContext,
  ctx: RouteContext,
  readDone: () => object,
): Promise<void> {
  const writer = openEventStream(ctx);
  try {
    const chunks = await api.chat(request, context);
    writer.start();
    for await (const chunk of chunks) {
      writer.write(`data: ${JSON.stringify(chunk)}\n\n`);
      await writer.drained();
      if (writer.closed) return;
    }
    writer.write(`event: done\ndata: ${JSON.stringify(readDone())}\n\n`);
    writer.end();
  } catch (error) {
    if (!writer.started) throw error;
    writer.fail(toGatewayError(error).toBody());
  }
}
