import { expect } from 'chai';
import {
  completion,
  delta,
  events,
  type FaultRig,
  PROMPT_COST,
  startFaultRig,
  USAGE_COST,
} from '../support/fault-rig.ts';
import { answer, chunk, head, type Script, SSE_HEAD, startScriptedUpstream } from '../support/scripted-upstream.ts';

const STREAM = { stream: true };
const PAGE = '<html><head><title>502 Bad Gateway</title></head><body>nginx at 127.0.0.1</body></html>';
const html = { 'content-type': 'text/html' };
const refusal = (status: number, error: object, headers: Record<string, string> = {}) =>
  answer(status, { error }, headers);
const RATE = { message: 'slow down', type: 'rate_limit_error' };

interface Case {
  readonly title: string;
  readonly script: Script | string | Uint8Array;
  readonly request?: object;
  readonly code: string;
  readonly status?: number;
  readonly cost?: number;
  readonly message?: RegExp;
  readonly headers?: Readonly<Record<string, string | undefined>>;
}

/** What a provider may say that is not an answer, and what the caller gets for it; nothing is charged unless told. */
const CASES: readonly Case[] = [
  {
    title: 'U16: a 200 that is not JSON',
    script: answer(200, '{"id":', { 'content-type': 'application/json' }),
    code: 'provider_invalid_response',
    cost: PROMPT_COST,
  },
  { title: 'U17: a 200 that is a page', script: answer(200, PAGE, html), code: 'provider_invalid_response' },
  {
    title: 'U17: a 200 that is a page, for a stream',
    script: answer(200, PAGE, html),
    request: STREAM,
    code: 'provider_invalid_response',
  },
  { title: 'U18: a 502 that is a page', script: answer(502, PAGE, html), code: 'provider_unavailable' },
  { title: 'U18: a 503 that is a page', script: answer(503, PAGE, html), code: 'provider_overloaded' },
  { title: 'U18: a 504 that is a page', script: answer(504, PAGE, html), code: 'provider_timeout' },
  {
    title: 'U20: an error as JSON where a stream was asked for',
    script: answer(200, { error: { message: 'no', type: 'server_error' } }),
    request: STREAM,
    code: 'provider_unavailable',
  },
  {
    title: 'U21: a stream where none was asked for',
    script: events([delta('x', 'stop'), '[DONE]']),
    code: 'provider_invalid_response',
    cost: PROMPT_COST,
  },
  {
    title: 'U22: an error inside a 200',
    script: answer(200, { error: { message: 'no', code: 'overloaded' } }),
    code: 'provider_overloaded',
  },
  {
    title: 'U23: an error in the first event of a stream',
    script: events([JSON.stringify({ error: { message: 'no', type: 'server_error' } })]),
    request: STREAM,
    code: 'provider_unavailable',
  },
  {
    title: 'U35: a compressed answer, which nobody asked for',
    script: answer(200, completion(), { 'content-encoding': 'gzip' }),
    code: 'provider_unavailable',
    cost: PROMPT_COST,
  },
  {
    title: 'U36: an answer encoded a thousand times',
    script: answer(200, completion(), { 'content-encoding': Array(1000).fill('gzip').join(', ') }),
    code: 'provider_unavailable',
    cost: PROMPT_COST,
  },
  {
    title: 'U37: a cut compressed stream',
    script: answer(200, Buffer.from([31, 139, 8, 0, 0]), {
      'content-encoding': 'gzip',
      'content-type': 'text/event-stream',
    }),
    request: STREAM,
    code: 'provider_unavailable',
    cost: PROMPT_COST,
  },
  {
    title: 'U38: a rate limit with a wait',
    script: refusal(429, RATE, { 'retry-after': '2' }),
    code: 'upstream_rate_limited',
    status: 429,
    headers: { 'retry-after': '2', 'retry-after-ms': '2000' },
  },
  {
    title: 'U39: a rate limit with a date gone by',
    script: refusal(429, RATE, { 'retry-after': 'Sun, 06 Nov 1994 08:49:37 GMT' }),
    code: 'upstream_rate_limited',
    status: 429,
    headers: { 'x-should-retry': undefined },
  },
  {
    title: 'U39: a rate limit with a wait nobody can read',
    script: refusal(429, RATE, { 'retry-after': 'soon' }),
    code: 'upstream_rate_limited',
    status: 429,
    headers: { 'retry-after': undefined },
  },
  {
    title: 'U40: a rate limit of an hour: the caller’s SDK is told not to wait for it',
    script: refusal(429, RATE, { 'retry-after': '3600' }),
    code: 'upstream_rate_limited',
    status: 429,
    headers: { 'retry-after': '60', 'x-should-retry': 'false' },
  },
  {
    title: 'U40: a rate limit of many days, which is taken for a mistake',
    script: refusal(429, RATE, { 'retry-after': '999999' }),
    code: 'upstream_rate_limited',
    status: 429,
    headers: { 'retry-after': undefined },
  },
  {
    title: 'U41: a 401 for the operator’s key',
    script: refusal(401, {
      message: 'Incorrect API key provided: sk-operator-canary-0123456789abcdef',
      type: 'invalid_request_error',
      code: 'invalid_api_key',
    }),
    code: 'provider_auth_failed',
    headers: { 'www-authenticate': undefined, 'x-should-retry': undefined },
  },
  { title: 'U41: a 403 for the operator’s key', script: refusal(403, { message: 'no' }), code: 'provider_auth_failed' },
  { title: 'U42: a 402', script: refusal(402, { message: 'pay' }), code: 'provider_quota_exhausted' },
  {
    title: 'U42: a used-up quota as 429',
    script: refusal(429, { message: 'pay', type: 'insufficient_quota', code: 'insufficient_quota' }),
    code: 'provider_quota_exhausted',
  },
  {
    title: 'U43: a 400, with the vendor’s words and none of its secrets',
    script: refusal(400, {
      message: 'Bad value for org-abc123def456 with key sk-operator-canary-0123456789abcdef at http://127.0.0.1/x',
      type: 'invalid_request_error',
      param: 'top_k',
    }),
    code: 'invalid_request',
    status: 400,
    message: /^one: Bad value for \[redacted\] with key \[redacted\]/,
  },
  {
    title: 'U44: a model that the vendor does not have',
    script: refusal(404, { message: 'The model m does not exist', code: 'model_not_found' }),
    code: 'unsupported_model',
    status: 404,
  },
  {
    title: 'U47: 101',
    script: head(101, { upgrade: 'websocket', connection: 'upgrade' }),
    code: 'provider_unavailable',
    cost: PROMPT_COST,
  },
  { title: 'U48: 204', script: head(204), code: 'provider_unavailable' },
  { title: 'U48: 205 with a body', script: answer(205, 'surprise'), code: 'provider_unavailable' },
  { title: 'U48: 304', script: head(304), code: 'provider_unavailable' },
  {
    title: 'U49: a header with a zero byte',
    script: 'HTTP/1.1 200 OK\r\nx\0y: z\r\ncontent-length: 0\r\n\r\n',
    code: 'provider_unavailable',
    cost: PROMPT_COST,
  },
  {
    title: 'U49: 100 KB of headers',
    script: head(200, { 'x-large': 'x'.repeat(100_000), 'content-length': '0' }),
    code: 'provider_unavailable',
    cost: PROMPT_COST,
  },
  {
    title: 'U49: two lengths',
    script: 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nabc',
    code: 'provider_unavailable',
    cost: PROMPT_COST,
  },
];

