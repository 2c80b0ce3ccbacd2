import type { Counter } from '../calls/count.ts';
import type { DialectDefinition } from '../contract/dialect.ts';
import type { RouteContext } from '../contract/plugin.ts';
import type { Conversation } from './respond-stream.ts';

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
