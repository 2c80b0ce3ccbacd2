/**
 * The yardstick: a gateway with all duties of a call and no optimizations, with libraries used as documented. Whole
 * responses and streams.
 * - request id, key, JSON, Ajv, requests and tokens per minute
 * - a hold and a settlement on sqlite (one transaction per turn of the event loop)
 * - abort on disconnect of the caller, deadlines
 * - usage and cost, access log, metrics
 */
import { createHash, randomUUID } from 'node:crypto';
import http, { type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { Readable } from 'node:stream';
import Router from '@koa/router';
import { DatabaseSync } from '@photostructure/sqlite';
import { Ajv } from 'ajv';
import { createParser } from 'eventsource-parser';
import Koa from 'koa';
import { pino } from 'pino';
import { Counter, Histogram } from 'prom-client';
import { Pool } from 'undici';

type Usage = Readonly<Record<'prompt_tokens' | 'completion_tokens' | 'total_tokens', number>>;

interface ChatRequest {
  readonly model: string;
  readonly stream?: boolean;
  readonly max_tokens?: number;
}

interface State extends Koa.DefaultState {
  id: string;
  key?: string;
  model?: string;
  usage?: Usage;
  cost?: number;
}

/** Reservation of a call until it is settled. */
type Hold = Readonly<Record<'id' | 'account' | 'model', string> & Record<'estimate' | 'amount', number>>;

const [json = '', stream = '', folder = '.', secret = ''] = process.argv.slice(2);
const timeouts = { connections: 256, headersTimeout: 60_000, bodyTimeout: 60_000 };
const pools = { json: new Pool(json, timeouts), stream: new Pool(stream, timeouts) };

const digest = (key: string): string => createHash('sha256').update(key).digest('hex');
const keys = new Map([[digest(secret), { id: 'k1', account: 'a1', rpm: 1e9, tpm: 1e12 }]]);
const isChatRequest = new Ajv({ strict: false }).compile<ChatRequest>({
  type: 'object',
  required: ['model', 'messages'],
  properties: {
    model: { type: 'string', minLength: 1 },
    stream: { type: 'boolean' },
    temperature: { type: 'number', minimum: 0, maximum: 2 },
    max_tokens: { type: 'integer', minimum: 0 },
    messages: {
      type: 'array',
      minItems: 1,
      items: {
        type: 'object',
        required: ['role'],
        properties: {
          role: { enum: ['system', 'developer', 'user', 'assistant', 'tool'] },
          content: { type: ['string', 'null', 'array'] },
        },
      },
    },
  },
});

const database = new DatabaseSync(path.join(folder, 'plain.db'));
database.exec(`PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;
  CREATE TABLE accounts(id TEXT PRIMARY KEY, balance INTEGER, held INTEGER);
  CREATE TABLE holds(call TEXT PRIMARY KEY, account TEXT, amount INTEGER, expires INTEGER) WITHOUT ROWID;
  CREATE TABLE entries(seq INTEGER PRIMARY KEY, call TEXT, account TEXT, amount INTEGER, model TEXT, input INTEGER, output INTEGER, at INTEGER);
  INSERT INTO accounts VALUES ('a1', 1000000000000, 0);`);
const sql = {
  reserve: database.prepare('UPDATE accounts SET held = held + ? WHERE id = ? AND balance - held >= ?'),
  hold: database.prepare('INSERT INTO holds VALUES (?, ?, ?, ?)'),
  release: database.prepare('DELETE FROM holds WHERE call = ?'),
  charge: database.prepare('UPDATE accounts SET held = held - ?, balance = balance - ? WHERE id = ?'),
  entry: database.prepare(
    'INSERT INTO entries(call, account, amount, model, input, output, at) VALUES (?, ?, ?, ?, ?, ?, ?)',
  ),
};

let queue: { readonly work: () => void; readonly done: () => void }[] = [];

/** Groups all work of one turn of the event loop into a transaction. */
function inTransaction(work: () => void): Promise<void> {
  return new Promise((done) => {
    if (queue.push({ work, done }) === 1) setImmediate(flush);
  });
}

function flush(): void {
  const jobs = queue;
  queue = [];
  database.exec('BEGIN IMMEDIATE');
  for (const { work } of jobs) work();
  database.exec('COMMIT');
  for (const { done } of jobs) done();
}

async function reserve({ id, account, amount }: Hold): Promise<boolean> {
  let isHeld = false;
  await inTransaction(() => {
    isHeld = sql.reserve.run(amount, account, amount).changes === 1;
    if (isHeld) sql.hold.run(id, account, amount, Date.now() + 900_000);
  });
  return isHeld;
}

/** Settles a call with its usage; the caller does not wait for it. */
function settle(state: State, { id, account, estimate, amount, model }: Hold, usage: Usage): number {
  const cost = usage.prompt_tokens + 4 * usage.completion_tokens;
  void inTransaction(() => {
    sql.release.run(id);
    sql.charge.run(amount, cost, account);
    sql.entry.run(id, account, cost, model, usage.prompt_tokens, usage.completion_tokens, Date.now());
  });
  isAdmitted(`tpm ${state.key}`, usage.total_tokens - estimate, Number.POSITIVE_INFINITY);
  tokens.labels(model, 'input').inc(usage.prompt_tokens);
  tokens.labels(model, 'output').inc(usage.completion_tokens);
  Object.assign(state, { usage, cost });
  return cost;
}

const windows = new Map<string, { since: number; used: number }>();

function isAdmitted(name: string, amount: number, limit: number): boolean {
  const now = Date.now();
  let window = windows.get(name);
  if (!window || now - window.since > 60_000) {
    window = { since: now, used: 0 };
    windows.set(name, window);
  }
  if (window.used + amount > limit) return false;
  window.used += amount;
  return true;
}

const log = pino(pino.destination({ dest: path.join(folder, 'plain.log'), sync: false, minLength: 4096 }));
const requests = new Counter({ name: 'requests_total', help: 'Requests', labelNames: ['status'] });
const seconds = new Histogram({ name: 'request_seconds', help: 'Time' });
const tokens = new Counter({ name: 'tokens_total', help: 'Tokens', labelNames: ['model', 'kind'] });

const app = new Koa<State>();
app.silent = true;
app.use(async (ctx, next) => {
  const started = performance.now();
  ctx.state.id = `req_${randomUUID()}`;
  ctx.set('x-request-id', ctx.state.id);
  ctx.res.once('close', () => {
    const ms = performance.now() - started;
    requests.labels(String(ctx.status)).inc();
    seconds.observe(ms / 1000);
    const { id, ...state } = ctx.state;
    log.info({ request_id: id, method: ctx.method, path: ctx.path, status: ctx.status, ms, ...state }, 'request');
  });
  try {
    await next();
  } catch (error) {
    const isOurs = error instanceof Koa.HttpError;
    ctx.status = isOurs ? error.status : 500;
    ctx.body = { error: { message: isOurs ? error.message : 'Internal error' } };
  }
});

const router = new Router<State>();
router.post('/:kind/v1/chat/completions', async (ctx) => {
  const key = keys.get(digest(ctx.get('authorization').slice('Bearer '.length))) ?? ctx.throw(401, 'invalid key');
  const raw = await readBody(ctx.req);
  const body = parseJson(raw) ?? ctx.throw(400, 'invalid JSON');
  if (!isChatRequest(body)) return ctx.throw(400, 'invalid request');
  const { model, max_tokens: maxTokens = 1000 } = body;
  Object.assign(ctx.state, { key: key.id, model });
  const estimate = Math.ceil(raw.length / 4) + maxTokens;
  if (!isAdmitted(`rpm ${key.id}`, 1, key.rpm) || !isAdmitted(`tpm ${key.id}`, estimate, key.tpm))
    ctx.throw(429, 'rate limited');
  const hold = { id: ctx.state.id, account: key.account, estimate, amount: estimate * 4, model };
  if (!(await reserve(hold))) ctx.throw(402, 'insufficient balance');
  const abort = new AbortController();
  ctx.res.once('close', () => {
    if (!ctx.res.writableFinished) abort.abort();
  });
  const response = await pools[ctx['params'].kind === 'stream' ? 'stream' : 'json'].request({
    path: '/v1/chat/completions',
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: 'Bearer upstream-key' },
    body: JSON.stringify(body),
    signal: abort.signal,
  });
  ctx.status = response.statusCode;
  if (body.stream) {
    ctx.type = 'text/event-stream';
    ctx.body = Readable.from(relay(ctx.state, hold, response.body));
    return;
  }
  const reply = (await response.body.json()) as { readonly usage: Usage };
  ctx.set('x-cost-usd', String(settle(ctx.state, hold, reply.usage) / 1e6));
  ctx.body = reply;
});

