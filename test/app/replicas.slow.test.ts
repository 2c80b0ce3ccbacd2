import { writeFile } from 'node:fs/promises';
import https from 'node:https';
import path from 'node:path';
import { expect } from 'chai';
import { requestTls, trusting } from '../support/clients/tls-client.ts';
import { useTempFolder } from '../support/folders.ts';
import { type GatewayProcess, type Installation, installGateway } from '../support/gateways/gateway-process.ts';
import { createSelfSigned } from '../support/identity/self-signed.ts';
import { EXAMPLE_PROXIES } from '../support/processes/example-proxies.ts';
import { type RunningProxy, startProxy } from '../support/processes/proxy-process.ts';
import { describeWith, freePort, type TestServer } from '../support/processes/server-process.ts';
import { REDIS_SERVER, startRedisServer } from '../support/stores/redis-server.ts';
import { completion, delta } from '../support/vendors/openai-vendor.ts';
import {
  chunk,
  LAST_CHUNK,
  type RecordedRequest,
  respondWith,
  type ScriptedUpstream,
  SSE_HEAD,
  startScriptedUpstream,
  type Wire,
} from '../support/vendors/scripted-upstream.ts';
import { eventually, until } from '../support/wait.ts';

const certificate = createSelfSigned();
const NODES = ['a', 'b', 'c'] as const;
type Node = (typeof NODES)[number];

/** Concurrent calls, each of another user: the limits of one account are not the subject here. */
const CLIENTS = 12;

interface Made {
  readonly id: string;
  readonly began: number;
  /** Undefined if the response was complete. */
  readonly failure: string | undefined;
}

/** Vendor script: JSON after a short delay, streams in ten parts. */
async function respondSlowly(wire: Wire): Promise<void> {
  const { stream } = wire.request.json() as { stream?: boolean };
  await wire.pause(100);
  if (!stream) return wire.send(respondWith(200, completion('whole')));
  await wire.send(SSE_HEAD);
  for (let part = 0; part < 10; part += 1) {
    await wire.send(chunk(`data: ${delta(`part ${part}`, part === 9 ? 'stop' : null)}\n\n`));
    await wire.pause(50);
  }
  await wire.send(chunk('data: [DONE]\n\n'));
  await wire.send(LAST_CHUNK);
}

/** Gateway and call id of a request that a vendor received. */
function sourceOf({ path: at, json }: RecordedRequest): { readonly node: string; readonly id: string } {
  const { messages } = json() as { messages: readonly { content: string }[] };
  return { node: at.split('/')[1] ?? '', id: messages[0]?.content ?? '' };
}

