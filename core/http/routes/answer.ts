import type { AnswerNotes } from '../../calls/open-chat.ts';
import type { RouteContext } from '../../contract/plugin.ts';
import { formatUsd } from '../../contract/units.ts';

/** Header values are Latin-1 at most: a model's name from a caller is percent-encoded where it is not. */
function headerSafe(text: string): string {
  return /^[\x20-\x7e]*$/.test(text) ? text : encodeURIComponent(text);
}

type SetHeader = (name: string, value: string) => void;

/** Tells by headers how an answer came about (contract section 1). */
function tellHeaders({ call, target, dropped, rateLimits }: AnswerNotes, set: SetHeader): void {
  const { attempts, cost, upstreamMs, usage } = call.measures;
  for (const name in rateLimits) set(name, rateLimits[name] ?? '');
  set('x-tollgate-provider', target.provider);
  set('x-tollgate-model', headerSafe(target.model));
  set('x-tollgate-attempts', String(attempts));
  const gatewayMs = Math.max(call.elapsedMs - upstreamMs, 0);
  set('server-timing', `gateway;dur=${gatewayMs.toFixed(2)}, upstream;dur=${upstreamMs.toFixed(2)}`);
  if (dropped.length > 0) set('x-tollgate-dropped', headerSafe(dropped.join(', ')));
  if (usage) set('x-tollgate-cost-usd', cost === undefined ? 'unknown' : formatUsd(cost));
}

/** The same as an object, for streams. */
export function answerHeaders(notes: AnswerNotes): Record<string, string> {
  const headers: Record<string, string> = {};
  tellHeaders(notes, (name, value) => {
    headers[name] = value;
  });
  return headers;
}

/** Answers JSON with the notes of its call. Headers go straight to Node: Koa would look up what is known here. */
export function sendAnswer(ctx: RouteContext<never> | RouteContext, notes: AnswerNotes, json: string): void {
  const { res } = ctx;
  tellHeaders(notes, (name, value) => res.setHeader(name, value));
  res.setHeader('content-type', 'application/json; charset=utf-8');
  ctx.status = 200;
  ctx.body = json;
}
