import { spawn } from 'node:child_process';
import { checkEnvironment, readEgress, readEnvironment } from '../config/egress.ts';
import { isObject, parseJson } from '../contract/json.ts';
import { createProxyRoute, fetchBy } from '../egress/way.ts';
import type { CommandContext } from './io.ts';
import { CliError, createIo, EXIT } from './io.ts';
import { isCount, isSafe, isWord, REQUEST_MS, readStored, type SignIn, withLock, writeStored } from './sign-in-file.ts';

const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
/**
 * Time before expiry at which a token is renewed; at most half of its lifetime. Programs cache tokens for some minutes.
 */
const AHEAD_MS = 10 * 60_000;
const MAX_BYTES = 64 * 1024;

/**
 * `tollgate users login`: signs in at a gateway with `auth.sign-in` by the device flow (RFC 8628). A person approves it
 * in any browser.
 */
export async function runLogin(context: CommandContext): Promise<void> {
  const url = readGateway(context.args[0] ?? '');
  const io = createIo(context.terminal, context.globals.json === true);
  const metadata = await discover(url);
  const begun = await begin(url, metadata);
  io.note(`Open ${begun.page}`);
  io.note(`and check that it shows the code ${begun.userCode}. The code expires in ${minutes(begun.expiresInMs)}.`);
  if (context.options['browser'] === true) openBrowser(begun.page, io.note);
  const signIn = await poll(url, metadata, begun);
  const former = await withLock(async () => {
    const stored = await readStored();
    await writeStored({ last: url, signIns: { ...stored.signIns, [url]: signIn } });
    return stored.signIns[url];
  });
  if (former) await revoke(former).catch(() => undefined);
  const { email } = signIn;
  io.result(
    { url, ...(email !== undefined && { email }) },
    `signed in at ${url}${email === undefined ? '' : ` as ${email}`}`,
  );
}

/** `tollgate users token`: prints a valid access token alone on stdout, renewed before it expires. */
export async function runToken(context: CommandContext): Promise<void> {
  const io = createIo(context.terminal, context.globals.json === true);
  const given = context.args[0];
  const url = await findGateway(given);
  const { accessToken, endsAt } = await renewed(url, io.note);
  io.result({ url, access_token: accessToken, expires_at: new Date(endsAt).toISOString() }, accessToken);
}

/** `tollgate users logout`: ends the sign-in at the gateway and removes it here. */
export async function runLogout(context: CommandContext): Promise<void> {
  const io = createIo(context.terminal, context.globals.json === true);
  const url = await findGateway(context.args[0]);
  const signIn = await withLock(async () => {
    const { last, signIns } = await readStored();
    const { [url]: found, ...others } = signIns;
    await writeStored({ ...(last !== undefined && last !== url && { last }), signIns: others });
    return found;
  });
  if (!signIn) throw noSignIn(url);
  await revoke(signIn).catch(() =>
    io.note(
      'The gateway did not respond. Its sign-in ends when it expires, or with "tollgate users sign-ins revoke" there.',
    ),
  );
  io.result({ url }, `signed out at ${url}`);
}

/** Normalizes a gateway's address: no trailing slash. */
export function readGateway(text: string): string {
  const whole = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `https://${text}`;
  const url = URL.canParse(whole) ? new URL(whole) : undefined;
  const hint = 'Use https://gateway.example, or http://127.0.0.1:8787 on this machine, for example.';
  if (!url || url.username || url.password || url.search || url.hash)
    throw new CliError('the address is not a valid gateway URL', EXIT.usage, hint);
  if (!isSafe(url))
    throw new CliError(`tokens are not sent over ${url.protocol}// to another machine`, EXIT.usage, hint);
  return url.href.replace(/\/+$/, '');
}

async function findGateway(given: string | undefined): Promise<string> {
  if (given !== undefined) return readGateway(given);
  const { last, signIns } = await readStored();
  const urls = Object.keys(signIns);
  if (last !== undefined) return last;
  const [only, ...others] = urls;
  if (only !== undefined && others.length === 0) return only;
  if (only === undefined) throw noSignIn();
  throw new CliError('this machine has several sign-ins', EXIT.usage, `Name one: ${urls.join(', ')}.`);
}

function noSignIn(url?: string): CliError {
  return new CliError(
    url === undefined ? 'not signed in' : `not signed in at ${url}`,
    EXIT.signedOut,
    `Run: tollgate users login ${url ?? '<address of the gateway>'}`,
  );
}

/** Endpoints at which a gateway signs programs in. */
interface Metadata {
  readonly deviceEndpoint: string;
  readonly tokenEndpoint: string;
  readonly revocationEndpoint?: string;
}

const METADATA_PATH = '/.well-known/oauth-authorization-server';

