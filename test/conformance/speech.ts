import assert from 'node:assert/strict';
import {
  type FailureClass,
  type GatewayError,
  isGatewayError,
  type Plugin,
  type PluginApi,
  type ResponseHeaders,
  type SpeechFormat,
  type SpeechProvider,
  type SpeechRequest,
  StreamFailure,
  type TransportAnswer,
} from '../../core/index.ts';
import { checkSpeech } from '../../core/speech/check.ts';
import { runSpeech } from '../../core/speech/run-speech.ts';
import { findRunner } from './runner.ts';

/** What a vendor sends for one format: bytes, verbatim. */
export interface SpeechSample {
  readonly format: SpeechFormat;
  /** Whether the caller asked for a stream; true unless told. */
  readonly stream?: boolean;
  readonly headers: ResponseHeaders;
  readonly body: Buffer;
  /** Whether cutting the bytes anywhere can be seen in them; false for bare samples and FLAC. */
  readonly tellsCuts?: boolean;
}

export interface SpeechErrorSample {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: ResponseHeaders;
  readonly class: FailureClass;
  readonly param?: string;
}

export interface SpeechKit {
  // biome-ignore lint/suspicious/noExplicitAny: a plugin of any configuration
  readonly plugin: Plugin<any>;
  readonly config: Readonly<Record<string, unknown>>;
  readonly samples: readonly SpeechSample[];
  readonly errors: readonly SpeechErrorSample[];
  /** A vendor's list of voices, and an id that is in it. */
  readonly voices?: { readonly body: unknown; readonly id: string };
}

const TEXT = 'Good morning. This is a “test” – 100% safe? Ünïcödé 你好 😀';
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
 * What every speech vendor must do, on bytes it really sends: pure translation, no key in a request, nothing of the
 * caller's in the shape of a URL, the same sound however it arrives, an error for every empty, cut or foreign answer.
 */
