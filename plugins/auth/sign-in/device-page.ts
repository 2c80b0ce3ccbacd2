import { createHash } from 'node:crypto';
import { GatewayError, isGatewayError, type Route, type RouteContext } from '../../../contract/index.ts';
import { type Cookies, escapeHtml, refuseOtherOrigin } from '../kit/cookies.ts';
import { DEVICE_PATH, type Introduction } from '../kit/introductions.ts';
import { deriveSecret, isSame } from '../kit/random-id.ts';
import type { Secrets } from '../kit/secrets.ts';
import { type FoundGrant, readUserCode } from './grants.ts';
import { type OAuthParts, readForm } from './oauth-routes.ts';

/** Dependencies of the page. */
export interface DeviceParts extends OAuthParts {
  readonly cookies: Pick<Cookies, 'person'>;
  /** People who signed in for the page, by their browser's cookie. */
  readonly introductions: Pick<Secrets<Introduction>, 'find'>;
}

/**
 * Page on which a person approves a program: it shows the code, lets the person sign in, and asks for confirmation. A
 * link alone approves nothing.
 */
export function deviceRoutes(parts: DeviceParts): readonly Route[] {
  const page = { contentType: 'text/html', description: 'HTML page.' };
  return [
    {
      method: 'GET',
      path: DEVICE_PATH,
      auth: 'none',
      summary: 'Page on which a person approves the sign-in of a program',
      query: {
        type: 'object',
        properties: { user_code: { type: 'string', description: 'Code shown by the program.' } },
      },
      responses: { 200: page, 400: page, 403: page, 429: page },
      handler: (ctx) => show(ctx, parts, () => look(ctx, parts)),
    },
    {
      method: 'POST',
      path: DEVICE_PATH,
      auth: 'none',
      summary: 'Approve or deny the sign-in of a program',
      description: 'Accepts a form of that page with `user_code`, `decision` (`approve` or `refuse`) and `proof`.',
      responses: { 200: page, 400: page, 403: page, 429: page },
      handler: (ctx) => show(ctx, parts, () => decide(ctx, parts)),
    },
  ];
}

/** Content of a page. */
interface Page {
  readonly title: string;
  /** HTML. */
  readonly body: string;
  readonly status?: number;
}

async function look(ctx: RouteContext, parts: DeviceParts): Promise<Page> {
  const { basePath } = parts.options;
  const [typed, ...more] = new URLSearchParams(ctx.querystring).getAll('user_code');
  if (more.length > 0)
    throw new GatewayError('invalid_request', '"user_code" is duplicated. Send it once.', { param: 'user_code' });
  if (typed === undefined || typed === '') return enterPage(basePath);
  const code = readUserCode(typed);
  await parts.count('code', ctx.state.ip, Date.now());
  const found = code === undefined ? undefined : await parts.grants.find(code, Date.now());
  if (code === undefined || !found)
    return {
      ...enterPage(basePath, 'This code is invalid, was already used or has expired. Start again in the program.'),
      status: 400,
    };
  const person = await findPerson(ctx, parts, code);
  if (!person) return signInPage(basePath, code, found);
  await parts.refuse(person.introduction);
  return approvePage(basePath, code, found, person);
}

async function decide(ctx: RouteContext, parts: DeviceParts): Promise<Page> {
  const { options, cookies, grants, audit } = parts;
  refuseOtherOrigin({ method: ctx.method, headers: ctx.headers }, options.origin);
  const now = Date.now();
  await parts.count('code', ctx.state.ip, now);
  const form = await readForm(ctx.req);
  const code = readUserCode(form.get('user_code') ?? '');
  const person = code === undefined ? undefined : await findPerson(ctx, parts, code);
  if (code === undefined || !person || !isSame(form.get('proof') ?? '', person.proof))
    throw new GatewayError(
      'permission_denied',
      'The sign-in of this browser for this code is missing or older than ten minutes. Open the link of the program again.',
    );
  const { userId } = person.introduction;
  await parts.refuse(person.introduction);
  const found = await grants.find(code, now);
  const { returnTo: _page, ...who } = person.introduction;
  const isApproved = form.get('decision') === 'approve';
  if (!found || !(await grants.decide(found, isApproved ? who : undefined, now)))
    throw new GatewayError('invalid_request', 'This code was already used or has expired. Start again in the program.');
  ctx.append('set-cookie', cookies.person.write(undefined));
  const { program } = found.grant;
  const actor = { via: 'console', userId, address: ctx.state.ip } as const;
  const action = isApproved ? 'sign-in.approve' : 'sign-in.refuse';
  await audit({ actor, action, subject: userId, after: { program, requested_from: found.grant.address } });
  return isApproved
    ? {
        title: 'You are signed in',
        body: `<p>Return to <b>${escapeHtml(program)}</b>. You can close this window.</p>`,
      }
    : { title: 'Refused', body: '<p>The program is not signed in. You can close this window.</p>' };
}

/** Person in this browser, with the proof that a form belongs to the page for this code. */
interface Present {
  readonly introduction: Introduction;
  readonly proof: string;
}

