import { createHash } from 'node:crypto';
import { isObject, type Route, type RouteContext } from '../../../contract/index.ts';
import type { SignInConfig } from './config-schema.ts';
import { ACCESS_PREFIX, type SignIns } from './sign-ins.ts';

/** Settings for a group of people, as sent. */
interface Policy {
  readonly groups: readonly string[] | undefined;
  /** `sha256:` and the hash of the settings; also the entity tag. */
  readonly checksum: string;
  readonly settings: object;
}

/** `GET /managed/settings`: company settings for Claude Code, which requests them hourly. */
export function settingsRoute(config: SignInConfig['managedSettings'], signIns: Pick<SignIns, 'find'>): Route {
  const policies = (config ?? []).map(readPolicy);
  return {
    method: 'GET',
    path: '/managed/settings',
    auth: ['key'],
    summary: 'Managed settings of Claude Code for the signed-in person',
    responses: {
      200: {
        description: 'The settings; the checksum is the entity tag.',
        schema: {
          type: 'object',
          required: ['uuid', 'checksum', 'settings'],
          properties: { uuid: { type: 'string' }, checksum: { type: 'string' }, settings: { type: 'object' } },
        },
      },
      304: 'Unchanged since `if-none-match`.',
      404: 'No settings for this person.',
    },
    async handler(ctx) {
      const { words } = (await findSignIn(ctx, signIns)) ?? {};
      const policy = words && policies.find(({ groups }) => !groups || groups.some((group) => words.includes(group)));
      ctx.set('cache-control', 'private, no-cache');
      if (!policy) {
        ctx.status = 404;
        ctx.body = { error: { message: 'This gateway has no managed settings for you.', code: 'not_found' } };
        return;
      }
      const { checksum, settings } = policy;
      const tag = `"${checksum}"`;
      ctx.set('etag', tag);
      if (ctx.get('if-none-match') === tag) ctx.status = 304;
      else ctx.body = { uuid: checksum, checksum, settings };
    },
  };
}

/** Finds the sign-in of a request; a key of the gateway is not one. */
async function findSignIn(ctx: RouteContext, signIns: Pick<SignIns, 'find'>): ReturnType<SignIns['find']> {
  const sent = [ctx.get('authorization').replace(/^bearer\s+/i, ''), ctx.get('x-api-key')];
  const token = sent.map((each) => each.trim()).find((each) => each.startsWith(ACCESS_PREFIX));
  return token === undefined ? undefined : signIns.find(token, Date.now());
}

function readPolicy({ groups, settings }: NonNullable<SignInConfig['managedSettings']>[number]): Policy {
  const text = JSON.stringify(sortKeys(settings));
  return { groups, settings, checksum: `sha256:${createHash('sha256').update(text).digest('hex')}` };
}

/** The client hashes its settings with sorted keys and without white space. */
function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (!isObject(value)) return value;
  const entries = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(entries.map(([name, member]) => [name, sortKeys(member)]));
}
