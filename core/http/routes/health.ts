import type { Schema } from '../../contract/json.ts';
import type { Route } from '../../contract/plugin.ts';
import type { Phase } from '../lifecycle.ts';

export interface HealthRouteDeps {
  phase(): Phase;
  /** Why the last reload was refused; undefined when it was not. */
  reloadProblem(): string | undefined;
  /** Resolves when the store answers. */
  storeHealth(): Promise<void>;
  /** The OpenAPI document as JSON text, made once. */
  openApi(): string;
}

const HEALTH: Schema = {
  type: 'object',
  required: ['status'],
  properties: { status: { type: 'string' }, checks: { type: 'object' } },
};

/** How long the store may take to answer a readiness check. */
const STORE_CHECK_MS = 1000;

/**
 * `/livez`: the process answers, also while draining, so that nothing kills it. `/readyz` (and `/healthz`): it takes
 * requests, and its store answers. A configuration that was refused is told beside: the one before it still serves.
 */
export function healthRoutes(deps: HealthRouteDeps): readonly Route[] {
  const ready = async (ctx: { status: number; body: unknown }) => {
    const phase = deps.phase();
    const store = phase === 'ready' ? await storeState(deps) : 'not asked';
    const isReady = phase === 'ready' && store === 'ok';
    ctx.status = isReady ? 200 : 503;
    const problem = deps.reloadProblem();
    const checks = { store, ...(problem !== undefined && { reload: problem }) };
    ctx.body = { status: isReady ? 'ready' : phase === 'ready' ? 'not ready' : phase, checks };
  };
  const health = (path: string, summary: string, handler: Route['handler']): Route => ({
    method: 'GET',
    path,
    summary,
    auth: 'none',
    isProbe: true,
    responses: { 200: { description: 'Yes.', schema: HEALTH }, 503: { description: 'No.', schema: HEALTH } },
    handler,
  });
  return [
    health('/livez', 'Is the process alive?', (ctx) => {
      ctx.body = { status: 'alive' };
    }),
    health('/readyz', 'Does it take requests?', ready),
    health('/healthz', 'The same as /readyz', ready),
    {
      method: 'GET',
      path: '/openapi.json',
      summary: 'This document',
      auth: 'none',
      responses: { 200: { description: 'OpenAPI 3.1.', contentType: 'application/json' } },
      handler(ctx) {
        ctx.type = 'application/json; charset=utf-8';
        ctx.body = deps.openApi();
      },
    },
  ];
}

async function storeState({ storeHealth }: HealthRouteDeps): Promise<'ok' | 'unavailable'> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<'unavailable'>((resolve) => {
    timer = setTimeout(() => resolve('unavailable'), STORE_CHECK_MS);
  });
  try {
    return await Promise.race([storeHealth().then(() => 'ok' as const), late]);
  } catch {
    return 'unavailable';
  } finally {
    clearTimeout(timer);
  }
}
