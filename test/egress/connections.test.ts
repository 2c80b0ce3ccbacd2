import { expect } from 'chai';
import { createUpstream } from '../../egress/upstream.ts';
import { createSilentLog } from '../support/log.ts';
import { failsUpstream, givenUpstream, startBlackHole } from '../support/vendors/given-upstream.ts';
import { respondWith, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';
import { until } from '../support/wait.ts';

describe('an upstream connection', () => {
  const given = givenUpstream();

  it('that is refused fails immediately, with nothing sent', async () => {
    const gone = await startScriptedUpstream();
    await gone.close();
    const error = await failsUpstream(given.send({}, { endpoint: { baseUrl: gone.url } }));
    expect(error).to.include({ failure: 'upstream_error', phase: 'connect', sent: false });
  });

  it('to a name that does not resolve fails without naming it', async () => {
    const error = await failsUpstream(
      given.send({}, { endpoint: { baseUrl: 'http://inner-host.invalid/v1' }, deadlines: { connectMs: 4_000 } }),
    );
    expect(error).to.include({ phase: 'connect', sent: false });
    expect(error.message).to.not.include('inner-host');
  });

  it('that hangs fails at the connect deadline, not at a later one @slow', async () => {
    const hole = await startBlackHole();
    try {
      const error = await failsUpstream(
        given.send({}, { endpoint: { baseUrl: hole.baseUrl }, deadlines: { connectMs: 300 } }),
      );
      expect(error).to.include({ failure: 'timeout', phase: 'connect', sent: false });
    } finally {
      hole.close();
    }
  });

  it('closed by the vendor while idle is replaced without an error for the caller', async () => {
    let silent = 0;
    // Responds to the first request of each connection, and resets it during the second.
    given.vendor.script((wire) => {
      if (wire.request.nth === 0) return wire.send(respondWith(200, 'ok'));
      silent += 1;
      return wire.reset();
    });
    await (await given.send()).readAll();
    expect((await (await given.send()).readAll()).toString()).to.equal('ok');
    expect(silent).to.equal(1);
    expect(given.vendor.connections.total).to.equal(2);
  });

  it('closed in a race is replaced every time', async () => {
    given.vendor.script(async (wire) => {
      await wire.send(respondWith(200, String(wire.request.nth)));
      wire.end();
    });
    for (let n = 0; n < 50; n++) expect((await (await given.send()).readAll()).toString()).to.equal('0');
  });

  it('is retried only once: a fresh socket that is reset too is a failure', async () => {
    given.vendor.script(respondWith(200, 'ok'), (wire) => wire.reset());
    await (await given.send()).readAll();
    expect(await failsUpstream(given.send())).to.include({ failure: 'upstream_error', phase: 'firstByte', sent: true });
    expect(given.vendor.requests).to.have.length(3);
  });

  it('is not retried after a byte of the response', async () => {
    given.vendor.script(respondWith(200, 'ok'), async (wire) => {
      await wire.send('HTTP');
      wire.reset();
    });
    await (await given.send()).readAll();
    expect(await failsUpstream(given.send())).to.include({ phase: 'body' });
    expect(given.vendor.requests).to.have.length(2);
  });

  for (const delayMs of [0, 5, 20]) {
    it(`with an unsolicited second response (after ${delayMs} ms) is not used again`, async () => {
      given.vendor.script(async (wire) => {
        const requested = respondWith(200, `for ${String(wire.request.json())}`);
        const unrequested = respondWith(200, 'somebody else’s');
        if (delayMs === 0) return wire.send(Buffer.concat([requested, unrequested]));
        await wire.send(requested);
        await wire.pause(delayMs);
        return wire.send(unrequested);
      });
      for (let n = 0; n < 10; n++) {
        const body = await (await given.send({ body: Buffer.from(JSON.stringify(n)) })).readAll();
        expect(body.toString()).to.equal(`for ${n}`);
        // A response that crosses the next request cannot be distinguished from that request's own. HTTP/1.1 has no
        // ids.
        if (delayMs > 0) await until('the connection is closed', () => given.vendor.connections.open === 0);
      }
    });
  }

  it('is refused as overloaded when the allowed number is in use', async () => {
    const narrow = createUpstream({ log: createSilentLog(), limits: { maxConnections: 2 } });
    try {
      given.vendor.script((wire) => wire.hang());
      const stop = new AbortController();
      const options = { signal: stop.signal };
      const held = [1, 2].map(() =>
        narrow.send(given.endpoint(), { path: '/chat', body: {} }, options).catch(() => {}),
      );
      const error = await failsUpstream(narrow.send(given.endpoint(), { path: '/chat', body: {} }, options));
      expect(error).to.include({ failure: 'overloaded', phase: 'connect', sent: false });
      stop.abort();
      await Promise.all(held);
      given.vendor.script(respondWith(200, 'ok'));
      const after = await narrow.send(
        given.endpoint(),
        { path: '/chat', body: {} },
        { signal: new AbortController().signal },
      );
      expect((await after.readAll()).toString()).to.equal('ok');
    } finally {
      await narrow.close();
    }
  });
});
