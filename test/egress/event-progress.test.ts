import { expect } from 'chai';
import type { StreamProgress } from '../../contract/events.ts';
import { drip, failsUpstream, givenUpstream } from '../support/vendors/given-upstream.ts';
import { chunk, LAST_CHUNK, type Script, SSE_HEAD, type Wire } from '../support/vendors/scripted-upstream.ts';
import { until } from '../support/wait.ts';

describe('an upstream body whose events are reported', () => {
  const given = givenUpstream();

  /** Vendor that sends a text and leaves its socket open; `then` runs after the text. */
  const open =
    (text: string, then: (wire: Wire) => unknown = () => {}): Script =>
    async (wire) => {
      await wire.send(SSE_HEAD);
      await wire.send(chunk(text));
      await then(wire);
      await wire.hang();
    };

  /** Reads a body and reports this progress for each part. */
  const read = async (progress: (text: string) => StreamProgress | undefined, idleMs = 60_000): Promise<string> => {
    const response = await given.send({}, { deadlines: { idleMs } });
    let all = '';
    for await (const part of response.body) {
      all += part.toString();
      const reported = progress(part.toString());
      if (reported) response.reportProgress(reported);
    }
    return all;
  };

  it('G10: ends when it is complete although the socket is open, which is closed then', async () => {
    given.vendor.script(open('end'));
    expect(await read(() => 'complete')).to.equal('end');
    expect(given.vendor.connections.open).to.equal(1);
    await until('the connection is closed', () => given.vendor.connections.open === 0);
  });

  it('G10: that is complete keeps its connection when the response ends soon', async () => {
    given.vendor.script(async (wire) => {
      await wire.send(SSE_HEAD);
      await wire.send(chunk('end'));
      await wire.pause(20);
      await wire.send(chunk('not read'));
      await wire.send(LAST_CHUNK);
    });
    expect(await read(() => 'complete')).to.equal('end');
    // The next request reuses the connection once its response has ended.
    await until('the connection is kept', async () => {
      await read(() => 'complete');
      return given.vendor.requests.some(({ nth }) => nth > 0);
    });
  });

  it('G10: that is complete is cut if too much data follows', async () => {
    const piece = chunk(Buffer.alloc(64 * 1024, 120));
    given.vendor.script(
      open('end', async (wire) => {
        while (!wire.isGone) await wire.send(piece);
      }),
    );
    expect(await read(() => 'complete')).to.match(/^end/);
    await until('the connection is closed', () => given.vendor.connections.open === 0);
  });

  for (const progress of ['ending', 'finished'] as const)
    it(`G10: ends without an error when only comments follow a response that is ${progress} @slow`, async () => {
      const pings = async (wire: Wire): Promise<void> => {
        while (!wire.isGone) {
          await wire.send(chunk(': ping\n\n'));
          await wire.pause(20);
        }
      };
      given.vendor.script(open('end', pings));
      expect(await read((text) => (text.includes('end') ? progress : undefined))).to.match(/^end/);
      await until('the connection is closed', () => given.vendor.connections.open === 0);
    });

  it('G10: continues after a premature end', async () => {
    given.vendor.script(
      open('end', async (wire) => {
        await wire.pause(50);
        await wire.send(chunk('more'));
        await wire.send(LAST_CHUNK);
      }),
    );
    expect(await read((text) => (text === 'end' ? 'ending' : 'open'))).to.equal('endmore');
  });

  it('G10: is idle when bytes arrive without an event', async () => {
    given.vendor.script(drip(': ping\n\n'));
    let isFirst = true;
    const reading = read(() => {
      const reported = isFirst ? 'open' : undefined;
      isFirst = false;
      return reported;
    }, 300);
    expect(await failsUpstream(reading)).to.include({ failure: 'timeout', phase: 'idle' });
    await until('the connection is closed', () => given.vendor.connections.open === 0);
  });

  it('G10: is not idle while events arrive', async () => {
    let sent = 0;
    given.vendor.script(async (wire) => {
      await wire.send(SSE_HEAD);
      for (; sent < 30; sent += 1) {
        await wire.send(chunk('event'));
        await wire.pause(20);
      }
      await wire.send(LAST_CHUNK);
    });
    expect(await read(() => 'open', 400)).to.have.lengthOf(30 * 'event'.length);
  });

  it('G10: is not idle while its reader is slow', async () => {
    given.vendor.script(async (wire) => {
      await wire.send(SSE_HEAD);
      await wire.send(chunk('one'));
      await wire.send(chunk('two'));
      await wire.send(LAST_CHUNK);
    });
    const response = await given.send({}, { deadlines: { idleMs: 300 } });
    let all = '';
    for await (const part of response.body) {
      all += part.toString();
      response.reportProgress('open');
      // Longer than the timeout: the reader is slow, not the vendor.
      await new Promise((resolve) => setTimeout(resolve, 700));
    }
    expect(all).to.equal('onetwo');
  });
});