for (const [name, { program, args, config }] of Object.entries(EXAMPLE_PROXIES))
  describeWith(
    `three gateways on one redis behind ${name} as deploy/ has it`,
    { [name]: program, 'redis-server': REDIS_SERVER },
    () => {
      const folder = useTempFolder('replicas');
      const agent = new https.Agent({ keepAlive: true, maxSockets: CLIENTS, ca: certificate.cert });
      const ports = {} as Record<Node, number>;
      const gateways = {} as Record<Node, GatewayProcess>;
      let redis: TestServer;
      let vendor: ScriptedUpstream;
      let installation: Installation;
      let proxy: RunningProxy;
      let own = 0;

      const start = async (node: Node): Promise<void> => {
        gateways[node] = await installation.start({ NODE: node, PORT: String(ports[node]) });
      };

      before(async function () {
        this.timeout(600_000);
        [redis, vendor] = await Promise.all([startRedisServer(), startScriptedUpstream(respondSlowly)]);
        installation = await installGateway({
          server: {
            port: `\${PORT:-0}`,
            ...{ drainDelay: '2s', drainTimeout: '30s', trustProxy: 1, keepAlive: '65s' },
          },
          // Not the subject here: on a busy machine Redis may take longer than the default.
          store: { url: redis.url, timeout: '10s' },
          providers: {
            one: {
              ...{ plugin: 'openai-compatible', apiKey: 'k', models: ['*'] },
              baseUrl: `${vendor.url}/\${NODE:-none}`,
            },
          },
        });
        for (let at = 0; at < CLIENTS; at += 1) {
          const { api_key: key } = await installation.command('keys', 'create', '--user', `user-${at}`);
          keys.push(key);
        }
        own = await freePort();
        for (const node of NODES) ports[node] = await freePort();
        await Promise.all(NODES.map(start));
        await writeFile(path.join(folder, 'tls.crt'), certificate.cert);
        await writeFile(path.join(folder, 'tls.key'), certificate.key);
        await writeFile(path.join(folder, 'proxy.conf'), config({ own, gateways: Object.values(ports) }, folder));
        proxy = startProxy(program ?? name, args, folder);
        await eventually(async () => {
          const { status } = await requestTls(`https://localhost:${own}`, '/livez', trusting(certificate));
          expect(status, proxy.output()).to.equal(200);
        });
      });
      after(async () => {
        agent.destroy();
        await proxy?.stop();
        await installation?.remove();
        await Promise.all([vendor?.close(), redis?.close()]);
      });

      let made: Made[] = [];
      let nextId = 0;
      const keys: string[] = [];

      /** Makes one call; returns its failure, or undefined. */
      const call = (id: string, key: string, stream: boolean): Promise<string | undefined> =>
        new Promise((resolve) => {
          const headers = {
            host: `localhost:${own}`,
            authorization: `Bearer ${key}`,
            'content-type': 'application/json',
          };
          const options = { host: '127.0.0.1', servername: 'localhost', port: own, method: 'POST', agent };
          const request = https.request({ ...options, path: '/v1/chat/completions', headers }, (response) => {
            let text = '';
            response.setEncoding('utf8');
            response.on('data', (part: string) => {
              text += part;
            });
            response.on('error', (error) => resolve(`cut: ${error.message}`));
            response.on('end', () => {
              const isWhole = stream ? text.includes('part 9') && text.endsWith('[DONE]\n\n') : text.includes('whole');
              resolve(response.statusCode === 200 && isWhole ? undefined : `${response.statusCode} ${text}`);
            });
          });
          request.on('error', (error) => resolve(`no response: ${error.message}`));
          request.end(JSON.stringify({ model: 'one/m', stream, messages: [{ role: 'user', content: id }] }));
        });

      /** Sends calls continuously during `change`, and for some seconds after it. */
      const underLoad = async (change: () => Promise<void>): Promise<void> => {
        made = [];
        let isOver = false;
        const client = async (key: string): Promise<void> => {
          while (!isOver) {
            const id = `call ${nextId++}`;
            const began = Date.now();
            made.push({ id, began, failure: await call(id, key, nextId % 2 === 0) });
          }
        };
        const clients = keys.map(client);
        try {
          const served = () => vendor.requests.length;
          const before = served();
          await until('the load is steady', () => served() > before + 3 * CLIENTS);
          await change();
          const changed = served();
          await until('calls go on', () => served() > changed + 3 * CLIENTS);
        } finally {
          isOver = true;
          await Promise.all(clients);
        }
      };
      const failures = (): readonly Made[] => made.filter(({ failure }) => failure !== undefined);
      const sources = () => vendor.requests.map(sourceOf);
      const servedBy = (node: Node): number => sources().filter((source) => source.node === node).length;
      const expectNoneTwice = (): void => {
        const ids = sources().map(({ id }) => id);
        expect(ids).to.have.length(new Set(ids).size);
      };

      it('fail no call when one of them is stopped, whole or streamed (G40)', async function () {
        this.timeout(300_000);
        await underLoad(() => gateways.a.stop());
        expect(servedBy('a')).to.be.above(0);
        expect(failures()).to.deep.equal([]);
        expectNoneTwice();
      });

      it('get calls again once one of them has restarted at its address (G40)', async function () {
        this.timeout(300_000);
        const before = servedBy('a');
        await underLoad(async () => {
          await start('a');
          await until('it has calls', () => servedBy('a') > before + CLIENTS);
        });
        expect(failures()).to.deep.equal([]);
        expectNoneTwice();
      });

      it('fail only the calls of a killed one, and send none twice (G40)', async function () {
        this.timeout(300_000);
        let killed = 0;
        await underLoad(async () => {
          killed = Date.now();
          await gateways.b.kill();
          await until('a second is over', () => Date.now() > killed + 1500);
        });
        expect(failures().filter(({ began }) => began > killed + 1000)).to.deep.equal([]);
        const nodeOf = new Map(sources().map(({ id, node }) => [id, node]));
        for (const { id, failure } of failures()) expect(nodeOf.get(id) ?? 'b', failure).to.equal('b');
        expectNoneTwice();
      });

      it('let an operator sign in to the console at a port other than 443 (G40)', async () => {
        const url = `https://localhost:${own}`;
        const { api_key: key } = await installation.command('keys', 'create', '--user', 'ann', '--role', 'admin');
        const page = { origin: url, 'sec-fetch-site': 'same-origin', 'content-type': 'application/json' };
        const send = (at: string, headers: Readonly<Record<string, string>>, body = '{}') =>
          requestTls(url, at, { ...trusting(certificate), method: 'POST', headers: { ...page, ...headers }, body });
        const signIn = await send('/api/core/admin/console/session', { authorization: `Bearer ${key}` });
        expect(signIn.status, signIn.body).to.equal(204);
        const [cookie = ''] = (signIn.headers['set-cookie'] ?? []).map((each) => each.split(';')[0]);
        const created = await send('/api/core/admin/keys', { cookie }, JSON.stringify({ user_id: 'bob' }));
        expect(created.status, created.body).to.equal(200);
        const foreign = { cookie, origin: 'https://localhost' };
        expect((await send('/api/core/admin/keys', foreign, JSON.stringify({ user_id: 'bob' }))).status).to.equal(403);
      });
    },
  );