/** Parses each event, reads its usage, and serializes it again. */
async function* relay(state: State, hold: Hold, body: Readable): AsyncGenerator<string> {
  let out = '';
  let usage: Usage = { prompt_tokens: hold.estimate, completion_tokens: 0, total_tokens: hold.estimate };
  const decoder = new TextDecoder();
  const parser = createParser({
    onEvent({ data }) {
      const isEnd = data === '[DONE]';
      const chunk = isEnd ? undefined : (JSON.parse(data) as { readonly usage?: Usage });
      usage = chunk?.usage ?? usage;
      out += `data: ${chunk ? JSON.stringify(chunk) : data}\n\n`;
    },
  });
  try {
    for await (const part of body as AsyncIterable<Buffer>) {
      parser.feed(decoder.decode(part, { stream: true }));
      yield out;
      out = '';
    }
  } finally {
    settle(state, hold, usage);
  }
}

function readBody(request: IncomingMessage): Promise<string> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => resolve(Buffer.concat(parts).toString('utf8')));
    request.on('error', reject);
  });
}

function parseJson(raw: string): unknown {
  try {
    return JSON.parse(raw);
  } catch {
    return undefined;
  }
}

app.use(router.routes());
const server = http.createServer(app.callback());
// `gate.mjs` names a port; the other benchmarks are sent the one that was free.
server.listen({ port: Number(process.env['PORT'] ?? 0), host: '127.0.0.1', backlog: 4096 }, () =>
  process.send?.((server.address() as AddressInfo).port),
);
process.on('disconnect', () => process.exit());
