/** Failure of the store under a running gateway, and shutdown of the gateway, in every client format. */
import { expect } from 'chai';
import { formsOf, type Heard } from '../support/gateways/failure-forms.ts';
import { type FailureRig, startFailureRig } from '../support/gateways/failure-rig.ts';
import { describeWith, type TestServer } from '../support/processes/server-process.ts';
import { REDIS_SERVER, startRedisServer } from '../support/stores/redis-server.ts';
import { completion, delta, events } from '../support/vendors/openai-vendor.ts';
import { chunk, LAST_CHUNK, respondWith, type Script, SSE_HEAD } from '../support/vendors/scripted-upstream.ts';
import { eventually } from '../support/wait.ts';
import { recordPassed } from './passed-forms.ts';

const ALL = formsOf(undefined);
const isStream = ({ stream }: { stream?: boolean }): boolean => stream === true;
const fine: Script = (wire) =>
  isStream(wire.request.json() as object)
    ? events([delta('fine', 'stop', { usage: completion().usage }), '[DONE]'])(wire)
    : wire.send(respondWith(200, completion()));

describeWith('a failing store, in every format', { 'redis-server': REDIS_SERVER }, () => {
  let redis: TestServer;
  let rig: FailureRig;
  before(async () => {
    redis = await startRedisServer();
    rig = await startFailureRig({ store: { url: redis.url, timeout: '1s' } });
    rig.vendor.script(fine);
  });
  after(async () => {
    redis?.thaw();
    await rig?.stop();
    await redis?.close();
  });

  for (const [title, hurt, heal] of [
    ['S02: a store that dies', () => redis.kill(), () => redis.start()],
    ['S03: a store that hangs', () => redis.freeze(), () => redis.thaw()],
  ] as const)
    it(`${title} is reported as 503 store_unavailable, no vendor is called, and calls succeed when it is back`, async () => {
      for (const form of ALL) expect(form.text(await rig.sendAs(form)), form.name).to.equal('fine');
      await hurt();
      const seen = rig.vendor.requests.length;
      for (const form of ALL) rig.expectErrorAs(form, await rig.sendAs(form), 'store_unavailable');
      expect(rig.vendor.requests.length).to.equal(seen);
      await heal();
      await eventually(async () => {
        for (const form of ALL) expect(form.text(await rig.sendAs(form)), form.name).to.equal('fine');
      });
      recordPassed(title, ALL);
    });
});

describe('a gateway that shuts down, in every format', () => {
  /** Starts calls in these formats, and closes the gateway once the vendor has received all of them. */
  const endUnder = async (
    script: Script,
    forms: typeof ALL,
    drainTimeout: string,
    check: (rig: FailureRig, heard: readonly Heard[]) => void,
  ): Promise<void> => {
    const rig = await startFailureRig({ server: { port: 0, drainTimeout } });
    try {
      rig.vendor.script(script);
      const pending = forms.map((form) => rig.sendAs(form));
      await rig.vendor.request(forms.length - 1);
      // The calls are in progress, not at their beginning.
      for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setTimeout(resolve, 10));
      await rig.gateway.close();
      check(rig, await Promise.all(pending));
    } finally {
      await rig.stop();
    }
  };
  const firstWords: Script = async (wire) => {
    await wire.send(SSE_HEAD);
    await wire.send(chunk(`data: ${delta('words')}\n\n`));
  };

  it('P03: running calls finish when the gateway gets SIGTERM', async () => {
    const script: Script = async (wire) => {
      const streams = isStream(wire.request.json() as object);
      if (streams) await firstWords(wire);
      await wire.pause(400);
      if (!streams) return wire.send(respondWith(200, completion('words')));
      await wire.send(chunk(`data: ${delta('', 'stop', { usage: completion().usage })}\n\ndata: [DONE]\n\n`));
      await wire.send(LAST_CHUNK);
    };
    await endUnder(script, ALL, '60s', (_rig, heard) => {
      for (const [at, form] of ALL.entries()) expect(form.text(heard[at] as Heard), form.name).to.equal('words');
    });
    recordPassed('P03', ALL);
  });

  it('P04: an endless call ends in an error when the gateway gets SIGTERM', async () => {
    const script: Script = async (wire) => {
      if (isStream(wire.request.json() as object)) await firstWords(wire);
      await wire.hang();
    };
    // Lets a busy process write pending data.
    await endUnder(script, ALL, '5s', (rig, heard) => {
      for (const [at, form] of ALL.entries())
        rig.expectErrorAs(form, heard[at] as Heard, 'shutting_down', form.stream ? 'words' : '');
    });
    recordPassed('P04', ALL);
  });
});
