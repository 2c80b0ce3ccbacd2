import { expect } from 'chai';
import type { Timeouts, UpstreamPhase } from '../../contract/provider.ts';
import { createUpstream } from '../../egress/upstream.ts';
import { createSilentLog } from '../support/log.ts';
import { drip, failsUpstream, givenUpstream, SHORT } from '../support/vendors/given-upstream.ts';
import { chunk, head, LAST_CHUNK, respondWith, type Script, SSE_HEAD } from '../support/vendors/scripted-upstream.ts';
import { until } from '../support/wait.ts';

describe('an upstream body', () => {
  const given = givenUpstream();

  it('arrives in order, and the data of one read in one piece', async () => {
    const pieces = Array.from({ length: 100 }, (_, n) => `${n};`);
    given.vendor.script(Buffer.concat([Buffer.from(SSE_HEAD), ...pieces.map(chunk), Buffer.from(LAST_CHUNK)]));
    const parts: string[] = [];
    for await (const part of (await given.send()).body) parts.push(part.toString());
    expect(parts.join('')).to.equal(pieces.join(''));
    expect(parts.length).to.be.lessThan(20);
  });

  const broken: readonly (readonly [
    string,
    Script | string,
    'upstream_error' | 'timeout',
    UpstreamPhase,
    Partial<Timeouts>?,
  ])[] = [
    [
      'reset before its declared length',
      cut(head(200, { 'content-length': '100' }), 'reset'),
      'upstream_error',
      'body',
    ],
    ['closed before its declared length', cut(head(200, { 'content-length': '100' }), 'end'), 'upstream_error', 'body'],
    ['reset within chunks', cut(SSE_HEAD, 'reset'), 'upstream_error', 'body'],
    ['closed without the last chunk', cut(SSE_HEAD, 'end'), 'upstream_error', 'body'],
    ['silent after the head', SSE_HEAD, 'timeout', 'idle', SHORT],
    ['silent after a part', SSE_HEAD + chunk('data: 1\n\n').toString(), 'timeout', 'idle', SHORT],
    ['dripping for ever', drip(': ping\n\n'), 'timeout', 'total', { totalMs: 700 }],
    ['dripping byte by byte', drip('d'), 'timeout', 'total', { totalMs: 700 }],
  ];
  for (const [what, script, failure, phase, deadlines] of broken) {
    it(`${what} fails with ${failure} in phase ${phase}, after the previous data`, async () => {
      given.vendor.script(script);
      const response = await given.send({}, deadlines ? { deadlines } : {});
      const parts: Buffer[] = [];
      const error = await failsUpstream(
        (async () => {
          for await (const part of response.body) parts.push(part);
        })(),
      );
      expect(error).to.include({ failure, phase, sent: true });
      if (what.includes('part') || what.includes('drip')) expect(Buffer.concat(parts).length).to.be.greaterThan(0);
      await until('the connection is closed', () => given.vendor.connections.open === 0);
    });
  }

  it('with a later start and a shorter timeout fails before one with a longer timeout', async () => {
    given.vendor.script(drip('d'));
    const first = await given.send({}, { deadlines: { totalMs: 60_000 } });
    const second = await given.send({}, { deadlines: { totalMs: 300 } });
    expect(await failsUpstream(second.readAll())).to.include({ failure: 'timeout', phase: 'total' });
    const third = await given.send({}, { deadlines: { totalMs: 300 } });
    expect(await failsUpstream(third.readAll())).to.include({ failure: 'timeout', phase: 'total' });
    for await (const part of first.body) {
      expect(part.toString()).to.match(/^d+$/);
      break;
    }
  });

  it('that is interrupted before it is read returns its data, and then fails', async () => {
    given.vendor.script(cut(SSE_HEAD, 'end'));
    const response = await given.send();
    await until('the connection is closed', () => given.vendor.connections.open === 0);
    const parts: Buffer[] = [];
    const error = await failsUpstream(
      (async () => {
        for await (const part of response.body) parts.push(part);
      })(),
    );
    expect(Buffer.concat(parts).toString()).to.equal('{"id":1');
    expect(error).to.include({ failure: 'upstream_error', phase: 'body' });
  });

  it('ended by the end of the connection is complete', async () => {
    given.vendor.script(async (wire) => {
      await wire.send(`${head(200, { connection: 'close' })}until the end`);
      wire.end();
    });
    expect((await (await given.send()).readAll()).toString()).to.equal('until the end');
  });

  it('longer than the limit is cancelled, and not buffered', async () => {
    given.vendor.script(flood());
    const response = await given.send();
    expect(await failsUpstream(response.readAll())).to.include({ failure: 'upstream_error', phase: 'body' });
    await until('the connection is closed', () => given.vendor.connections.open === 0);
  });

  it('longer than a reader’s limit is cancelled', async () => {
    given.vendor.script(respondWith(200, 'x'.repeat(1000)));
    expect(await failsUpstream((await given.send()).readAll(999))).to.include({ phase: 'body' });
  });

  it('without a reader pauses the vendor, and is not idle in the meantime @slow', async () => {
    const big = createUpstream({ log: createSilentLog(), defaults: { idleMs: 1_000 } });
    try {
      let sent = 0;
      let isBlocked = false;
      given.vendor.script(async (wire) => {
        await wire.send(SSE_HEAD);
        const piece = chunk(Buffer.alloc(64 * 1024, 120));
        for (let n = 0; n < 256; n++) {
          const timer = setTimeout(() => {
            isBlocked = true;
          }, 200);
          await wire.send(piece);
          clearTimeout(timer);
          sent += 64 * 1024;
        }
        await wire.send(LAST_CHUNK);
      });
      const response = await big.send(
        given.endpoint(),
        { path: '/chat', body: {} },
        { signal: new AbortController().signal },
      );
      await until('the vendor can’t send more', () => isBlocked);
      expect(sent).to.be.lessThan(16 * 1024 * 1024);
      // Longer than the idle deadline: the reader is slow, the provider is not.
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      expect((await response.readAll()).length).to.equal(256 * 64 * 1024);
    } finally {
      await big.close();
    }
  });

  it('that a reader abandons disconnects', async () => {
    given.vendor.script(drip('data: 1\n\n'));
    for await (const _ of (await given.send()).body) break;
    await until('the connection is closed', () => given.vendor.connections.open === 0);
  });

  it('that is destroyed disconnects', async () => {
    given.vendor.script(drip('data: 1\n\n'));
    const response = await given.send();
    response.destroy();
    response.destroy();
    expect((await response.readAll()).length).to.equal(0);
    await until('the connection is closed', () => given.vendor.connections.open === 0);
  });
});

function cut(start: string, how: 'reset' | 'end'): Script {
  return async (wire) => {
    await wire.send(start);
    await wire.send(start.includes('chunked') ? chunk('{"id":1') : '{"id":1');
    await wire.pause(20);
    wire[how]();
  };
}

function flood(): Script {
  return async (wire) => {
    await wire.send(SSE_HEAD);
    while (!wire.isGone) await wire.send(chunk(Buffer.alloc(64 * 1024)));
  };
}
