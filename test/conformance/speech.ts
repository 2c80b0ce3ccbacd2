import assert from 'node:assert/strict';
import { type GatewayError, isGatewayError } from '../../contract/index.ts';
import { checkSpeech } from '../../plugins/operations/speech/check.ts';
import type { SpeechRequest } from '../../plugins/tts/kit/index.ts';
import { deepFreeze } from './deep-freeze.ts';
import { findRunner, nameOf, requirePlugin } from './runner.ts';
import { load, type SpeechKit, TEXT, testSample } from './speech-sample.ts';
import { watchedAsync } from './watched.ts';

export type { SpeechErrorSample, SpeechKit, SpeechSample } from './speech-sample.ts';

const HOSTILE = [
  '../../v1/admin',
  'a?b=c&model=x',
  'a#b',
  'a/b',
  '//evil.example/',
  'a\r\nx-evil: 1',
  '%2e%2e/x',
  '\u0000',
];

/**
 * Runs the tests that every speech vendor must pass, on recorded bytes. The codec is pure and puts no key into a
 * request, nor a caller's value into the structure of a URL. The sound is the same however it is chunked. Every empty,
 * truncated or foreign response is an error.
 */
export function testSpeech(kit: SpeechKit): void {
  const { describe, it } = findRunner(kit.runner);
  describe(`speech by ${nameOf(kit.plugin)}`, () => {
    requirePlugin(kit.plugin, 'tts');
    for (const sample of kit.samples) testSample(kit, sample);

    it('writes nothing to the console, and reads no environment variable', () =>
      watchedAsync(async () => {
        await translate(kit, { text: TEXT }).catch(() => undefined);
        for (const { status, body, headers = {} } of kit.errors) (await load(kit)).error(status, body, headers);
      }));

    it('translates the same request to the same result, and does not modify it', async () => {
      const vendor = await load(kit);
      for (const format of vendor.formats) {
        const { input, model } = checkSpeech(vendor, deepFreeze({ text: TEXT, format }));
        const call = Object.freeze({ model, stream: true, created: 1, id: 'call' });
        assert.deepEqual(vendor.codec.request(input, call), vendor.codec.request(input, call));
      }
    });

    it('has a sample of every format it offers', async () => {
      const vendor = await load(kit);
      assert.deepEqual([...new Set(kit.samples.map(({ format }) => format))].sort(), [...vendor.formats].sort());
    });

    it('puts no key and no text into the path or the headers', async () => {
      const { path, headers } = await translate(kit, { text: TEXT });
      const reported = JSON.stringify([path, headers]);
      const { apiKey } = kit.config;
      assert.ok(typeof apiKey !== 'string' || !reported.includes(apiKey));
      assert.ok(!decodeURIComponent(reported).includes('Good morning'));
    });

    it('escapes hostile voices and models in the URL', async () => {
      const vendor = await load(kit);
      const { input, model } = checkSpeech(vendor, { text: TEXT });
      const pathOf = (voice: string, named: string) =>
        vendor.codec.request({ ...input, voice }, { model: named, stream: true, created: 1, id: 'call' }).path;
      const shape = (path: string) => new URL(`http://host${path}`).pathname.split('/').length;
      for (const hostile of HOSTILE) {
        const paths = [() => pathOf(hostile, model), () => pathOf(input.voice, `${model}${hostile}`)].map(
          pathOrRefusal,
        );
        for (const path of paths) {
          if (path === undefined) continue;
          assert.match(path, /^\/[\x21-\x7e]*$/);
          assert.equal(new URL(`http://host${path}`).host, 'host');
          assert.equal(shape(path), shape(pathOf(input.voice, model)), path);
        }
      }
    });

    it('refuses unsupported options, by name', async () => {
      await assert.rejects(translate(kit, { text: TEXT, options: { callback: 'http://evil.example' } }), (error) =>
        refuses(error, 'invalid_request', 'options.callback'),
      );
    });

    it('refuses a speed outside its range, and one format it does not have', async () => {
      const vendor = await load(kit);
      const { max } = vendor.speed;
      assert.throws(
        () => checkSpeech(vendor, { text: TEXT, speed: max + 0.01 }),
        (error) => refuses(error, 'invalid_request', 'speed'),
      );
      const missing = (['aac', 'flac', 'mp3'] as const).find((format) => !vendor.formats.includes(format));
      if (missing === undefined) return;
      assert.throws(
        () => checkSpeech(vendor, { text: TEXT, format: missing }),
        (error) =>
          refuses(error, 'invalid_request', 'format') && (error as Error).message.includes(String(vendor.formats[0])),
      );
    });

    for (const { status, body, headers = {}, class: kind, param } of kit.errors) {
      it(`reads status ${status} ${JSON.stringify(body).slice(0, 60)} as ${kind}`, async () => {
        const failure = (await load(kit)).error(status, body, headers);
        assert.equal(failure.class, kind);
        if (param !== undefined) assert.equal(failure.param, param);
      });
    }

    it('classifies an error with any body', async () => {
      const vendor = await load(kit);
      for (const body of [
        '',
        '<html>',
        null,
        7,
        [],
        {},
        { error: null },
        { detail: [null] },
        { error: { details: [null] } },
      ]) {
        for (const status of [400, 401, 429, 500, 503]) {
          const failure = vendor.error(status, body, {});
          assert.equal(typeof failure.message, 'string');
          assert.equal(failure.class === 'invalid_request', status === 400, `${status} ${JSON.stringify(body)}`);
        }
      }
    });

    const { voices } = kit;
    if (voices) {
      it('lists voices from the vendor’s response, and none from an invalid one', async () => {
        const listFrom = async (body: unknown) => {
          const { listVoices } = await load(kit, fakeHttp(body));
          assert.ok(listVoices, 'it has listVoices');
          return await listVoices();
        };
        assert.ok((await listFrom(voices.body)).some(({ id }) => id === voices.id));
        for (const nonsense of [null, 1, 'x', [], {}, [null], { voices: [null] }, { data: [{}] }])
          assert.deepEqual(await listFrom(nonsense), []);
      });

      it('requests the list from its own host, with the key in a header only', async () => {
        const requests: { url: string; headers: object }[] = [];
        const vendor = await load(kit, fakeHttp(voices.body, requests));
        await vendor.listVoices?.();
        const [{ url = '', headers = {} } = {}] = requests;
        assert.ok(url.startsWith(vendor.baseUrl), url);
        const { apiKey } = kit.config;
        assert.ok(typeof apiKey !== 'string' || (!url.includes(apiKey) && JSON.stringify(headers).includes(apiKey)));
      });
    }
  });
}

/** Part of got that requests lists of voices. */
function fakeHttp(body: unknown, requests: { url: string; headers: object }[] = []): unknown {
  return {
    async get(url: string, { headers }: { headers: object }) {
      requests.push({ url, headers });
      return { statusCode: 200, headers: {}, body: JSON.stringify(body) };
    },
  };
}

/** Returns undefined if the codec refuses the request, which is allowed. */
function pathOrRefusal(path: () => string): string | undefined {
  try {
    return path();
  } catch (error) {
    if (isGatewayError(error) && error.code === 'invalid_request') return undefined;
    throw error;
  }
}

async function translate(kit: SpeechKit, request: SpeechRequest) {
  const vendor = await load(kit);
  const { input, model } = checkSpeech(vendor, request);
  return vendor.codec.request(input, { model, stream: true, created: 1, id: 'call' });
}

function refuses(error: unknown, code: GatewayError['code'], param: string): boolean {
  return isGatewayError(error) && error.code === code && error.param === param;
}
