import type { Principal, Route } from '../../../contract/index.ts';

const QUERY = {
  type: 'object',
  additionalProperties: false,
  properties: { session: { type: 'string', minLength: 1, maxLength: 128, description: 'Delete only this session.' } },
} as const;

const WIPED = {
  type: 'object',
  required: ['message', 'deleted'],
  properties: { message: { type: 'string' }, deleted: { type: 'integer' } },
} as const;

/** `DELETE <path>?session=`: wipes one or all of the caller's sessions; `wipe` returns the number that had content. */
export function memoryRoute(
  path: string,
  summary: string,
  wipe: (principal: Principal, session: string | undefined) => Promise<number>,
): Route {
  return {
    method: 'DELETE',
    path,
    summary,
    auth: ['key'],
    query: QUERY,
    responses: { 200: { description: 'Number of deleted sessions.', schema: WIPED } },
    async handler(ctx) {
      const { session } = ctx.query;
      const deleted = await wipe(ctx.state.principal, typeof session === 'string' ? session : undefined);
      ctx.body = { message: deleted === 1 ? 'One session was deleted.' : `${deleted} sessions were deleted.`, deleted };
    },
  };
}
