import { mock } from 'node:test';
import { expect } from 'chai';
import type { Endpoint } from '../../contract/provider.ts';
import { failsUpstream, givenUpstream, SHORT } from '../support/vendors/given-upstream.ts';
import { type RealtimeVendor, startRealtimeVendor } from '../support/vendors/realtime-vendor.ts';
import { respondWith } from '../support/vendors/scripted-upstream.ts';
import { until } from '../support/wait.ts';

describe('a websocket at a vendor', () => {
  const given = givenUpstream();
  let vendor: RealtimeVendor;
  beforeEach(async () => {
    vendor = await startRealtimeVendor();
  });
  afterEach(() => vendor.close());

  const open = (
    more: Partial<Endpoint> = {},
    { maxMessageBytes = 100_000, totalMs = 60_000, signal = new AbortController().signal, deadlines = {} } = {},
  ) =>
    given.upstream.send(
      given.endpoint({ baseUrl: `${vendor.url}/v1`, ...more }),
      { path: '/realtime?model=m' },
      { signal, deadlines, websocket: { maxMessageBytes, totalMs } },
    );
  const frames = async (body: AsyncIterable<Buffer>, seen: string[]): Promise<void> => {
    for await (const frame of body) seen.push(String(frame));
  };

  it('is opened with the key and the headers of its endpoint, and passes text frames both ways', async () => {
    const response = await open({ headers: { 'x-own': 'yes' } });
    expect(response.status).to.equal(101);
    const [session] = vendor.sessions;
    expect(session?.headers).to.include({ authorization: 'Bearer sk-canary', 'x-own': 'yes' });
    const seen: string[] = [];
    const read = frames(response.body, seen);
    await response.send?.('{"type":"response.create"}');
    await until('the response is over', () => seen.some((text) => text.includes('response.done')));
    expect(seen[0]).to.include('session.created');
    session?.socket.close(1000);
    await read;
  });

  it('has the headers that a credential creates for its URL', async () => {
    const made: string[] = [];
    const credential: Endpoint['credential'] = {
      ...{ header: 'authorization', value: undefined, required: false },
      headers: async ({ url }) => {
        made.push(url);
        return { authorization: 'Bearer made' };
      },
    };
    const response = await open({ credential });
    expect(vendor.sessions[0]?.headers.authorization).to.equal('Bearer made');
    expect(made).to.deep.equal([`${vendor.url}/v1/realtime?model=m`]);
    response.destroy();
    await until('the vendor is left', () => vendor.sessions[0]?.code !== undefined);
  });

  it('is a response like any other if the vendor refuses the handshake', async () => {
    vendor.refusal = { status: 429, body: { error: { message: 'Later.' } } };
    const response = await open();
    expect([response.status, response.send]).to.deep.equal([429, undefined]);
    expect(JSON.parse(String(await response.readAll()))).to.deep.equal({ error: { message: 'Later.' } });
  });

  it('fails if the vendor redirects, does not respond, or is unreachable', async () => {
    vendor.refusal = { status: 302, body: {} };
    expect((await failsUpstream(open())).message).to.include('redirect');
    given.vendor.script(() => new Promise<void>(() => {}));
    const silent = await failsUpstream(open({ baseUrl: given.vendor.url }, { deadlines: SHORT }));
    expect(silent).to.include({ failure: 'timeout', sent: false });
    const absent = await failsUpstream(open({ baseUrl: 'http://127.0.0.1:9' }));
    expect(absent).to.include({ failure: 'upstream_error', phase: 'connect', sent: false });
  });

  it('breaks for a binary or oversized frame, and for a vendor that disconnects', async () => {
    for (const spoil of [
      (at: number) => vendor.sessions[at]?.socket.send(Buffer.from([1]), { binary: true }),
      (at: number) => vendor.sessions[at]?.socket.send('x'.repeat(200_000)),
      (at: number) => vendor.sessions[at]?.socket.terminate(),
    ]) {
      const at = vendor.sessions.length;
      const { body } = await open();
      spoil(at);
      expect(await failsUpstream(frames(body, []))).to.include({ phase: 'body', sent: true });
      await until('it is closed', () => vendor.sessions[at]?.code !== undefined);
    }
  });

  it('breaks only for a vendor that no longer answers pings', async () => {
    mock.timers.enable({ apis: ['setInterval'] });
    try {
      const [dead, there] = [await open(), await open()];
      const broken = failsUpstream(frames(dead.body, []));
      const seen: string[] = [];
      const read = frames(there.body, seen);
      vendor.sessions[0]?.socket.pause();
      vendor.sessions[1]?.socket.on('ping', () => vendor.sessions[1]?.send({ type: 'pinged' }));
      const pinged = () => seen.filter((text) => text.includes('pinged')).length;
      mock.timers.tick(30_000);
      await until('the vendor has answered', () => pinged() === 1);
      mock.timers.tick(30_000);
      expect(await broken).to.include({ phase: 'body', sent: true });
      await until('the other one was asked again', () => pinged() === 2);
      vendor.sessions[1]?.socket.close(1000);
      await read;
    } finally {
      mock.timers.reset();
    }
  });

  it('is cut when its caller disconnects, and at its maximum age', async () => {
    const leaving = new AbortController();
    const first = await open({}, { signal: leaving.signal });
    const read = failsUpstream(frames(first.body, []));
    leaving.abort();
    expect(await read).to.include({ phase: 'aborted' });
    const second = await open({}, { totalMs: 300 });
    expect(await failsUpstream(frames(second.body, []))).to.include({ failure: 'timeout', phase: 'total' });
    await until('both are closed', () => vendor.sessions.every(({ code }) => code !== undefined));
  });

  it('is not opened by a 200 without an upgrade', async () => {
    given.vendor.script(respondWith(200, 'fine'));
    const response = await open({ baseUrl: given.vendor.url });
    expect([response.status, response.send]).to.deep.equal([200, undefined]);
    response.destroy();
  });
});
