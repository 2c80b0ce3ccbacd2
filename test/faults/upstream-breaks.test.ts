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
import { startBlackHole } from '../support/given-upstream.ts';
import { answer, chunk, head, type Script, SSE_HEAD } from '../support/scripted-upstream.ts';

interface Case {
  readonly title: string;
  readonly script: Script | string | Uint8Array;
  readonly request?: object;
  /** The error the caller gets; undefined for an answer. */
  readonly code?: string;
  readonly status?: number;
  /** The text that comes, before the error if there is one. */
  readonly text?: string;
  /** In micro-dollars. */
  readonly cost: number;
}

const STREAM = { stream: true };
const HASTY = { model: 'hasty/m' };
const THREE = [delta('a'.repeat(20)), delta('b'.repeat(20)), delta('c'.repeat(20))];
const THREE_TEXT = 'a'.repeat(20) + 'b'.repeat(20) + 'c'.repeat(20);
/** The prompt and 60 bytes of text, 4 a token, 2 micro-dollars each. */
const THREE_COST = PROMPT_COST + 30;
const hang: Script = (wire) => wire.hang();
const dripping =
  (text: string): Script =>
  async (wire) => {
    await wire.send(SSE_HEAD);
    while (!wire.isGone) {
      await wire.send(chunk(text));
      await wire.pause(20);
    }
  };

const CASES: readonly Case[] = [
  { title: 'U05: is silent', script: hang, request: HASTY, code: 'provider_timeout', cost: PROMPT_COST },
  {
    title: 'U05: is silent on a stream',
    script: hang,
    request: { ...HASTY, ...STREAM },
    code: 'provider_timeout',
    cost: PROMPT_COST,
  },
  {
    title: 'U06: is silent after the head of a stream, when the status can still tell',
    script: events([], hang),
    request: { ...HASTY, ...STREAM },
    code: 'provider_timeout',
    cost: PROMPT_COST,
  },
  {
    title: 'U07: falls silent in the middle of a stream',
    script: events(THREE, hang),
    request: { ...HASTY, ...STREAM },
    code: 'provider_timeout',
    text: THREE_TEXT,
    cost: THREE_COST,
  },
  {
    title: 'U08: resets a fresh connection before it answers: the prompt is not sent twice',
    script: (wire) => wire.reset(),
    code: 'provider_unavailable',
    cost: PROMPT_COST,
  },
  {
    title: 'U10: resets in the middle of an answer',
    script: async (wire) => {
      await wire.send(head(200, { 'content-type': 'application/json', 'content-length': '100' }));
      await wire.send('{"id":1');
      wire.reset();
    },
    code: 'provider_unavailable',
    cost: PROMPT_COST,
  },
  {
    title: 'U11: resets in the middle of a stream',
    script: events(THREE, async (wire) => {
      await wire.pause(20);
      wire.reset();
    }),
    request: STREAM,
    code: 'provider_unavailable',
    text: THREE_TEXT,
    cost: THREE_COST,
  },
  {
    title: 'U12: ends a stream without a finish reason',
    script: events(THREE),
    request: STREAM,
    code: 'provider_unavailable',
    text: THREE_TEXT,
    cost: THREE_COST,
  },
  {
    title: 'U13: ends a stream without [DONE]',
    script: events([...THREE, delta('', 'stop')]),
    request: STREAM,
    text: THREE_TEXT,
    cost: THREE_COST,
  },
  {
    title: 'U14: drips bytes of an event that never ends',
    script: dripping('x'),
    request: { ...HASTY, ...STREAM },
    code: 'provider_timeout',
    cost: PROMPT_COST,
  },
  {
    title: 'U15: sends comments and nothing else',
    script: dripping(': ping\n\n'),
    request: { ...HASTY, ...STREAM },
    code: 'provider_timeout',
    cost: PROMPT_COST,
  },
  {
    title: 'U33: sends an event without end',
    script: async (wire) => {
      await wire.send(head(200, { 'content-type': 'text/event-stream', 'content-length': String(64 << 20) }));
      await wire.send('data: ');
      const piece = Buffer.alloc(256 * 1024, 'x');
      for (let n = 0; n < 255 && !wire.isGone; n++) await wire.send(piece);
    },
    request: STREAM,
    code: 'provider_unavailable',
    cost: PROMPT_COST,
  },
  {
    title: 'U34: sends an answer without end',
    script: async (wire) => {
      await wire.send(head(200, { 'content-type': 'application/json', 'transfer-encoding': 'chunked' }));
      const piece = chunk(Buffer.alloc(1024 * 1024, ' '));
      while (!wire.isGone) await wire.send(piece);
    },
    code: 'provider_unavailable',
    cost: PROMPT_COST,
  },
];

