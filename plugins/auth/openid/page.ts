import { type GatewayError, isGatewayError, type PluginApi, type RouteContext } from '../../../core/index.ts';
import { LOGIN_PATH } from './paths.ts';

/** Nothing but text is shown, and nowhere but in a window of its own. */
const HEADERS = Object.freeze({
  'content-security-policy': "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
});

/** What no browser keeps, and whose address it tells nobody. */
export function keepPrivate(ctx: RouteContext): void {
  ctx.set({ 'cache-control': 'no-store', 'referrer-policy': 'no-referrer' });
}

/** Shows an error of a sign-in to a person as a page; a program gets it as every other error. */
export async function showErrors(ctx: RouteContext, log: PluginApi['log'], work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    if (!isGatewayError(error)) throw error;
    const { requestId } = ctx.state;
    log.info(
      { request_id: requestId, code: error.code, ...(error.cause !== undefined && { reason: reasonOf(error.cause) }) },
      'a sign-in was refused',
    );
    if (ctx.accepts('json', 'html') !== 'html') throw error;
    ctx.status = error.status;
    ctx.set({ ...HEADERS, ...error.headers });
    if (error.retryAfterMs !== undefined) ctx.set('retry-after', String(Math.ceil(error.retryAfterMs / 1000)));
    ctx.type = 'text/html; charset=utf-8';
    ctx.body = pageOf(error, requestId);
  }
}

/** The words of an error beneath, and of the one beneath that: `fetch` says only there what failed. */
function reasonOf(cause: unknown): string {
  if (!(cause instanceof Error)) return 'unknown';
  return [cause.message, ...(cause.cause === undefined ? [] : [reasonOf(cause.cause)])].join(': ').slice(0, 500);
}

function pageOf({ status, message }: GatewayError, requestId: string): string {
  const title = status === 403 ? 'You may not come in' : 'You are not signed in';
  return `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${title}</title></head>
<body>
<h1>${title}</h1>
<p>${escapeHtml(message)}</p>
<p><a href="${LOGIN_PATH}">Sign in again</a></p>
<p><small>Request ${escapeHtml(requestId)}</small></p>
</body>
</html>
`;
}

const ESCAPES: Readonly<Record<string, string>> = Object.freeze({
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
});

function escapeHtml(text: string): string {
  return text.replaceAll(/[&<>"']/g, (sign) => ESCAPES[sign] ?? '');
}
