import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';

/** Reads events one by one, as a client does; also yields comments. */
async function* eventsOf(
  response: Response,
): AsyncGenerator<{ id?: string; event?: string; data?: string; comment?: string }> {
  let text = '';
  for await (const part of response.body as AsyncIterable<Uint8Array>) {
    text += Buffer.from(part).toString();
    const frames = text.split('\n\n');
    text = frames.pop() ?? '';
    for (const frame of frames) {
      if (frame.startsWith(':')) yield { comment: frame };
      else yield Object.fromEntries(frame.split('\n').map((line) => line.split(/: (.*)/s, 2))) as { id: string };
    }
  }
}

describe('followed calls', () => {
  let gateway: TestGateway;
  let admin: string;
  before(async () => {
    gateway = await startGateway({
      auth: { 'api-key': { bootstrap: true } },
      server: { port: 0, drainTimeout: '20s' },
    });
    admin = (await gateway.command<{ api_key: string }>('keys', 'create', '--user', 'root', '--admin')).api_key;
  });
  after(() => gateway?.stop());

  const follow = (query = '', headers: Record<string, string> = {}, signal?: AbortSignal) =>
    fetch(`${gateway.url}/api/core/admin/calls?follow=true${query}`, {
      headers: { authorization: `Bearer ${admin}`, ...headers },
      ...(signal && { signal }),
    });
  const call = async (content: string): Promise<void> => {
    const body = { model: 'echo/echo', messages: [{ role: 'user', content }] };
    await (await gateway.post('/v1/chat/completions', body, { 'x-request-id': `follow-${content}` })).text();
  };
  const take = async (response: Response, count: number) => {
    const taken: { id: string; request: string }[] = [];
    for await (const { id, event, data } of eventsOf(response)) {
      if (event !== 'call') continue;
      taken.push({ id: id ?? '', request: JSON.parse(data ?? '{}').request_id });
      if (taken.length === count) break;
    }
    return taken;
  };

  it('are sent to every reader once each, in the order of their settlement', async () => {
    await call('before');
    const readers = await Promise.all([follow(), follow()]);
    for (const reader of readers) expect(reader.headers.get('content-type')).to.include('text/event-stream');
    const wanted = ['a', 'b', 'c', 'd', 'e', 'f'];
    const reported = readers.map((reader) => take(reader, wanted.length));
    for (const name of wanted) await call(name);
    for (const seen of await Promise.all(reported))
      expect(seen.map(({ request }) => request)).to.deep.equal(wanted.map((name) => `follow-${name}`));
  });

  it('continue after the last call of a reader that reconnects', async () => {
    const first = take(await follow(), 1);
    await call('seen');
    const [last] = await first;
    await call('missed-1');
    await call('missed-2');
    const seen = await take(await follow('', { 'last-event-id': last?.id ?? '' }), 2);
    expect(seen.map(({ request }) => request)).to.deep.equal(['follow-missed-1', 'follow-missed-2']);
  });

  it('start with the newest ones if there is a limit', async () => {
    const seen = await take(await follow('&limit=2'), 2);
    expect(seen.map(({ request }) => request)).to.deep.equal(['follow-missed-1', 'follow-missed-2']);
  });

  it('are filtered by the query', async () => {
    const reading = take(await follow('&key=000000000000&limit=1'), 1);
    const others = take(await follow('&user=local'), 1);
    await call('chosen');
    expect((await others)[0]?.request).to.equal('follow-chosen');
    const left = await Promise.race([reading, Promise.resolve('nothing')]);
    expect(left).to.equal('nothing');
  });

  it('leave room for other operators, however often one follows them', async () => {
    const leaving = new AbortController();
    let refused: Response | undefined;
    for (let at = 0; at <= 10 && refused?.status !== 429; at += 1) refused = await follow('', {}, leaving.signal);
    expect(refused?.status).to.equal(429);
    expect(await refused?.text()).to.include('Limit of 10 call streams per user reached');
    const make = ['keys', 'create', '--user', 'other', '--role', 'viewer'];
    const { api_key: key } = await gateway.command<{ api_key: string }>(...make);
    const other = await follow('', { authorization: `Bearer ${key}` }, leaving.signal);
    expect(other.status).to.equal(200);
    leaving.abort();
  });

  it('end with the reader’s credential: a revoked key, and a blocked person @slow', async () => {
    const follower = async (user: string) => {
      const make = ['keys', 'create', '--user', user, '--role', 'viewer'];
      const { api_key: key } = await gateway.command<{ api_key: string }>(...make);
      return { key, events: eventsOf(await follow('', { authorization: `Bearer ${key}` })) };
    };
    const [leaver, blocked, stays] = await Promise.all(['leaver', 'blocked', 'stays'].map(follower));
    const last = async (events?: ReturnType<typeof eventsOf>): Promise<string> => {
      let data = '';
      for await (const event of events ?? []) data = event.data ?? data;
      return data;
    };
    await gateway.command('keys', 'revoke', leaver?.key ?? '');
    expect(await last(leaver?.events)).to.include('"code":"revoked_api_key"');
    await gateway.command('users', 'block', 'blocked');
    expect(await last(blocked?.events)).to.include('"code":"permission_denied"');
    const next = stays?.events.next();
    await call('after');
    expect((await next)?.value?.data).to.include('follow-after');
    await stays?.events.return(undefined);
  });

  it('free their slot when their reader disconnects, and end immediately when the gateway drains @slow', async () => {
    for (let round = 0; round < 3; round += 1) {
      const leaving = new AbortController();
      const readers = await Promise.all(Array.from({ length: 8 }, () => follow('', {}, leaving.signal)));
      expect(readers.map(({ status }) => status)).to.deep.equal(Array.from({ length: 8 }, () => 200));
      leaving.abort();
      await call(`left-${round}`);
      let status = 0;
      while (status !== 200) {
        const probe = new AbortController();
        status = (await follow('', {}, probe.signal)).status;
        probe.abort();
      }
    }
    const reader = await follow();
    const ended = (async () => {
      for await (const _ of eventsOf(reader));
      return 'ended';
    })();
    const closing = gateway.close();
    expect(await ended).to.equal('ended');
    await closing;
  });
});
