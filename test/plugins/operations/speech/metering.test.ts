import { expect } from 'chai';
import { definePlugin, type Plugin } from '../../../../contract/index.ts';
import { fixture } from '../../../support/speech/sound.ts';
import { type SpeechGateway, startSpeechGateway } from '../../../support/speech/speech-gateway.ts';
import { speechVendor } from '../../../support/speech/speech-vendor.ts';
import {
  chunk,
  head,
  LAST_CHUNK,
  respondWith,
  type ScriptedUpstream,
  startScriptedUpstream,
} from '../../../support/vendors/scripted-upstream.ts';
import { until } from '../../../support/wait.ts';

const mp3 = fixture('hi.mp3');
const MP3 = { 'content-type': 'audio/mpeg' };
const PRICES = { prices: { '*': { characters: 1000 } } };

/** Falls back to the second vendor, for a certain text, if the first one fails. */
const FALLBACK = definePlugin<object, 'policy'>({
  name: 'fallback',
  kind: 'policy',
  apiVersion: 1,
  setup: (api) =>
    api.hook('route', {
      operations: ['speech'],
      handler: ({ request }) =>
        request.text === 'Both.'
          ? [
              { provider: 'one', model: 'tts-a' },
              { provider: 'two', model: 'tts-a' },
            ]
          : undefined,
    }),
}) as Plugin;

describe('the usage of a speech call', () => {
  let one: ScriptedUpstream;
  let two: ScriptedUpstream;
  let gateway: SpeechGateway;

  // New vendors per test: a vendor that hung in the previous test would be tried last.
  beforeEach(async () => {
    [one, two] = await Promise.all([startScriptedUpstream(), startScriptedUpstream()]);
    const timeouts = { firstByteMs: 300 };
    gateway = await startSpeechGateway(
      {
        one: speechVendor({ baseUrl: one.url, timeouts, ...PRICES }),
        two: speechVendor({ baseUrl: two.url, timeouts, prices: { '*': { characters: 5 } } }),
      },
      { plugins: [FALLBACK] },
    );
  });
  afterEach(async () => {
    await gateway.close();
    await Promise.all([one.close(), two.close()]);
  });

  /** Sends a request and reads the whole sound; returns the status, the cost header and the outcome. */
  const speak = async (body: object) => {
    const before = gateway.outcomes.length;
    const response = await gateway.post('/one/tts', body);
    await response.arrayBuffer().catch(() => undefined);
    await until('the call has ended', () => gateway.outcomes.length > before);
    const { units, cost, status, sent, target } = gateway.outcomes[before] ?? {};
    return {
      http: response.status,
      usd: response.headers.get('x-tollgate-cost-usd'),
      units,
      cost,
      status,
      sent,
      target,
    };
  };

  it('is its characters, in the headers if the sound is complete before they are sent', async () => {
    one.script(respondWith(200, mp3, MP3));
    expect(await speak({ text: 'Hi.', stream: false })).to.deep.include({
      http: 200,
      usd: '0.003',
      units: { characters: 3 },
      cost: 3_000_000,
      status: 'ok',
    });
    one.script(respondWith(200, mp3, MP3));
    expect(await speak({ text: 'Hi.' })).to.deep.include({
      http: 200,
      usd: null,
      units: { characters: 3 },
      cost: 3_000_000,
    });
  });

  it('is nothing when the vendor refuses, before or inside a response', async () => {
    for (const bytes of [respondWith(500, 'no'), respondWith(200, '', MP3)]) {
      one.script(bytes);
      const { http, units, cost, sent } = await speak({ text: 'Hi.' });
      expect({ http, units, cost, sent }).to.deep.equal({ http: 503, units: undefined, cost: undefined, sent: false });
    }
  });

  it('is the first piece of a split text when no sound arrived', async () => {
    one.script((wire) => wire.hang());
    const { http, units, cost, sent } = await speak({ text: 'One two three. Four five six.', split: true });
    expect({ http, units, cost, sent }).to.deep.equal({
      http: 503,
      units: { characters: 15 },
      cost: 15_000_000,
      sent: true,
    });
  });

  for (const stream of [true, false]) {
    it(`is everything sent when the sound is interrupted (${stream ? 'streamed' : 'not streamed'})`, async () => {
      one.script(async (wire) => {
        await wire.send(head(200, { ...MP3, 'transfer-encoding': 'chunked' }));
        await wire.send(chunk(mp3.subarray(0, 1500)));
        await wire.send(LAST_CHUNK);
      });
      expect(await speak({ text: 'Bye', stream }).catch(() => ({ cost: gateway.outcomes.at(-1)?.cost }))).to.include({
        cost: 3_000_000,
      });
      expect(gateway.outcomes.at(-1)?.status).to.equal('error');
    });
  }

  it('is the second vendor’s when the first refused', async () => {
    one.script(respondWith(500, 'no'));
    two.script(respondWith(200, mp3, MP3));
    const outcome = await speak({ text: 'Both.' });
    expect(outcome).to.deep.include({ http: 200, units: { characters: 5 }, cost: 25_000 });
    expect(outcome.target).to.deep.equal({ provider: 'two', model: 'tts-a' });
  });

  it('is the first vendor’s, who had the text, when the second refuses', async () => {
    one.script((wire) => wire.hang());
    two.script(respondWith(500, 'no'));
    const outcome = await speak({ text: 'Both.' });
    expect(outcome).to.deep.include({ http: 503, units: { characters: 5 }, cost: 5_000_000 });
    expect(outcome.target).to.deep.equal({ provider: 'one', model: 'tts-a' });
  });
});

describe('a cached sound', () => {
  it('is replayed free of charge, with and without a stream, and marked', async () => {
    const upstream = await startScriptedUpstream();
    const gateway = await startSpeechGateway(
      { one: speechVendor({ baseUrl: upstream.url, ...PRICES }) },
      { speechCache: {} },
    );
    try {
      upstream.script(respondWith(200, mp3, MP3));
      for (const [stream, cache, cost] of [
        [true, 'miss', 3_000_000],
        [true, 'hit', 0],
        [false, 'hit', 0],
      ] as const) {
        const before = gateway.outcomes.length;
        const response = await gateway.post('/one/tts', { text: 'Hi.', stream });
        expect(Buffer.from(await response.arrayBuffer()).equals(mp3)).to.equal(true);
        expect(response.headers.get('x-tollgate-cache')).to.equal(cache);
        expect(response.headers.get('x-tollgate-voice')).to.equal('ann');
        await until('the call has ended', () => gateway.outcomes.length > before);
        expect(gateway.outcomes[before]?.cost).to.equal(cost);
      }
      expect(upstream.requests.length).to.equal(1);
    } finally {
      await gateway.close();
      await upstream.close();
    }
  });
});
