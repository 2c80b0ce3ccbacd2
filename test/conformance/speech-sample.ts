import assert from 'node:assert/strict';
import {
  type FailureClass,
  isGatewayError,
  type Plugin,
  type ResponseHeaders,
  StreamFailure,
  type WholeApi,
} from '../../contract/index.ts';
import { checkSpeech } from '../../plugins/operations/speech/check.ts';
import { runSpeech } from '../../plugins/operations/speech/operation.ts';
import type { SpeechFormat, SpeechProvider } from '../../plugins/tts/kit/index.ts';
import { findRunner, type WithRunner } from './runner.ts';

/** Vendor's response for one format: bytes, verbatim. */
export interface SpeechSample {
  readonly format: SpeechFormat;
  /** True if the caller requested a stream. Default: true. */
  readonly stream?: boolean;
  readonly headers: ResponseHeaders;
  readonly body: Buffer;
  /** False if truncated bytes cannot be detected, as for bare samples and FLAC. Default: true. */
  readonly tellsCuts?: boolean;
  /** Error event of a vendor's event stream, with the blank line after it, and the class of the failure. */
  readonly errorEvent?: { readonly event: string; readonly class: FailureClass };
}

export interface SpeechErrorSample {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: ResponseHeaders;
  readonly class: FailureClass;
  readonly param?: string;
}

/** Options of {@link testSpeech}. */
export interface SpeechKit extends WithRunner {
  // biome-ignore lint/suspicious/noExplicitAny: a plugin of any configuration
  readonly plugin: Plugin<any>;
  readonly config: Readonly<Record<string, unknown>>;
  readonly samples: readonly SpeechSample[];
  readonly errors: readonly SpeechErrorSample[];
  /** Vendor's list of voices, and an id in it. */
  readonly voices?: { readonly body: unknown; readonly id: string };
}

/** Text in several scripts. */
export const TEXT = 'Good morning. This is a “test” – 100% safe? Ünïcödé 你好 😀';

/**
 * Tests that the sound is the same however it is chunked, and that every empty, truncated or foreign response is an
 * error.
 */
export function testSample(kit: SpeechKit, sample: SpeechSample): void {
  const { it } = findRunner();
  const { format, stream = true, body, headers, tellsCuts = true, errorEvent } = sample;
  const how = `${format}${stream ? '' : ', not streamed'}`;
  let whole: Buffer | undefined;

  it(`returns the sound (${how})`, async () => {
    whole = await listen(kit, sample, [body]);
    assert.ok(whole.length > 500, 'there is sound');
  });

  it(`returns the same sound byte by byte and in random pieces (${how})`, async () => {
    const expected = whole ?? (await listen(kit, sample, [body]));
    assert.ok(sameSound(await listen(kit, sample, cut(body, 1)), expected, format));
    for (const size of [2, 3, 7, 64, 1000]) {
      assert.ok(sameSound(await listen(kit, sample, cut(body, size)), expected, format));
    }
  });

  it(`never accepts an empty response as sound (${how})`, async () => {
    await assert.rejects(listen(kit, sample, []), isFailure);
  });

  it(`never accepts text or HTML with a success status as sound (${how})`, async () => {
    for (const [type, text] of [
      ['text/html', '<html>Bad gateway</html>'],
      ['application/json', '{"message":"quota"}'],
      ['application/json', 'not json'],
    ] as const) {
      const fake = { ...sample, headers: { ...headers, 'content-type': type } };
      await assert.rejects(listen(kit, fake, [Buffer.from(text)]), isFailure);
    }
  });

  if (errorEvent)
    it(`ends with the error that the vendor sends in the middle of a sound, or instead of it (${how})`, async () => {
      const event = Buffer.from(errorEvent.event);
      const middle = body.indexOf('\n\n') + 2;
      assert.ok(middle > 1 && middle < body.length, 'the sample has several events');
      for (const reported of [event, Buffer.concat([body.subarray(0, middle), event, body.subarray(middle)])])
        for (const size of [1, reported.length])
          await assert.rejects(listen(kit, sample, cut(reported, size)), (error) => {
            assert.ok(error instanceof StreamFailure, String(error));
            assert.equal(error.failure.class, errorEvent.class);
            return true;
          });
    });

  if (!tellsCuts) return;
  it(`ends with an error wherever the response is truncated (${how})`, async () => {
    const step = Math.max(1, Math.floor(body.length / 40));
    for (let length = 1; length < body.length - 2; length += step) {
      const outcome = await listen(kit, sample, [body.subarray(0, length)]).then(
        () => `a clip of ${length} of ${body.length} bytes passed for whole`,
        (error: unknown) => (isFailure(error) ? undefined : String(error)),
      );
      // A cut between two frames is not visible in the bytes. The connection reports it then.
      if (outcome !== undefined && !endsBetweenFrames(sample, length)) assert.fail(outcome);
    }
  });
}

/** Frames of MP3, AAC and Ogg are complete sounds, so a cut between two frames leaves a valid sound. */
function endsBetweenFrames({ format, body }: SpeechSample, length: number): boolean {
  if (format === 'mp3')
    return body.length === length || (body[length] === 0xff && ((body[length + 1] ?? 0) & 0xe0) === 0xe0);
  if (format === 'aac') return body[length] === 0xff && ((body[length + 1] ?? 0) & 0xf6) === 0xf0;
  return format === 'opus' && body.toString('latin1', length, length + 4) === 'OggS';
}

/** Compares sounds without the WAV header, which may contain the size or mark it as unknown. */
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
    send: async () => ({ headers, body: bodyOf(pieces) }),
    abortSignal: new AbortController().signal,
    codecCall: { model: checked.model, stream, created: 1, id: 'call' },
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

/** Speech vendor of the kit's plugin; `http` is the result of its `api.http()`. */
export async function load({ plugin, config }: SpeechKit, http?: unknown): Promise<SpeechProvider> {
  let heard: SpeechProvider | undefined;
  const api = {
    instance: plugin.name,
    offer(operation: string, vendor: SpeechProvider) {
      if (operation === 'speech') heard = vendor;
    },
    http: async () => http,
  };
  await plugin.setup(api as unknown as WholeApi, config);
  assert.ok(heard, 'setup() offers speech');
  return heard;
}

function isFailure(error: unknown): boolean {
  return error instanceof StreamFailure || (isGatewayError(error) && error.code === 'provider_invalid_response');
}
