import { mergeStates, ROUTING_TOPIC, targetRows } from '../../calls/routing/routing-states.ts';
import type { ReloadControl, ReloadReport } from '../../config/reload-report.ts';
import { type AuditChange, auditActor } from '../../contract/audit.ts';
import { GatewayError } from '../../contract/errors.ts';
import { readObject, type Schema } from '../../contract/json.ts';
import type { Route } from '../../contract/plugin.ts';
import type { RoutingState } from '../../contract/routing.ts';
import { FOR_OPERATORS, listOf, PAGE_QUERY, readPage, sendList } from '../operator-routes.ts';

export interface AdminRouteDeps {
  /** What all processes of the gateway answer about a topic. */
  gather(topic: string): Promise<readonly unknown[]>;
  /** How the configuration is read anew; undefined in a program that does it itself. */
  reloads(): ReloadControl | undefined;
  audit(change: AuditChange): Promise<void>;
}

/** What operators ask of a gateway whatever its plugins are. */
export function adminRoutes(deps: AdminRouteDeps): readonly Route[] {
  return [targetsRoute(deps), reloadRoute(deps)];
}

const TARGET_ROW: Schema = {
  type: 'object',
  required: ['target', 'provider', 'model', 'state', 'error_ratio', 'attempts'],
  properties: {
    target: { type: 'string', description: '`provider/model`' },
    provider: { type: 'string' },
    model: { type: 'string' },
    state: { enum: ['closed', 'half-open', 'open'], description: 'Of several processes the worst.' },
    cause: { enum: ['rate_limit', 'credential', 'failures', 'shared'] },
    open_until: { type: 'string', description: 'Until when it is left alone.' },
    error_ratio: { type: 'number', description: 'The share of its latest attempts that failed.' },
    attempts: { type: 'integer' },
    whole_ms: { type: 'number', description: 'What a whole response takes lately.' },
    first_token_ms: { type: 'number', description: 'What the first token of a stream takes lately.' },
    last_error: {
      type: 'object',
      required: ['at', 'message'],
      properties: {
        at: { type: 'string' },
        message: { type: 'string', description: 'The words of the vendor or the network, secrets cut out.' },
        class: { type: 'string' },
        status: { type: 'integer' },
        errno: { type: 'string' },
        request_id: { type: 'string' },
      },
    },
  },
};

const RETRIES: Schema = {
  type: 'object',
  required: ['running', 'allowed', 'refused'],
  properties: { running: { type: 'integer' }, allowed: { type: 'integer' }, refused: { type: 'integer' } },
};

function targetsRoute({ gather }: AdminRouteDeps): Route {
  return {
    ...{ ...FOR_OPERATORS, method: 'GET', path: '/api/core/admin/targets' },
    summary: 'The targets that were tried: state, errors, latency, the last error',
    query: { type: 'object', additionalProperties: false, properties: PAGE_QUERY },
    responses: { 200: { description: 'By name.', schema: listOf(TARGET_ROW, { retries: RETRIES }) } },
    async handler(ctx) {
      const { limit, after = '' } = readPage(ctx);
      const state = mergeStates((await gather(ROUTING_TOPIC)) as readonly RoutingState[]);
      const rest = targetRows(state).filter(({ target }) => target > after);
      const next = rest.length > limit ? rest[limit - 1]?.target : undefined;
      sendList(ctx, rest.slice(0, limit), next, { retries: state.retries });
    },
  };
}

const RELOAD_BODY = {
  type: 'object',
  additionalProperties: false,
  properties: { diff: { type: 'boolean', description: 'Only say what a reload would change.' } },
} satisfies Schema;

const RELOAD_RESPONSE: Schema = {
  type: 'object',
  required: ['object', 'file', 'reloaded', 'changes'],
  properties: {
    object: { const: 'reload' },
    file: { type: 'string', description: 'The configuration’s name for people.' },
    reloaded: { type: 'boolean', description: 'Whether it serves now.' },
    changes: {
      type: 'array',
      items: {
        type: 'object',
        required: ['path', 'needs_restart'],
        properties: {
          path: { type: 'string' },
          before: { type: 'string', description: 'As JSON, secrets masked; absent for what is new.' },
          after: { type: 'string' },
          needs_restart: { type: 'boolean' },
        },
      },
    },
  },
};

function reloadRoute({ reloads, audit }: AdminRouteDeps): Route {
  return {
    ...{ ...FOR_OPERATORS, method: 'POST', path: '/api/core/admin/reload' },
    summary: 'Read the configuration anew, as `tollgate reload` does',
    ...{ body: RELOAD_BODY, bodyOptional: true },
    responses: { 200: { description: 'What changed, or would.', schema: RELOAD_RESPONSE } },
    async handler(ctx) {
      const control = reloads();
      if (!control)
        throw new GatewayError(
          'feature_disabled',
          'This gateway is part of another program, which reads its configuration. Start it with `tollgate start`, or reload it there.',
        );
      const isTrial = readObject(ctx.state.body)['diff'] === true;
      const report = await (isTrial ? control.compare() : control.reload('the admin API'));
      const body = describeReport(report);
      if (!isTrial)
        await audit({ actor: auditActor(ctx), action: 'configuration.reload', subject: report.file, after: body });
      ctx.set('cache-control', 'no-store');
      ctx.body = body;
    },
  };
}

/** What came of it; a configuration that was refused is an error. */
function describeReport({ file, isReloaded, changes, problem, summary = problem }: ReloadReport): object {
  if (summary !== undefined) throw new GatewayError('conflict', `Nothing was changed: ${summary}`);
  const rows = changes.map(({ needsRestart, ...change }) => ({ ...change, needs_restart: needsRestart }));
  return { object: 'reload', file, reloaded: isReloaded, changes: rows };
}