export function testSpeech(name: string, kit: SpeechKit): void {
  const { describe, it } = findRunner();
  describe(`speech by ${name}`, () => {
    for (const sample of kit.samples) testSample(kit, sample);

    it('translates the same request to the same thing, and leaves it as it was', async () => {
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
      const told = JSON.stringify([path, headers]);
      const { apiKey } = kit.config;
      assert.ok(typeof apiKey !== 'string' || !told.includes(apiKey));
      assert.ok(!decodeURIComponent(told).includes('Good morning'));
    });

    it('keeps hostile voices and models inside their place in the URL', async () => {
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

    it('refuses options it does not have, by name', async () => {
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

    it('makes something of an error whatever its body is', async () => {
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
      it('lists voices from the vendor’s answer, and none from nonsense', async () => {
        const { listVoices } = await load(kit);
        if (typeof listVoices !== 'object') throw new Error('no listVoices');
        assert.ok(listVoices.response(voices.body).some(({ id }) => id === voices.id));
        for (const nonsense of [null, 1, 'x', [], {}, [null], { voices: [null] }, { data: [{}] }]) {
          assert.deepEqual(listVoices.response(nonsense), []);
        }
      });
    }
  });
}

function testSample(kit: SpeechKit, sample: SpeechSample): void {
  const { it } = findRunner();
  const { format, stream = true, body, headers, tellsCuts = true } = sample;
  const how = `${format}${stream ? '' : ', not streamed'}`;
  let whole: Buffer | undefined;

  it(`gives the sound (${how})`, async () => {
    whole = await listen(kit, sample, [body]);
    assert.ok(whole.length > 500, 'there is sound');
  });

  it(`gives the same sound byte by byte and in random pieces (${how})`, async () => {
    const expected = whole ?? (await listen(kit, sample, [body]));
    assert.ok(sameSound(await listen(kit, sample, cut(body, 1)), expected, format));
    for (const size of [2, 3, 7, 64, 1000]) {
      assert.ok(sameSound(await listen(kit, sample, cut(body, size)), expected, format));
    }
  });

  it(`never takes an empty answer for a sound (${how})`, async () => {
    await assert.rejects(listen(kit, sample, []), isFailure);
  });

  it(`never takes text or HTML with a good status for a sound (${how})`, async () => {
    for (const [type, text] of [
      ['text/html', '<html>Bad gateway</html>'],
      ['application/json', '{"message":"quota"}'],
      ['application/json', 'not json'],
    ] as const) {
      const fake = { ...sample, headers: { ...headers, 'content-type': type } };
      await assert.rejects(listen(kit, fake, [Buffer.from(text)]), isFailure);
    }
  });

  if (!tellsCuts) return;
  it(`ends with an error wherever the answer is cut (${how})`, async () => {
    const step = Math.max(1, Math.floor(body.length / 40));
    for (let length = 1; length < body.length - 2; length += step) {
      const outcome = await listen(kit, sample, [body.subarray(0, length)]).then(
        () => `a clip of ${length} of ${body.length} bytes passed for whole`,
        (error: unknown) => (isFailure(error) ? undefined : String(error)),
      );
      // Between two frames a cut cannot be seen in the bytes; the connection tells it then.
      if (outcome !== undefined && !endsBetweenFrames(sample, length)) assert.fail(outcome);
    }
  });
}

/** Undefined when the codec refuses the request, as it may. */
function pathOrRefusal(path: () => string): string | undefined {
  try {
    return path();
  } catch (error) {
    if (isGatewayError(error) && error.code === 'invalid_request') return undefined;
    throw error;
  }
}

/** Frames of MP3, AAC and Ogg are whole sounds themselves: a cut that falls between two is no torn sound. */
function endsBetweenFrames({ format, body }: SpeechSample, length: number): boolean {
  if (format === 'mp3')
    return body.length === length || (body[length] === 0xff && ((body[length + 1] ?? 0) & 0xe0) === 0xe0);
  if (format === 'aac') return body[length] === 0xff && ((body[length + 1] ?? 0) & 0xf6) === 0xf0;
  return format === 'opus' && body.toString('latin1', length, length + 4) === 'OggS';
}

/** A stream's header may tell its size or that it is not known, as the pieces came; the sound behind it is the same. */
function sameSound(a: Buffer, b: Buffer, format: SpeechFormat): boolean {
  if (format !== 'wav') return a.equals(b);
  const soundOf = (wav: Buffer) => wav.subarray(wav.indexOf('data') + 8);
  return soundOf(a).equals(soundOf(b));
}

async function listen(kit: SpeechKit, sample: SpeechSample, pieces: readonly Buffer[]): Promise<Buffer> {
  const { format, stream = true, headers } = sample;
  const vendor = await load(kit);
  const checked = checkSpeech(vendor, { text: TEXT, format, stream });
  const run = await runSpeech(vendor, checked, {
    send: async (): Promise<TransportAnswer> => ({ status: 200, headers, body: bodyOf(pieces) }),
    signal: new AbortController().signal,
    id: 'call',
    created: 1,
  });
  const heard: Uint8Array[] = [];
  for await (const bytes of run.audio) heard.push(bytes);
  return Buffer.concat(heard);
}

async function* bodyOf(pieces: readonly Buffer[]): AsyncGenerator<Uint8Array> {
  yield* pieces;
}

function cut(bytes: Buffer, size: number): Buffer[] {
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, index) =>
    bytes.subarray(index * size, (index + 1) * size),
  );
}

async function translate(kit: SpeechKit, request: SpeechRequest) {
  const vendor = await load(kit);
  const { input, model } = checkSpeech(vendor, request);
  return vendor.codec.request(input, { model, stream: true, created: 1, id: 'call' });
}

async function load({ plugin, config }: SpeechKit): Promise<SpeechProvider> {
  let heard: SpeechProvider | undefined;
  const api = { instance: plugin.name, speech: (vendor: SpeechProvider) => (heard = vendor) };
  await plugin.setup(api as unknown as PluginApi, config);
  assert.ok(heard, 'setup() registers a vendor of speech');
  return heard;
}

function isFailure(error: unknown): boolean {
  return error instanceof StreamFailure || (isGatewayError(error) && error.code === 'provider_invalid_response');
}

function refuses(error: unknown, code: GatewayError['code'], param: string): boolean {
  return isGatewayError(error) && error.code === code && error.param === param;
}

function deepFreeze<T extends object>(value: T): T {
  for (const each of Object.values(value)) if (typeof each === 'object' && each !== null) deepFreeze(each as object);
  return Object.freeze(value);
}
