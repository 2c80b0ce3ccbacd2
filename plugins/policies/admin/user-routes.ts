import type { Route, RouteContext } from '../../../core/index.ts';
import { auditActor, FOR_OPERATORS, matchVersion, sendVersion } from '../../../core/operators.ts';
import type { UserOperations, UserVersion } from './user-operations.ts';

const PATH = '/api/core/admin/users/:id';

const TEXT_OR_NULL = { type: ['string', 'null'] } as const;
const USER = {
  type: 'object',
  required: ['object', 'id', 'blocked_at', 'blocked_reason'],
  properties: {
    object: { const: 'user' },
    id: { type: 'string' },
    blocked_at: { ...TEXT_OR_NULL, description: 'Since when; ISO 8601.' },
    blocked_reason: TEXT_OR_NULL,
  },
} as const;

const BLOCK_BODY = {
  type: 'object',
  additionalProperties: false,
  properties: {
    reason: {
      type: 'string',
      maxLength: 200,
      pattern: '^[^\\u0000-\\u001f\\u007f]*$',
      description: 'Why; shown to operators.',
    },
  },
} as const;
const NO_BODY = { type: 'object', additionalProperties: false, properties: {} } as const;

/** `/api/core/admin/users/:id`: anyone whom a key or token names; an id with a slash is sent as `%2F`. */
export function userRoutes(operations: UserOperations): readonly Route[] {
  const responses = { 200: { description: 'The user, with its version as ETag.', schema: USER } };
  const write = (
    word: string,
    summary: string,
    body: object,
    act: (ctx: RouteContext<unknown>, id: string, expected: number | undefined) => Promise<UserVersion>,
  ): Route => ({
    ...{ ...FOR_OPERATORS, method: 'POST', path: `${PATH}/${word}`, summary, body, bodyOptional: true, responses },
    async handler(ctx) {
      const id = idOf(ctx);
      const { version } = await operations.find(id);
      send(ctx, await act(ctx, id, matchVersion(ctx, version) ? version : undefined));
    },
  });
  return [
    {
      ...{ ...FOR_OPERATORS, method: 'GET', path: PATH, summary: 'Show whether a user is blocked', responses },
      async handler(ctx) {
        send(ctx, await operations.find(idOf(ctx)));
      },
    },
    write('block', 'Block a user, with all keys and tokens, until unblocked', BLOCK_BODY, (ctx, id, expected) => {
      const { reason } = (ctx.state.body ?? {}) as { readonly reason?: string };
      return operations.block(auditActor(ctx), id, reason, expected);
    }),
    write('unblock', 'Unblock a user', NO_BODY, (ctx, id, expected) =>
      operations.unblock(auditActor(ctx), id, expected),
    ),
  ];
}

function send(ctx: RouteContext<unknown>, { version, user }: UserVersion): void {
  sendVersion(ctx, version, user);
}

function idOf({ params }: Pick<RouteContext<unknown>, 'params'>): string {
  return params['id'] ?? '';
}
