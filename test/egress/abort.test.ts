import { getEventListeners } from 'node:events';
import { expect } from 'chai';
import type { UpstreamError } from '../../egress/upstream.ts';
import { drip, failsUpstream, givenUpstream, startBlackHole } from '../support/vendors/given-upstream.ts';
import { respondWith } from '../support/vendors/scripted-upstream.ts';
import { until } from '../support/wait.ts';

describe('an abort of an upstream call', () => {
  const given = givenUpstream();

  it('before the request sends nothing', async () => {
    const error = await failsUpstream(given.send({}, { signal: AbortSignal.abort() }));
    expect(error).to.include({ phase: 'aborted', sent: false });
    expect(given.vendor.connections.total).to.equal(0);
  });

  it('while connecting rejects immediately, and leaves no socket after the connect deadline @slow', async () => {
    const hole = await startBlackHole();
    try {
      const stop = new AbortController();
      const sending = given.send(
        {},
        { signal: stop.signal, endpoint: { baseUrl: hole.baseUrl }, deadlines: { connectMs: 1_500 } },
      );
      await until('the socket is open', () => hole.open === 1);
      stop.abort();
      expect(await failsUpstream(sending)).to.include({ phase: 'aborted', sent: false });
      await until('no socket is left', () => hole.taken > 0 && hole.open === 0);
    } finally {
      hole.close();
    }
  });

  it('before the first byte disconnects from the vendor', async () => {
    given.vendor.script((wire) => wire.hang());
    const stop = new AbortController();
    const sending = given.send({}, { signal: stop.signal });
    const request = await given.vendor.request(0);
    stop.abort();
    expect(await failsUpstream(sending)).to.include({ phase: 'aborted', sent: true });
    await request.closed;
  });

  it('in the middle of a stream disconnects from the vendor', async () => {
    given.vendor.script(drip('data: 1\n\n'));
    const stop = new AbortController();
    const response = await given.send({}, { signal: stop.signal });
    const error = await failsUpstream(
      (async () => {
        for await (const _ of response.body) stop.abort(new Error('the caller left'));
      })(),
    );
    expect(error).to.include({ phase: 'aborted', sent: true });
    expect(error.cause).to.have.property('message', 'the caller left');
    await given.vendor.requests[0]!.closed;
  });

  it('after the last byte changes nothing', async () => {
    given.vendor.script(respondWith(200, 'ok'));
    const stop = new AbortController();
    const response = await given.send({}, { signal: stop.signal });
    const body = await response.readAll();
    stop.abort();
    expect(body.toString()).to.equal('ok');
    await (await given.send()).readAll();
    expect(given.vendor.connections.total).to.equal(1);
  });

  it('has one listener per call, which is removed at its end', async () => {
    const stop = new AbortController();
    const listeners = () => getEventListeners(stop.signal, 'abort').length;
    given.vendor.script(respondWith(200, 'ok'), (wire) => wire.reset(), respondWith(204, ''), drip('x'));
    const response = await given.send({}, { signal: stop.signal });
    expect(listeners()).to.equal(1);
    await response.readAll();
    await failsUpstream(given.send({}, { signal: stop.signal }));
    for await (const _ of (await given.send({}, { signal: stop.signal })).body) break;
    (await given.send({}, { signal: stop.signal })).destroy();
    expect(listeners()).to.equal(0);
  });

  it('storms leave no connection open and mix up no responses', async () => {
    given.vendor.script(async (wire) => {
      await wire.pause(Number(wire.request.headers['x-delay']));
      await wire.send(respondWith(200, wire.request.body.toString()));
    });
    const outcomes = await Promise.all(
      Array.from({ length: 300 }, async (_, n) => {
        const stop = new AbortController();
        if (n % 3 > 0) setTimeout(() => stop.abort(), n % 7);
        try {
          const body = Buffer.from(`"nonce ${n}"`);
          const response = await given.send({ body, headers: { 'x-delay': String(n % 5) } }, { signal: stop.signal });
          return (await response.readAll()).equals(body);
        } catch (error) {
          return (error as UpstreamError).phase === 'aborted';
        }
      }),
    );
    expect(outcomes.every(Boolean)).to.equal(true);
    await given.upstream.close();
    await until('no connection is open', () => given.vendor.connections.open === 0);
  });
});
