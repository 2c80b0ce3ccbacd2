import { ERRORS } from '../contract/errors.ts';
import { isObject, parseJson } from '../contract/json.ts';
import type { CommandContext } from './io.ts';
import { CliError, EXIT } from './io.ts';
import { loadFor } from './load.ts';
import { createFetch, readBounded, readGateway, renewed } from './login.ts';
import { readStored } from './sign-in-file.ts';

/** Variable with the key of an operator. */
const KEY = 'TOLLGATE_API_KEY';

/** Running gateway, and the credential of the operator. */
export interface RunningGateway {
  /** URL with its base path, without a slash at the end. */
  readonly url: string;
  readonly fetch: typeof fetch;
  /** Value of the header; a token is renewed before it ends. */
  authorization(): Promise<string>;
}

/** Finds the gateway of `--url` or of the configuration, with the key of the environment or a sign-in there. */
export async function findRunning(context: CommandContext): Promise<RunningGateway> {
  const given = context.options['url'];
  const url = typeof given === 'string' ? readGateway(given) : await configuredUrl(context);
  const key = process.env[KEY]?.trim();
  if (key) return { url, fetch: createFetch(), authorization: async () => `Bearer ${key}` };
  if (!(await readStored()).signIns[url])
    throw new CliError(
      `no key of an operator for ${url}`,
      EXIT.signedOut,
      `Set ${KEY}, or run: tollgate users login ${url}`,
    );
  const note = (text: string): void => void context.terminal.err.write(`${text}\n`);
  return {
    url,
    fetch: createFetch(),
    authorization: async () => `Bearer ${(await renewed(url, note)).accessToken}`,
  };
}

async function configuredUrl(context: CommandContext): Promise<string> {
  const { settings } = await loadFor(context);
  return readGateway(`${settings.url}${settings.basePath}`);
}

const REQUEST_MS = 60_000;
const MAX_BYTES = 32 * 1024 * 1024;

/** Sends a request to the admin API; throws with the message of the gateway. */
export async function callAdmin(gateway: RunningGateway, method: 'GET' | 'POST', path: string): Promise<object> {
  let response: Response;
  let text: string;
  try {
    response = await gateway.fetch(`${gateway.url}/api/core/admin${path}`, {
      method,
      redirect: 'manual',
      headers: { authorization: await gateway.authorization(), accept: 'application/json' },
      signal: AbortSignal.timeout(REQUEST_MS),
    });
    text = await readBounded(response, MAX_BYTES);
  } catch (error) {
    if (error instanceof CliError) throw error;
    throw new CliError(
      `the gateway at ${gateway.url} does not respond`,
      EXIT.unavailable,
      'Check that it runs, and its address.',
    );
  }
  const body = parseJson(text);
  if (response.ok && isObject(body)) return body;
  const { code, message } = isObject(body) && isObject(body['error']) ? body['error'] : {};
  const isKnown = typeof code === 'string' && Object.hasOwn(ERRORS, code) && typeof message === 'string';
  const plain = isKnown ? message.replace(/\p{Cc}/gu, ' ') : `returned status ${response.status}`;
  throw new CliError(
    isKnown ? plain : `the gateway at ${gateway.url} ${plain}`,
    exitOf(response.status),
    response.status === 404
      ? 'Check the id, and that the configuration of the gateway has "mcp: { admin: true }".'
      : undefined,
  );
}

function exitOf(status: number): number {
  if (status === 401 || status === 403) return EXIT.signedOut;
  return status >= 500 || status === 429 ? EXIT.unavailable : EXIT.unexpected;
}