describe('an answer of a provider that is none', function () {
  this.timeout(30_000);
  let rig: FaultRig;
  before(async () => {
    rig = await startFaultRig();
  });
  after(() => rig?.stop());

  for (const { title, script, request, code, status = 503, cost = 0, message = /./, headers = {} } of CASES) {
    it(`${title}: ${status} ${code}`, async () => {
      const mark = await rig.mark();
      rig.vendor.script(script);
      const heard = await rig.ask(request);
      expect(rig.expectError(heard, code, status).message).to.match(message);
      expect(heard.text).not.to.match(/html|nginx/i);
      for (const [name, value] of Object.entries(headers)) expect(heard.headers[name], name).to.equal(value);
      await rig.expectOrder(mark, 1, cost);
    });
  }

  it('U39: a rate limit with a date to come is counted down', async () => {
    const date = new Date(Date.now() + 30_000).toUTCString();
    rig.vendor.script(refusal(429, RATE, { 'retry-after': date }));
    const heard = await rig.ask();
    rig.expectError(heard, 'upstream_rate_limited', 429);
    expect(Number(heard.headers['retry-after'])).to.be.within(1, 31);
  });

  for (const status of [301, 302, 303, 307, 308]) {
    it(`U45, U46: a ${status} is not followed, to another origin or to the same`, async () => {
      const other = await startScriptedUpstream(answer(200, completion('stolen')));
      try {
        const mark = await rig.mark();
        const seen = rig.vendor.requests.length;
        for (const origin of [other.url, rig.vendor.url]) {
          rig.vendor.script(answer(status, '', { location: `${origin}/steal` }));
          const heard = await rig.ask();
          rig.expectError(heard, 'provider_unavailable');
          expect(heard.headers['location']).to.equal(undefined);
        }
        expect(other.connections.total).to.equal(0);
        expect(rig.vendor.requests.length - seen).to.equal(2);
        await rig.expectOrder(mark, 2, 0);
      } finally {
        await other.close();
      }
    });
  }

  it('U23: an error in the first event lets the next target answer', async () => {
    const mark = await rig.mark();
    rig.vendor.script(events([JSON.stringify({ error: { message: 'no', type: 'server_error' } })]));
    rig.second.script(events([delta('hi', 'stop', { usage: completion().usage }), '[DONE]']));
    const heard = await rig.ask({ model: 'both', stream: true });
    expect(heard.text).to.include('"content":"hi"').and.not.include('error');
    await rig.expectOrder(mark, 1, 10 * USAGE_COST);
  });

  it('U24: an error in the middle of a stream is one error frame after all that came before, and nobody else is asked', async () => {
    const mark = await rig.mark();
    const asked = rig.second.requests.length;
    const broken = JSON.stringify({ error: { message: 'at http://127.0.0.1', type: 'server_error' } });
    rig.vendor.script(async ({ send, pause }) => {
      await send(SSE_HEAD);
      await send(chunk(`data: ${delta('abcd')}\n\n`));
      await pause(30);
      // In one packet with its last words.
      await send(chunk(`data: ${delta('efgh')}\n\ndata: ${delta('ijkl')}\n\ndata: ${broken}\n\n`));
      await send('0\r\n\r\n');
    });
    const heard = await rig.ask({ model: 'both', stream: true });
    rig.expectError(heard, 'provider_unavailable');
    expect(heard.frames.slice(0, -1).join()).to.include('abcd').and.include('efgh').and.include('ijkl');
    expect(rig.second.requests.length).to.equal(asked);
    await rig.expectOrder(mark, 1, PROMPT_COST + 6);
  });

  it('U50: an answer that nobody asked for is not taken for that of the next caller', async () => {
    for (const delayMs of [0, 5, 20]) {
      rig.vendor.script(
        async (wire) => {
          await wire.send(answer(200, completion('mine')));
          await wire.pause(delayMs);
          await wire.send(answer(200, completion('of another tenant')));
        },
        answer(200, completion('yours')),
      );
      expect((await rig.ask()).text).to.include('mine');
      if (delayMs > 0) await new Promise((resolve) => setTimeout(resolve, delayMs * 3));
      expect((await rig.ask()).text)
        .to.include('yours')
        .and.not.include('tenant');
    }
  });

  it('U51: headers of the vendor do not come through, but for its rate limits', async () => {
    const theirs = {
      'set-cookie': 'a=b',
      server: 'cloudflare',
      'x-request-id': 'req-of-the-vendor',
      'openai-organization': 'org-canary',
      'access-control-allow-origin': '*',
      'x-ratelimit-remaining-requests': '7',
    };
    rig.vendor.script(answer(200, completion(), theirs));
    const { headers } = await rig.ask();
    expect(headers['x-ratelimit-remaining-requests']).to.equal('7');
    expect(headers['x-request-id']).to.match(/^req_/);
    for (const name of ['set-cookie', 'server', 'openai-organization', 'access-control-allow-origin'])
      expect(headers[name], name).to.equal(undefined);
  });

  it('U47: early hints are passed over', async () => {
    rig.vendor.script(Buffer.concat([Buffer.from(head(103, { link: '</x>' })), answer(200, completion())]));
    expect((await rig.ask()).status).to.equal(200);
  });

  it('U19: an answer under another content type is taken when it is JSON', async () => {
    const mark = await rig.mark();
    for (const type of ['text/plain', 'text/html', 'application/octet-stream']) {
      rig.vendor.script(answer(200, completion(), { 'content-type': type }));
      expect((await rig.ask()).status, type).to.equal(200);
    }
    await rig.expectOrder(mark, 3, 3 * USAGE_COST);
  });

  it('U20: an answer as JSON where a stream was asked for is made a stream', async () => {
    const mark = await rig.mark();
    rig.vendor.script(answer(200, completion('whole')));
    const { frames } = await rig.ask(STREAM);
    expect(frames.join('\n')).to.include('"content":"whole"').and.to.include('"finish_reason":"stop"');
    expect(frames.at(-1)).to.equal('[DONE]');
    await rig.expectOrder(mark, 1, USAGE_COST);
  });

  it('U31: code points are whole wherever the vendor’s packets are cut', async () => {
    const wire = Buffer.from(`data: ${delta('😀é', 'stop')}\n\ndata: [DONE]\n\n`);
    const from = wire.indexOf(Buffer.from('😀'));
    for (let at = from; at < from + 7; at++) {
      rig.vendor.script(async ({ send, pause }) => {
        await send(Buffer.concat([Buffer.from(SSE_HEAD), chunk(wire.subarray(0, at))]));
        await pause(2);
        await send(Buffer.concat([chunk(wire.subarray(at)), Buffer.from('0\r\n\r\n')]));
      });
      expect((await rig.ask(STREAM)).text).to.include('"content":"😀é"');
    }
    rig.vendor.script(async ({ send }) => {
      await send(SSE_HEAD);
      await send(
        chunk(
          Buffer.concat([
            Buffer.from('data: '),
            Buffer.from(delta('a?b', 'stop').replace('?', '\xff'), 'latin1'),
            Buffer.from('\n\ndata: [DONE]\n\n0'),
          ]),
        ),
      );
      await send('0\r\n\r\n');
    });
    expect((await rig.ask(STREAM)).text).to.include('"content":"a\ufffdb"');
  });

  it('U32: every kind of line end, and a byte order mark, give the same answer', async () => {
    const texts: string[][] = [];
    for (const [end, mark] of [
      ['\n', ''],
      ['\r\n', ''],
      ['\r', ''],
      ['\n', '\ufeff'],
    ] as const) {
      const wire = `${mark}data: ${delta('hi')}${end}${end}data: ${delta('', 'stop')}${end}${end}data: [DONE]${end}${end}`;
      rig.vendor.script(async ({ send }) => {
        await send(SSE_HEAD);
        for (const byte of Buffer.from(wire)) await send(chunk(Uint8Array.of(byte)));
        await send('0\r\n\r\n');
      });
      texts.push([...(await rig.ask(STREAM)).frames]);
    }
    for (const frames of texts) expect(frames).to.deep.equal(texts[0]);
    expect(texts[0]?.at(-1)).to.equal('[DONE]');
  });

  it('serves the next hundred calls after all that', async () => {
    await rig.expectOrder(await rig.mark(), 0, 0, 100);
  });
});
