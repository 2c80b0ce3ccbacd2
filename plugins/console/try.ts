import { GatewayError, type Principal, type Route, type RouteContext } from '../../contract/index.ts';
import { randomId } from '../auth/kit/random-id.ts';
import { FOR_OPERATORS } from '../policies/kit/index.ts';
import { ADMIN_PREFIX } from './browser.ts';

const PREFIX = '/api/core/admin/console/try';

/** Requests that `/docs` sends for a signed-in person. */
export interface Tries {
  readonly routes: readonly Route[];
  /** Returns the sender of the request with a credential, once; undefined for any other credential. */
  take(credential: string): Principal | undefined;
}

/**
 * Forwards a request to a caller route as the signed-in person, so that no key has to be pasted. The browser's cookie
 * is not forwarded. The forwarded credential never leaves this process and is valid for this request alone.
 */
export function createTries(): Tries {
  const callers = new Map<string, Principal>();
  const send = async (ctx: RouteContext): Promise<void> => {
    const { principal, requestId, signal } = ctx.state;
    const path = (ctx.req.url ?? '').slice(PREFIX.length);
    if (path.startsWith(ADMIN_PREFIX) || !path.startsWith('/'))
      throw new GatewayError(
        'invalid_request',
        `Behind ${PREFIX} stands the path of a route that takes keys, such as ${PREFIX}/v1/models. Routes of operators take the session itself.`,
      );
    const credential = randomId();
    callers.set(credential, Object.freeze({ ...principal, credential: 'key' }));
    try {
      const response = await ctx.state.send({
        method: ctx.method,
        path,
        body: ctx.req,
        signal,
        headers: {
          ...passedOn(ctx.headers),
          host: ctx.headers.host,
          authorization: `Bearer ${credential}`,
          'x-request-id': requestId,
          'x-session-id': 'console',
        },
      });
      ctx.status = response.statusCode ?? 500;
      for (const [name, value] of Object.entries(passedOn(response.headers))) if (value) ctx.set(name, value);
      ctx.set('cache-control', 'no-store');
      ctx.body = response;
    } finally {
      callers.delete(credential);
    }
  };
  return {
    routes: (['GET', 'POST', 'DELETE'] as const).map((method) => route(method, send)),
    take(credential) {
      const found = callers.get(credential);
      callers.delete(credential);
      return found;
    },
  };
}

function route(method: 'GET' | 'POST' | 'DELETE', handler: Route['handler']): Route {
  return {
    ...FOR_OPERATORS,
    scope: 'models:call',
    method,
    path: `${PREFIX}/*path`,
    summary: 'Send a request to another route as the person who signed in',
    description:
      'The method, query and body are those of the route that is named behind it, and so is the response. For `/docs`: programs send a key to the route itself.',
    responses: { 200: { description: 'What the route responds with.', contentType: 'application/json' } },
    handler,
  };
}

/** Headers of one connection, of the browser, and credentials, which are not forwarded. */
const NOT_PASSED =
  /^(?:connection|keep-alive|te|trailer|upgrade|expect|transfer-encoding|date|host|origin|referer|cookie|set-cookie|authorization|x-api-key|x-goog-api-key|x-request-id|request-id|x-session-id|forwarded|via|x-forwarded-.*|x-real-ip|sec-.*)$/;

function passedOn(headers: RouteContext['headers']): Record<string, string | string[]> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined || NOT_PASSED.test(name) ? [] : [[name, value]],
    ),
  );
}
