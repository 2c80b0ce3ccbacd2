/** Three gateways on one Postgres behind the shipped nginx file, with people who sign in by OpenID, keys and calls. */
import { readFile, writeFile } from 'node:fs/promises';
import https from 'node:https';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import pg from 'pg';
import { requestTls, trusting } from '../clients/tls-client.ts';
import { CLIENT_SECRET, type OpenIdPeople, startOpenIdPeople } from '../identity/openid-people.ts';
import { type Certificate, createSelfSigned } from '../identity/self-signed.ts';
import { noonTimezone } from '../noon.ts';
import { type Finished, runCli } from '../processes/cli.ts';
import { EXAMPLE_PROXIES } from '../processes/example-proxies.ts';
import { type RunningProxy, startProxy } from '../processes/proxy-process.ts';
import { freePort, type TestServer } from '../processes/server-process.ts';
import { startPostgresServer } from '../stores/postgres-server.ts';
import { completion, openAiVendor, tokenPrices, usageOf } from '../vendors/openai-vendor.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream, type Wire } from '../vendors/scripted-upstream.ts';
import { eventually } from '../wait.ts';
import { type Installation, installGateway } from './gateway-process.ts';

/** Number of gateways, each a process. */
export const NODES = 3;
/** People of the OpenID provider, and their operator role. */
const PEOPLE = Object.freeze({ ada: 'admin', olga: 'operator', vic: 'viewer', tess: 'team' });
export type Person = keyof typeof PEOPLE;

const WEEK_MS = 7 * 86_400_000;

/** Module that sets the clock of a process back by a week. */
const LAST_WEEK = `
const Real = Date;
const now = () => Real.now() - ${WEEK_MS};
globalThis.Date = class extends Real {
  constructor(...given) { super(...(given.length === 0 ? [now()] : given)); }
  static now() { return now(); }
};
`;

export interface MadeKey {
  readonly key: string;
  readonly id: string;
}

export interface ThreeGateways {
  /** URL of nginx. */
  readonly origin: string;
  /** Requests of the provider `north`; the provider `south` is down. */
  readonly vendor: ScriptedUpstream;
  readonly people: OpenIdPeople;
  readonly postgres: TestServer;
  readonly folder: string;
  /** Runs a command line on the configuration, in its own process. */
  run(...words: readonly string[]): Promise<Finished>;
  /** Changes the configuration file. */
  configure(change: (config: Config) => Config): Promise<void>;
  /** Sends a request to an operator route through nginx as an admin; returns the JSON of the response. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into responses of every shape
  admin(method: string, at: string, body?: unknown): Promise<any>;
  makeKey(fields: Readonly<Record<string, unknown>>): Promise<MadeKey>;
  /** Makes a chat call through nginx; returns its status, request id and body. */
  call(
    key: string,
    model: string,
    more?: object,
  ): Promise<{ readonly status: number; readonly id: string; readonly text: string }>;
  stop(): Promise<void>;
}

type Config = Readonly<Record<string, object>>;

