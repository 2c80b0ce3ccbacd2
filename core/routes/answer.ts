import type { AnswerNotes } from '../pipeline/chat.ts';
import type { RouteContext } from '../plugin.ts';
import { formatUsd } from '../units.ts';

/** Header values are Latin-1 at most: a model's name from a caller is percent-encoded where it is not. */
function headerSafe(text: string): string {
  return /^[\x20-\x7e]*$/.test(text) ? text : encodeURIComponent(text);
}

/** The headers that tell how an answer came about (contract section 1). */
export function answerHeaders(notes: AnswerNotes): Record<string, string> {
  const { call, target, dropped, rateLimits } = notes;
  const { attempts, cost, upstreamMs } = call.measures;
  const headers: Record<string, string> = {
    ...rateLimits,
    'x-tollgate-provider': target.provider,
    'x-tollgate-model': headerSafe(target.model),
    'x-tollgate-attempts': String(attempts),
    'server-timing': `gateway;dur=${Math.max(call.elapsedMs - upstreamMs, 0).toFixed(2)}, upstream;dur=${upstreamMs.toFixed(2)}`,
  };
  if (dropped.length > 0) headers['x-tollgate-dropped'] = headerSafe(dropped.join(', '));
  if (call.measures.usage) headers['x-tollgate-cost-usd'] = cost === undefined ? 'unknown' : formatUsd(cost);
  return headers;
}

/** Answers JSON with the notes of its call. Headers go straight to Node: Koa would look up what is known here. */
export function sendAnswer(ctx: RouteContext<never> | RouteContext, notes: AnswerNotes, response: unknown): void {
  const { res } = ctx;
  const headers = answerHeaders(notes);
  for (const name in headers) res.setHeader(name, headers[name] ?? '');
  res.setHeader('content-type', 'application/json; charset=utf-8');
  ctx.status = 200;
  ctx.body = JSON.stringify(response);
}
