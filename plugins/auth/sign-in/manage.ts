import { GatewayError, type PluginApi } from '../../../contract/index.ts';
import { type Resource, resource, textOf, WITHIN } from '../../policies/kit/resource.ts';
import type { FoundSignIn, SignIns } from './sign-ins.ts';

/** Sign-in as shown to operators. */
interface ShownSignIn {
  readonly object: 'sign_in';
  readonly id: string;
  readonly user_id: string;
  readonly program: string;
  readonly address: string;
  readonly started_at: string;
  readonly ends_at: string;
}

const FIELDS = {
  object: { const: 'sign_in' },
  id: { type: 'string' },
  user_id: { type: 'string' },
  program: { type: 'string', description: 'Name of the program.' },
  address: { type: 'string', description: 'Client address at the start of the sign-in.' },
  started_at: { type: 'string', description: 'ISO 8601.' },
  ends_at: { type: 'string', description: 'Time at which the person must sign in again.' },
} as const;
const SIGN_IN = { type: 'object', required: Object.keys(FIELDS), properties: FIELDS };
const ID = /^si_[\w-]{22}$/;

function show({ id, userId, program, address, startedAt, endsAt }: FoundSignIn): ShownSignIn {
  return {
    object: 'sign_in',
    id,
    user_id: userId,
    program,
    address,
    started_at: new Date(startedAt).toISOString(),
    ends_at: new Date(endsAt).toISOString(),
  };
}

/**
 * `/api/core/admin/sign-ins` and `tollgate users sign-ins`: lets operators list and end sign-ins of people's programs.
 */
export function registerSignIns(api: Pick<PluginApi, 'route' | 'command' | 'operators'>, signIns: SignIns): void {
  const notFound = (): GatewayError =>
    new GatewayError('not_found', 'Sign-in not found or ended. "sign-ins list --user <id>" shows all sign-ins.');
  const table: Resource<FoundSignIn | undefined, number> = {
    name: 'sign-in',
    path: '/api/core/admin/sign-ins',
    id: 'id',
    schema: SIGN_IN,
    notFound,
    scopes: { read: 'users:read', write: 'users:write' },
    response: 'The sign-in.',
    command: {
      name: 'sign-ins',
      summary: 'List and revoke sign-ins of programs',
      id: { name: '<id>', summary: 'id of the sign-in, see "sign-ins list"' },
    },
    find: async (id) => ({ version: 1, value: ID.test(id) ? await signIns.get(id, Date.now()) : undefined }),
  };
  resource(api, table, (make) => [
    make.list<ShownSignIn>({
      http: {
        summary: 'List the signed-in programs of a person',
        response: 'Returns at most 1,000 sign-ins of one user, sorted by their end.',
        schema: SIGN_IN,
        filters: { user: { type: 'string', minLength: 1, maxLength: 300, description: 'User id; required.' } },
      },
      async read({ limit, filters }) {
        const user = textOf(filters, 'user');
        if (user === undefined)
          throw new GatewayError('invalid_request', '--user is missing. Set the user whose sign-ins to list.', {
            param: 'user',
          });
        return { rows: (await signIns.ofUser(user, Date.now())).slice(0, limit).map(show) };
      },
      cli: {
        options: [{ flags: '--user <id>', summary: 'user', required: true }],
        columns: [
          ['ID', ({ id }) => id],
          ['PROGRAM', ({ program }) => program],
          ['FROM', ({ address }) => address],
          ['STARTED UTC', ({ started_at }) => started_at.slice(0, 16).replace('T', ' ')],
          ['ENDS UTC', ({ ends_at }) => ends_at.slice(0, 16).replace('T', ' ')],
        ],
        empty: 'This person has no signed-in programs.',
      },
    }),
    make.change({
      word: 'end',
      http: {
        method: 'DELETE',
        summary: 'End a sign-in and revoke its tokens',
        response: 'The ended sign-in.',
      },
      async apply({ id, found: { value }, now }) {
        if (!value) throw notFound();
        await signIns.end(id, now);
        const { userId, program } = value;
        return { subject: userId, before: { program }, show: () => show(value) };
      },
      cli: {
        summary: 'End a sign-in and revoke its tokens',
        text: ({ user_id }) => `Ended a sign-in of ${user_id}; ${WITHIN}.`,
      },
    }),
  ]);
}