async function discover(url: string): Promise<Metadata> {
  const { status, body } = await send(url, `${url}${METADATA_PATH}`);
  const {
    issuer,
    device_authorization_endpoint: device,
    token_endpoint: token,
    revocation_endpoint: revocation,
  } = body;
  if (status >= 500) throw unavailable(url, `returned status ${status}`);
  if (status !== 200 || typeof issuer !== 'string' || typeof device !== 'string' || typeof token !== 'string')
    throw new CliError(
      `sign-in is not available at ${url}`,
      EXIT.usage,
      'Check that it is the address of a Tollgate gateway, with its base path, and that auth.sign-in is configured there.',
    );
  if (!URL.canParse(issuer) || issuer.replace(/\/+$/, '') !== url)
    throw new CliError(
      `the gateway at ${url} reports another address`,
      EXIT.usage,
      URL.canParse(issuer) ? `Run: tollgate users login ${new URL(issuer).href.replace(/\/+$/, '')}` : undefined,
    );
  const { origin } = new URL(url);
  for (const endpoint of [device, token, ...(typeof revocation === 'string' ? [revocation] : [])])
    if (!URL.canParse(endpoint) || new URL(endpoint).origin !== origin)
      throw new CliError(`the gateway at ${url} refers to another host for signing in`, EXIT.unexpected);
  return {
    deviceEndpoint: device,
    tokenEndpoint: token,
    ...(typeof revocation === 'string' && { revocationEndpoint: revocation }),
  };
}

/** Pending sign-in that a person has to approve. */
interface Begun {
  readonly deviceCode: string;
  readonly userCode: string;
  readonly page: string;
  readonly expiresInMs: number;
  readonly intervalMs: number;
}

async function begin(url: string, { deviceEndpoint }: Metadata): Promise<Begun> {
  const { status, body } = await send(url, deviceEndpoint, { client_id: 'tollgate login' });
  const { device_code: deviceCode, user_code: userCode, verification_uri: page } = body;
  const { verification_uri_complete: complete = page, expires_in: seconds, interval = 5 } = body;
  if (status !== 200) throw refusal(url, status, body);
  if (
    !isWord(deviceCode) ||
    !isWord(userCode) ||
    typeof complete !== 'string' ||
    !isCount(seconds) ||
    !isCount(interval)
  )
    throw unavailable(url, 'returned no valid code');
  const link = URL.canParse(complete) ? new URL(complete) : undefined;
  if (link?.origin !== new URL(url).origin)
    throw new CliError(`the gateway at ${url} refers to another host for signing in`, EXIT.unexpected);
  const expiresInMs = Math.min(seconds, 3600) * 1000;
  return { deviceCode, userCode, page: link.href, expiresInMs, intervalMs: Math.min(interval, 60) * 1000 };
}

/** Polls until the person has decided or the code expires. Retries while the gateway is unreachable. */
async function poll(url: string, metadata: Metadata, { deviceCode, expiresInMs, intervalMs }: Begun): Promise<SignIn> {
  const over = new CliError('the code has expired', EXIT.signedOut, `Run again: tollgate users login ${url}`);
  const deadline = Date.now() + expiresInMs;
  for (let waitMs = intervalMs; Date.now() + waitMs < deadline; ) {
    await new Promise((resolve) => setTimeout(resolve, waitMs));
    const form = { grant_type: DEVICE_GRANT, device_code: deviceCode, client_id: 'tollgate login' };
    const reply = await send(url, metadata.tokenEndpoint, form).catch((error: unknown) => {
      if (error instanceof CliError && error.exitCode === EXIT.unavailable) return undefined;
      throw error;
    });
    if (reply?.status === 200) return readTokens(url, reply.body, metadata);
    const code = reply?.body['error'];
    // RFC 8628, section 3.5.
    if (!reply || reply.status >= 500 || code === 'slow_down') waitMs += 5000;
    else if (code === 'access_denied')
      throw new CliError(
        'the sign-in was denied on the page',
        EXIT.signedOut,
        `Run again: tollgate users login ${url}`,
      );
    else if (code === 'expired_token') throw over;
    else if (code !== 'authorization_pending') throw refusal(url, reply.status, reply.body);
  }
  throw over;
}

/** Returns a sign-in with a fresh token. Only one of several processes renews it; the others use the stored result. */
export async function renewed(url: string, note: (text: string) => void): Promise<SignIn> {
  const isFresh = ({ renewAt }: SignIn): boolean => Date.now() < renewAt;
  const found = (await readStored()).signIns[url];
  if (!found) throw noSignIn(url);
  if (isFresh(found)) return found;
  return withLock(async () => {
    const stored = await readStored();
    const signIn = stored.signIns[url];
    if (!signIn) throw noSignIn(url);
    if (isFresh(signIn)) return signIn;
    try {
      const next = await renew(url, signIn);
      if (next) await writeStored({ ...stored, signIns: { ...stored.signIns, [url]: next } });
      if (next) return next;
    } catch (error) {
      if (Date.now() >= signIn.endsAt) throw error;
      note(`The token could not be renewed; it is valid until ${new Date(signIn.endsAt).toISOString()}.`);
      return signIn;
    }
    const now = await readStored();
    const { [url]: last, ...others } = now.signIns;
    // Another process renewed it although the lock failed, as on a network drive.
    if (last && last.refreshToken !== signIn.refreshToken) return last;
    await writeStored({ ...now, signIns: others });
    throw new CliError(`the sign-in at ${url} has ended`, EXIT.signedOut, `Run: tollgate users login ${url}`);
  });
}