describe('a provider that breaks off', function () {
  this.timeout(30_000);
  let rig: FaultRig;
  before(async () => {
    rig = await startFaultRig();
  });
  after(() => rig?.stop());

  for (const { title, script, request, code, text = '', cost } of CASES) {
    it(title, async () => {
      // So that no connection is kept, on which a reset would be worth another try.
      rig.vendor.script(answer(200, completion(), { connection: 'close' }));
      await rig.ask(request && 'model' in request ? { ...request, stream: false } : {});
      const mark = await rig.mark();
      const seen = rig.vendor.requests.length;
      const rss = process.memoryUsage().rss;
      rig.vendor.script(script);
      const heard = await rig.ask(request);
      if (code) rig.expectError(heard, code);
      else expect(heard.frames.filter((frame) => frame === '[DONE]')).to.have.lengthOf(1);
      expect(textOf(heard.frames)).to.equal(text);
      expect(heard.text.includes('[DONE]')).to.equal(code === undefined);
      expect(rig.vendor.requests.length - seen, 'requests').to.equal(1);
      expect(process.memoryUsage().rss - rss).to.be.lessThan(160 << 20);
      await rig.expectOrder(mark, 1, cost);
    });
  }

  it('U09: resets a kept connection: the call is sent again on a new one, and charged once', async () => {
    const mark = await rig.mark();
    rig.vendor.script(answer(200, completion()));
    expect((await rig.ask()).status).to.equal(200);
    rig.vendor.script((wire) => wire.reset(), answer(200, completion()));
    const heard = await rig.ask();
    expect(heard.status, heard.text).to.equal(200);
    await rig.expectOrder(mark, 2, 2 * USAGE_COST);
  });

  it('serves the next hundred calls after all that', async () => {
    await rig.expectOrder(await rig.mark(), 0, 0, 100);
  });
});

describe('a provider that cannot be reached', function () {
  this.timeout(30_000);
  let rig: FaultRig;
  let hole: Awaited<ReturnType<typeof startBlackHole>>;
  before(async () => {
    hole = await startBlackHole();
    const out = { plugin: 'openai-compatible', apiKey: 'k', models: ['*'], prices: { '*': { input: 1, output: 2 } } };
    rig = await startFaultRig({
      providers: {
        nowhere: { ...out, baseUrl: 'http://tollgate-no-such-host.invalid/v1' },
        hole: { ...out, baseUrl: hole.baseUrl, timeouts: { connect: '300ms' } },
      },
    });
  });
  after(async () => {
    await rig?.stop();
    hole?.close();
  });

  for (const [title, model, code] of [
    ['U01: refuses connections', 'dead/m', 'provider_unavailable'],
    ['U02: has a name that does not resolve', 'nowhere/m', 'provider_unavailable'],
    ['U03: takes a connection and does nothing with it', 'hole/m', 'provider_timeout'],
  ] as const) {
    it(`${title}: nothing was sent, nothing is charged`, async () => {
      const mark = await rig.mark();
      const error = rig.expectError(await rig.ask({ model }), code);
      expect(error.message).not.to.match(/invalid\/|no-such-host|ENOTFOUND|EAI_AGAIN/);
      await rig.expectOrder(mark, 1, 0);
    });
  }

  it('U01: the next target of an alias answers instead', async () => {
    const mark = await rig.mark();
    rig.second.script(answer(200, completion()));
    const heard = await rig.ask({ model: 'rescued' });
    expect(heard.status, heard.text).to.equal(200);
    expect(heard.headers['x-tollgate-provider']).to.equal('two');
    await rig.expectOrder(mark, 1, 10 * USAGE_COST);
  });

  it('U54: all targets fail: one error after one retry, and the caller’s SDK is told to stop', async () => {
    const mark = await rig.mark();
    const asked = [rig.vendor.requests.length, rig.second.requests.length];
    rig.vendor.script(answer(429, { error: { message: 'slow down', type: 'rate_limit_error' } }));
    rig.second.script(answer(500, { error: { message: 'no', type: 'server_error' } }));
    const heard = await rig.ask({ model: 'both' });
    rig.expectError(heard, 'upstream_rate_limited', 429);
    expect(heard.headers).to.include({ 'x-should-retry': 'false' });
    // The one that says that it did nothing is asked again.
    const now = [rig.vendor.requests.length, rig.second.requests.length];
    expect(now).to.deep.equal([(asked[0] ?? 0) + 2, (asked[1] ?? 0) + 1]);
    await rig.expectOrder(mark, 1, 0);
  });
});

function textOf(frames: readonly string[]): string {
  return frames
    .filter((frame) => frame.startsWith('{') && !frame.startsWith('{"error"'))
    .map((frame) => {
      const { choices } = JSON.parse(frame) as { choices: { delta?: { content?: string } }[] };
      return choices[0]?.delta?.content ?? '';
    })
    .join('');
}
