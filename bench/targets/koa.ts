/** Koa, its router and undici's `request` without any features: the basis of most gateways of this kind. */
import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import Router from '@koa/router';
import Koa from 'koa';
import { Pool } from 'undici';

const [json = '', stream = ''] = process.argv.slice(2);
const options = { headersTimeout: 0, bodyTimeout: 0 };
const pools = { json: new Pool(json, options), stream: new Pool(stream, options) };

function readBody(req: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    req.on('data', (part: Buffer) => parts.push(part));
    req.on('end', () => resolve(parts.length === 1 ? parts[0]! : Buffer.concat(parts)));
    req.on('error', reject);
  });
}

const HEADERS = { 'content-type': 'application/json' };

const router = new Router();
router.post('/:kind/v1/chat/completions', async (ctx) => {
  const body = await readBody(ctx.req);
  const isStream = ctx['params'].kind === 'stream';
  const pool = isStream ? pools.stream : pools.json;
  const response = await pool.request({ path: ctx.url, method: 'POST', headers: HEADERS, body });
  ctx.status = response.statusCode;
  ctx.set('content-type', String(response.headers['content-type']));
  ctx.body = isStream ? response.body : Buffer.from(await response.body.arrayBuffer());
});

const app = new Koa();
app.silent = true;
app.use(router.routes());
const server = app.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () =>
  process.send?.((server.address() as AddressInfo).port),
);
process.on('disconnect', () => process.exit());