/** Requests new tokens; undefined if the sign-in has ended. */
async function renew(url: string, signIn: SignIn): Promise<SignIn | undefined> {
  const form = { grant_type: 'refresh_token', refresh_token: signIn.refreshToken, client_id: 'tollgate login' };
  const { status, body } = await send(url, signIn.tokenEndpoint, form);
  if (status === 200) return readTokens(url, body, signIn);
  if (body['error'] === 'invalid_grant') return undefined;
  throw refusal(url, status, body);
}

function readTokens(
  url: string,
  body: Body,
  { tokenEndpoint, revocationEndpoint }: Omit<Metadata, 'deviceEndpoint'>,
): SignIn {
  const { access_token: accessToken, refresh_token: refreshToken, expires_in: seconds, email } = body;
  if (!isWord(accessToken) || !isWord(refreshToken) || !isCount(seconds))
    throw unavailable(url, 'returned no valid token');
  const now = Date.now();
  const lifeMs = seconds * 1000;
  return {
    accessToken,
    refreshToken,
    tokenEndpoint,
    endsAt: now + lifeMs,
    renewAt: now + Math.max(lifeMs - AHEAD_MS, lifeMs / 2),
    ...(revocationEndpoint !== undefined && { revocationEndpoint }),
    ...(isWord(email) && { email }),
  };
}

async function revoke({ revocationEndpoint, refreshToken }: SignIn): Promise<void> {
  if (revocationEndpoint === undefined) return;
  const { status } = await send(new URL(revocationEndpoint).origin, revocationEndpoint, { token: refreshToken });
  if (status !== 200) throw new Error(`revocation: ${status}`);
}

/** Returns a `fetch` by the proxy and certificates of the environment. */
export function createFetch(): typeof fetch {
  const env = (name: string): string | undefined => process.env[name];
  const [problem] = checkEnvironment(env);
  if (problem) throw new CliError(`login ${problem.message}`, EXIT.usage, problem.hint);
  return fetchBy(createProxyRoute(readEgress({}, readEnvironment(env), { file: () => '' })));
}

type Body = Readonly<Record<string, unknown>>;

/**
 * Posts a form, or sends a GET without one, and returns the JSON of the response. Follows no redirect, so that codes
 * and tokens go only to the address given.
 */
async function send(
  gateway: string,
  to: string,
  form?: Readonly<Record<string, string>>,
): Promise<{ readonly status: number; readonly body: Body }> {
  const fetchHere = createFetch();
  try {
    const response = await fetchHere(to, {
      redirect: 'manual',
      signal: AbortSignal.timeout(REQUEST_MS),
      headers: { accept: 'application/json' },
      ...(form && { method: 'POST', body: new URLSearchParams(form) }),
    });
    const value = parseJson(await readBounded(response, MAX_BYTES));
    return { status: response.status, body: isObject(value) ? value : {} };
  } catch (error) {
    throw unavailable(gateway, `does not respond (${reasonOf(error)})`);
  }
}

/** Reads a response as text; throws if it is larger. */
export async function readBounded(response: Response, maxBytes: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength;
    if (size > maxBytes) throw new Error('its response is too large');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function reasonOf(error: unknown): string {
  for (let at = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth += 1) {
    const { code, name } = at as NodeJS.ErrnoException;
    if (typeof code === 'string') return code;
    if (name === 'TimeoutError') return `timeout of ${REQUEST_MS / 1000} seconds`;
    if (name === 'ProxyError') return at.message;
  }
  return error instanceof Error ? error.message : 'unknown';
}

function unavailable(url: string, what: string): CliError {
  const hint = 'Check the address and the network; HTTPS_PROXY, NO_PROXY and NODE_EXTRA_CA_CERTS apply.';
  return new CliError(`the gateway at ${url} ${what}`, EXIT.unavailable, hint);
}

/** Error with the gateway's message, without terminal control characters. */
function refusal(url: string, status: number, { error_description: text, error }: Body): CliError {
  const words = [text, error].find((each) => typeof each === 'string');
  const plain = typeof words === 'string' ? words.replaceAll(/[^\x20-\x7e]/g, '?').slice(0, 300) : `status ${status}`;
  return new CliError(
    `the gateway at ${url} rejected the request: ${plain}`,
    status >= 500 || status === 429 ? EXIT.unavailable : EXIT.signedOut,
  );
}

function minutes(ms: number): string {
  const count = Math.max(1, Math.round(ms / 60_000));
  return count === 1 ? 'a minute' : `${count} minutes`;
}

const OPENERS: Readonly<Partial<Record<NodeJS.Platform, readonly [string, ...string[]]>>> = Object.freeze({
  darwin: ['open'],
  win32: ['rundll32', 'url.dll,FileProtocolHandler'],
});

function openBrowser(page: string, note: (text: string) => void): void {
  const [program, ...args] = OPENERS[process.platform] ?? ['xdg-open'];
  const child = spawn(program, [...args, page], { stdio: 'ignore', detached: true });
  child.once('error', () => note(`No browser could be opened (${program}). Open the link yourself.`));
  child.unref();
}
