import { expect } from 'chai';
import type { Endpoint, HttpRequest } from '../../contract/provider.ts';
import { failsUpstream, givenUpstream, SHORT } from '../support/vendors/given-upstream.ts';

describe('a transport in place of the network', () => {
  const given = givenUpstream();

  const transport = (chunks: AsyncIterable<Uint8Array>): Partial<Endpoint> => ({
    transport: async () => ({ status: 200, headers: { 'content-type': 'text/plain' }, body: chunks }),
  });

  it('responds in place of the network, and sees no key', async () => {
    let seen: HttpRequest | undefined;
    const response = await given.send(
      {},
      {
        endpoint: {
          transport: async (request) => {
            seen = request;
            return { status: 200, headers: {}, body: bytes('a', 'b') };
          },
        },
      },
    );
    expect((await response.readAll()).toString()).to.equal('ab');
    expect(JSON.stringify(seen)).to.not.include('sk-canary');
    expect(given.vendor.connections.total).to.equal(0);
  });

  it('that throws is a failure of the provider', async () => {
    const error = await failsUpstream(
      given.send({}, { endpoint: { transport: () => Promise.reject(new Error('secret')) } }),
    );
    expect(error).to.include({ failure: 'upstream_error', phase: 'firstByte' });
    expect(error.message).to.not.include('secret');
  });

  it('that does not respond meets the first-byte deadline, and is aborted', async () => {
    let signal: AbortSignal | undefined;
    const stuck: Partial<Endpoint> = {
      transport: (_, given) => {
        signal = given;
        return new Promise(() => {});
      },
    };
    expect(await failsUpstream(given.send({}, { endpoint: stuck, deadlines: SHORT }))).to.include({
      failure: 'timeout',
      phase: 'firstByte',
    });
    expect(signal?.aborted).to.equal(true);
  });

  it('that stops in the middle meets the idle deadline', async () => {
    async function* half() {
      yield Buffer.from('a');
      await new Promise(() => {});
    }
    const response = await given.send({}, { endpoint: transport(half()), deadlines: SHORT });
    expect(await failsUpstream(response.readAll())).to.include({ failure: 'timeout', phase: 'idle' });
  });

  it('that a reader abandons is notified, and may clean up', async () => {
    let [isAborted, isCleaned] = [false, false];
    async function* endless() {
      try {
        for (;;) yield Buffer.from('a');
      } finally {
        isCleaned = true;
      }
    }
    const endpoint: Partial<Endpoint> = {
      transport: async (_, signal) => {
        signal.addEventListener('abort', () => (isAborted = true));
        return { status: 200, headers: {}, body: endless() };
      },
    };
    for await (const _ of (await given.send({}, { endpoint })).body) break;
    expect({ isAborted, isCleaned }).to.deep.equal({ isAborted: true, isCleaned: true });
  });

  it('is paused without a reader', async () => {
    let made = 0;
    async function* many() {
      for (; made < 1000; made++) yield Buffer.alloc(1024);
    }
    const response = await given.send({}, { endpoint: transport(many()) });
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(made).to.be.lessThan(100);
    expect(await failsUpstream(response.readAll())).to.include({ phase: 'body' });
  });
});

async function* bytes(...texts: string[]) {
  for (const text of texts) yield Buffer.from(text);
}
