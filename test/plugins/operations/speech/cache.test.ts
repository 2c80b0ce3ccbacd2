import { expect } from 'chai';
import Keyv from 'keyv';
import { type CachedSound, createSpeechCache, speechCacheKey } from '../../../../plugins/operations/speech/cache.ts';
import { checkSpeech } from '../../../../plugins/operations/speech/check.ts';
import { collectSound } from '../../../../plugins/operations/speech/collect-sound.ts';
import type { SpeechRequest, SpeechResponse } from '../../../../plugins/tts/kit/index.ts';
import { fixture, hearWav } from '../../../support/speech/sound.ts';
import { speechVendor } from '../../../support/speech/speech-vendor.ts';

const mp3 = fixture('hi.mp3');

function responseOf(...pieces: readonly (Buffer | Error)[]): SpeechResponse {
  const audio = (async function* () {
    for (const piece of pieces) {
      if (piece instanceof Error) throw piece;
      yield piece;
    }
  })();
  return { contentType: 'audio/mpeg', format: 'mp3', model: 'tts-a', voice: 'ann', characters: 3, audio };
}

function cacheOf(maxBytes = 1_000_000) {
  const places = new Map<string, unknown>();
  const keyv = new Keyv<CachedSound>({ store: places });
  const cache = createSpeechCache({ keyv, maxBytes, maxSoundBytes: 20_000, ttlMs: 60_000 });
  return { places, keyv, cache };
}

const KEY = 'a'.repeat(64);

describe('the cache of sounds', () => {
  it('replays a sound, with its format', async () => {
    const { cache } = cacheOf();
    expect(await cache.find(KEY)).to.equal(undefined);
    const first = await collectSound(cache.keep(KEY, responseOf(mp3.subarray(0, 99), mp3.subarray(99))));
    const again = await cache.find(KEY);
    if (!again) return expect.fail('it was not kept');
    expect(again).to.include({ contentType: 'audio/mpeg', format: 'mp3', model: 'tts-a', voice: 'ann', characters: 3 });
    expect((await collectSound(again)).equals(first)).to.equal(true);
  });

  it('keeps no sound that was cut, abandoned or too long', async () => {
    const { cache, places } = cacheOf();
    await collectSound(cache.keep(KEY, responseOf(mp3, new Error('cut')))).catch(() => {});
    for await (const _ of cache.keep(KEY, responseOf(mp3, mp3)).audio) break;
    await collectSound(cache.keep(KEY, responseOf(Buffer.alloc(20_001))));
    expect(places.size).to.equal(0);
  });

  it('writes the true size into a streamed WAV', async () => {
    const { cache } = cacheOf();
    const streamed = { ...responseOf(fixture('streamed.wav')), format: 'wav' };
    for await (const _ of cache.keep(KEY, streamed).audio);
    const again = await cache.find(KEY);
    for await (const wav of again?.audio ?? []) expect(hearWav(Buffer.from(wav)).seconds).to.be.closeTo(0.1, 0.001);
  });

  it('never stores more than its limit', async () => {
    const { cache, places } = cacheOf(100_000);
    for (let index = 0; index < 200; index++) {
      const key = index.toString(16).padStart(8, '0').repeat(8);
      await collectSound(cache.keep(key, responseOf(Buffer.alloc(20_000, index))));
    }
    const held = [...places.values()].reduce<number>((sum, each) => sum + String(each).length, 0);
    expect(held).to.be.within(20_000, 100_000);
  });

  it('never returns the sound of another key with the same hash', async () => {
    const { cache } = cacheOf(1);
    await collectSound(cache.keep(KEY, responseOf(mp3)));
    expect(await cache.find('b'.repeat(64))).to.equal(undefined);
  });

  it('fails no call when the store does not answer', async () => {
    const { cache, keyv } = cacheOf();
    const away = () => Promise.reject(new Error('away'));
    Object.assign(keyv, { get: away, set: away });
    expect(await cache.find(KEY)).to.equal(undefined);
    expect((await collectSound(cache.keep(KEY, responseOf(mp3)))).equals(mp3)).to.equal(true);
  });

  it('distinguishes exactly the requests with different sounds', () => {
    const keyOf = (request: Partial<SpeechRequest>, account = 'u', vendor = 'v') =>
      speechCacheKey(account, vendor, checkSpeech(speechVendor(), { text: 'Hi.', ...request }));
    const options = { options: { b: 1, a: 2 } };
    const different = [
      keyOf({}),
      keyOf({ text: 'Hi!' }),
      keyOf({ voice: 'carla' }),
      keyOf({ format: 'wav' }),
      keyOf({ speed: 1.5 }),
      keyOf({ model: 'tts-b' }),
      keyOf({ language: 'de' }),
      keyOf(options),
      keyOf({}, 'other'),
      keyOf({}, 'u', 'other'),
    ];
    expect(new Set(different).size).to.equal(different.length);
    expect(keyOf({ options: { a: 2, b: 1 } })).to.equal(keyOf(options));
    expect(keyOf({ stream: false, speed: 1, voice: 'ann' })).to.equal(keyOf({}));
    expect(different.join()).to.match(/^[0-9a-f,]+$/);
  });
});