/** Starts the gateways with the user `lena`, who called `north/m` once a week ago. */
export async function startThreeGateways(): Promise<ThreeGateways> {
  const certificate = createSelfSigned();
  const [own, down] = [await freePort(), await freePort()];
  const origin = `https://localhost:${own}`;
  const [postgres, vendor, people] = await Promise.all([
    startPostgresServer(),
    startScriptedUpstream(respond),
    startOpenIdPeople({
      people: Object.fromEntries(Object.entries(PEOPLE).map(([name, role]) => [name, { roles: [role] }])),
      redirectUris: [`${origin}/api/core/admin/callback`],
    }),
  ]);
  const config = configOf({ origin, store: postgres.url, issuer: people.issuer, north: vendor, down });
  const installation = await installGateway(config, { 'north.key': 'north-secret-1', 'last-week.mjs': LAST_WEEK });
  const { folder } = installation;
  const { api_key: adminKey } = await installation.command('keys', 'create', '--user', 'root', '--admin');
  await callLastWeek(installation, postgres.url);
  const ports: number[] = [];
  while (ports.length < NODES) ports.push(await freePort());
  await Promise.all(ports.map((port) => installation.start({ PORT: String(port) })));
  const proxy = await startNginx({ own, gateways: ports }, folder, certificate);
  const agent = new https.Agent({ keepAlive: true, maxSockets: 12, ca: certificate.cert });
  const send = (key: string, method: string, at: string, body?: unknown) =>
    requestTls(origin, at, {
      ...trusting(certificate),
      ...{ method, agent, headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' } },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  await eventually(async () => {
    const { status, body } = await send(adminKey, 'GET', '/readyz');
    if (status !== 200) throw new Error(`${body} ${proxy.output()}`);
  });
  const file = path.join(folder, 'tollgate.config.json');
  const admin: ThreeGateways['admin'] = async (method, at, body) => {
    const { status, body: text } = await send(adminKey, method, `/api/core/admin${at}`, body);
    if (status >= 300) throw new Error(`${method} ${at}: ${status} ${text}`);
    return JSON.parse(text);
  };
  return {
    ...{ origin, vendor, people, postgres, folder, admin },
    run: (...words) => runCli(words, folder),
    async configure(change) {
      const before = JSON.parse(await readFile(file, 'utf8')) as Config;
      await writeFile(file, JSON.stringify(change(before), null, 2));
    },
    async makeKey(fields) {
      const { api_key: key, api_key_info: info } = await admin('POST', '/keys', fields);
      return { key, id: info.id };
    },
    async call(key, model, more = {}) {
      const body = { model, max_tokens: 600, messages: [{ role: 'user', content: 'Hello there' }], ...more };
      const { status, headers, body: text } = await send(key, 'POST', '/v1/chat/completions', body);
      return { status, id: String(headers['x-request-id']), text };
    },
    async stop() {
      agent.destroy();
      await proxy.stop();
      await installation.remove();
      await Promise.all([people.stop(), vendor.close(), postgres.close()]);
    },
  };
}

/** Responds as a vendor, or fails on request. */
function respond(wire: Wire): Promise<void> {
  const fails = wire.request.body.includes('please fail');
  const [status, body] = fails
    ? [500, { error: { message: 'node 7 is out of memory', type: 'server_error' } }]
    : [200, completion('fine', { usage: usageOf(200, 500) })];
  return wire.send(respondWith(status, body));
}

interface Places {
  readonly origin: string;
  readonly store: string;
  readonly issuer: string;
  readonly north: ScriptedUpstream;
  /** Port on which no vendor listens. */
  readonly down: number;
}

function configOf({ origin, store, issuer, north, down }: Places): Config {
  const prices = tokenPrices(3, 15);
  return {
    server: { port: `\${PORT:-0}`, trustProxy: 1, keepAlive: '65s', drainTimeout: '5s' },
    // A busy machine may be slower than the default.
    store: { url: store, timeout: '10s' },
    providers: {
      echo: {},
      north: openAiVendor({ url: `${north.url}/v1` }, { apiKey: `\${file:north.key}`, models: ['m', 'large'], prices }),
      south: openAiVendor({ url: `http://127.0.0.1:${down}/v1` }, { models: ['m'], prices: tokenPrices(1, 4) }),
    },
    models: { smart: ['south/m', 'north/m'] },
    // A forecast needs a part of the day.
    budgets: [{ name: 'everyone', amount_usd: 5, every: 'day', timezone: noonTimezone() }],
    tags: { team: ['search', 'ads'] },
    auth: {
      'api-key': {},
      openid: {
        ...{ issuer, clientId: 'gateway', clientSecret: CLIENT_SECRET, publicUrl: origin },
        ...{ roleClaims: ['roles'], roles: Object.fromEntries(Object.values(PEOPLE).map((role) => [role, role])) },
      },
    },
    console: { remote: true, name: 'trial' },
  };
}

/** Calls `north/m` once as lena, while the clocks of a gateway and of Postgres are a week behind. */
async function callLastWeek(installation: Installation, store: string): Promise<void> {
  const pool = new pg.Pool({ connectionString: store, max: 1 });
  const query = (text: string) => pool.query({ text, values: [] });
  await query(`CREATE SCHEMA past; CREATE FUNCTION past.clock_timestamp() RETURNS timestamptz LANGUAGE sql
    AS $$ SELECT pg_catalog.clock_timestamp() - interval '${WEEK_MS} milliseconds' $$;
    ALTER DATABASE postgres SET search_path = past, pg_catalog, public`);
  const { api_key: key } = await installation.command('keys', 'create', '--user', 'lena', '--name', 'laptop');
  const NODE_OPTIONS = `--import=${pathToFileURL(path.join(installation.folder, 'last-week.mjs'))}`;
  const gateway = await installation.start({ PORT: '0', NODE_OPTIONS });
  const response = await fetch(`${gateway.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'north/m', max_tokens: 600, messages: [{ role: 'user', content: 'Hello' }] }),
  });
  const text = await response.text();
  await gateway.stop();
  await query('ALTER DATABASE postgres RESET search_path; DROP SCHEMA past CASCADE');
  await pool.end();
  if (response.status !== 200) throw new Error(`last week: ${response.status} ${text}`);
}

async function startNginx(
  ports: { readonly own: number; readonly gateways: readonly number[] },
  folder: string,
  { cert, key }: Certificate,
): Promise<RunningProxy> {
  const { program = 'nginx', args, config } = EXAMPLE_PROXIES.nginx;
  await writeFile(path.join(folder, 'tls.crt'), cert);
  await writeFile(path.join(folder, 'tls.key'), key);
  await writeFile(path.join(folder, 'proxy.conf'), config(ports, folder));
  return startProxy(program, args, folder);
}