/** Returns the person who signed in with this browser for this very code. */
async function findPerson(
  ctx: RouteContext,
  { cookies, introductions }: DeviceParts,
  code: string,
): Promise<Present | undefined> {
  const id = cookies.person.read(ctx.headers.cookie);
  const introduction = id === undefined ? undefined : await introductions.find(id, Date.now());
  if (id === undefined || introduction?.returnTo !== pathOf(code)) return undefined;
  return { introduction, proof: deriveSecret(id, `approve ${code}`) };
}

function pathOf(code: string): string {
  return `${DEVICE_PATH}?user_code=${code}`;
}

function enterPage(basePath: string, problem?: string): Page {
  return {
    title: 'Sign in with a program',
    body: `${problem === undefined ? '' : `<p class="problem">${problem}</p>`}
<form method="get" action="${basePath}${DEVICE_PATH}">
<label>The code that the program shows
<input name="user_code" required autofocus autocomplete="off" autocapitalize="characters" spellcheck="false" maxlength="20" placeholder="BCDF-GHJK"></label>
<button>Continue</button>
</form>`,
  };
}

function signInPage(basePath: string, code: string, found: FoundGrant): Page {
  const login = `${basePath}/api/core/admin/login?return_to=${encodeURIComponent(pathOf(code))}`;
  return {
    title: 'Sign in with a program',
    body: `${describe(code, found)}
<p>Sign in only if you started this yourself and the program shows this code. If someone sent you the link, close this window.</p>
<p><a class="button" href="${escapeHtml(login)}">Sign in</a></p>`,
  };
}

function approvePage(basePath: string, code: string, found: FoundGrant, { introduction, proof }: Present): Page {
  const { userId, name, email } = introduction;
  const who = [name ?? userId, ...(email === undefined ? [] : [`(${email})`])].join(' ');
  return {
    title: 'Allow this program to act as you?',
    body: `${describe(code, found)}
<p>It will call models as <b>${escapeHtml(who)}</b>, at your cost. Approve only if you started this yourself and the program shows this code.</p>
<form method="post" action="${basePath}${DEVICE_PATH}">
<input type="hidden" name="user_code" value="${code}"><input type="hidden" name="proof" value="${proof}">
<button name="decision" value="approve">Approve</button>
<button name="decision" value="refuse" class="second">Deny</button>
</form>`,
  };
}

function describe(code: string, { grant: { program, address } }: FoundGrant): string {
  return `<p class="code">${code}</p>
<p>Requested by <b>${escapeHtml(program)}</b> from the address ${escapeHtml(address)}.</p>`;
}

/** Writes a page; errors are pages too. */
async function show(
  ctx: RouteContext,
  { options: { basePath }, log }: DeviceParts,
  work: () => Promise<Page>,
): Promise<void> {
  ctx.set(HEADERS);
  try {
    write(ctx, await work());
  } catch (error) {
    const { status, message, retryAfterMs } = problemOf(error);
    log.info({ request_id: ctx.state.requestId, status, reason: message }, 'approval of a program rejected');
    if (retryAfterMs !== undefined) ctx.set('retry-after', String(Math.ceil(retryAfterMs / 1000)));
    const again = `<p><a href="${basePath}${DEVICE_PATH}">Enter a code</a></p>`;
    write(ctx, { status, title: 'Sign-in failed', body: `<p class="problem">${escapeHtml(message)}</p>${again}` });
  }
}

function problemOf(error: unknown): {
  readonly status: number;
  readonly message: string;
  readonly retryAfterMs?: number | undefined;
} {
  if (isGatewayError(error)) return error;
  if (error instanceof Error && error.name === 'OAuthError') return { status: 400, message: error.message };
  throw error;
}

const STYLE = `body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:4rem auto;padding:0 1rem;color:#1c2024;background:#fff}
.code{font:600 2rem ui-monospace,monospace;letter-spacing:.1em}.problem{color:#a11}
input[name=user_code]{display:block;font:1.25rem ui-monospace,monospace;margin:.5rem 0;padding:.5rem;text-transform:uppercase}
button,.button{display:inline-block;font:inherit;padding:.5rem 1.25rem;border:1px solid #1c2024;border-radius:.4rem;background:#1c2024;color:#fff;text-decoration:none;cursor:pointer}
.second{background:#fff;color:#1c2024}
@media (prefers-color-scheme:dark){body{background:#16181b;color:#eceef0}.problem{color:#f88}button,.button{background:#eceef0;color:#16181b}.second{background:#16181b;color:#eceef0}}`;

/** No script, frame or other site. The referrer policy lets browsers send the form's origin, which must be ours. */
const HEADERS = Object.freeze({
  'cache-control': 'no-store',
  'content-security-policy': `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
  'x-frame-options': 'DENY',
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'same-origin',
});

function write(ctx: RouteContext, { title, body, status = 200 }: Page): void {
  ctx.status = status;
  ctx.type = 'text/html; charset=utf-8';
  ctx.body = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${title}</title><style>${STYLE}</style></head>
<body>
<h1>${title}</h1>
${body}
</body>
</html>
`;
}
