import { expect } from 'chai';
import { type HttpRequest, StreamFailure } from '../../../../contract/index.ts';
import { resolveSpeech } from '../../../../plugins/operations/speech/check.ts';
import { collectSound } from '../../../../plugins/operations/speech/collect-sound.ts';
import { runSpeech } from '../../../../plugins/operations/speech/operation.ts';
import type { SpeechRequest } from '../../../../plugins/tts/kit/index.ts';
import { decode, fixture, hearWav, needProgram } from '../../../support/speech/sound.ts';
import { CODEC_CALL, type SoundResponse, soundResponse, speechVendor } from '../../../support/speech/speech-vendor.ts';

const NEVER = new AbortController().signal;

type Send = (request: HttpRequest) => SoundResponse;

async function run(request: SpeechRequest, send: Send, vendor = speechVendor(), abortSignal = NEVER) {
  const speech = await resolveSpeech(vendor, request);
  return await runSpeech(vendor, speech, { send: async (each) => send(each), abortSignal, codecCall: CODEC_CALL });
}

const failure = (work: Promise<unknown>) =>
  work.then(
    () => expect.fail('it passed for a sound'),
    (error: unknown) => {
      if (!(error instanceof StreamFailure)) throw error;
      return error.failure;
    },
  );

const textOf = ({ body }: HttpRequest) => (body as { readonly text: string }).text;
const LONG = { text: 'One two three. Four five six. Seven eight.', split: true } as const;

describe('running speech', () => {
  const mp3 = fixture('hi.mp3');

  it('returns the sound with its format and usage', async () => {
    const response = await run({ text: 'Hi.' }, () => soundResponse(mp3.subarray(0, 1000), mp3.subarray(1000)));
    const { contentType, format, model, voice, characters } = response;
    expect({ contentType, format, model, voice, characters }).to.deep.equal({
      contentType: 'audio/mpeg',
      format: 'mp3',
      model: 'tts-a',
      voice: 'ann',
      characters: 3,
    });
    expect((await collectSound(response)).equals(mp3)).to.equal(true);
    expect(response.usage().characters).to.equal(3);
    expect(response.usage().seconds).to.be.closeTo(0.4, 0.1);
  });

  it('resolves with the first sound, before the vendor has sent the rest', async () => {
    let release = () => {};
    const rest = new Promise<void>((resolve) => {
      release = resolve;
    });
    const response = await run({ text: 'Hi.' }, () => ({
      ...soundResponse(),
      body: (async function* () {
        yield mp3.subarray(0, 1000);
        await rest;
        yield mp3.subarray(1000);
      })(),
    }));
    release();
    expect((await collectSound(response)).equals(mp3)).to.equal(true);
  });

  it('passes the failure of a response on, before the first byte', async () => {
    const slow = new StreamFailure({ class: 'rate_limit', message: 'slow down' });
    const refuse = () => {
      throw slow;
    };
    expect(await failure(run({ text: 'Hi.' }, refuse))).to.equal(slow.failure);
  });

  for (const [title, pieces] of [
    ['is empty', []],
    ['holds a header and no sound', [fixture('hi.wav').subarray(0, 44)]],
  ] as const) {
    it(`fails before the first byte when the answer ${title}`, async () => {
      expect((await failure(run({ text: 'Hi.', format: 'wav' }, () => soundResponse(...pieces)))).message).to.include(
        'empty',
      );
    });
  }

  it('fails after the received sound when the rest is missing', async () => {
    const response = await run({ text: 'Hi.' }, () => soundResponse(mp3.subarray(0, 1000)));
    const heard: Uint8Array[] = [];
    const reported = await failure(
      (async () => {
        for await (const bytes of response.audio) heard.push(bytes);
      })(),
    );
    expect(reported.message).to.include('was interrupted');
    expect(heard).to.have.length(1);
  });

  it('passes a broken connection on', async () => {
    const broken = new Error('reset');
    const response = await run({ text: 'Hi.' }, () => soundResponse(mp3.subarray(0, 1000), broken));
    await collectSound(response).then(
      () => expect.fail('it passed for a sound'),
      (error: unknown) => expect(error).to.equal(broken),
    );
  });

  it('ends the vendor’s answer when the listener leaves, having listened or not', async () => {
    for (const listens of [true, false]) {
      let ended = false;
      const body = async function* () {
        try {
          for (;;) yield mp3;
        } finally {
          ended = true;
        }
      };
      const response = await run({ text: 'Hi.' }, () => ({ ...soundResponse(), body: body() }));
      if (listens) for await (const _ of response.audio) break;
      else await response.audio[Symbol.asyncIterator]().return?.();
      expect(ended).to.equal(true);
    }
  });

  it('ends the vendor’s answer when its codec refuses it', async () => {
    let ended = false;
    const body = async function* () {
      try {
        yield Buffer.from('<html>');
      } finally {
        ended = true;
      }
    };
    const html = { headers: { 'content-type': 'text/html' }, body: body() };
    await run({ text: 'Hi.' }, () => html).then(
      () => expect.fail('it passed'),
      (error: { code: string }) => expect(error.code).to.equal('provider_invalid_response'),
    );
    expect(ended).to.equal(true);
  });

  it('adds up the vendor’s tokens', async () => {
    const reported = { input: 3, output: 5 };
    const codec = {
      ...speechVendor().codec,
      decode: () => ({ push: (bytes: Uint8Array) => [bytes], end: () => [], usage: () => reported }),
    };
    const response = await run(LONG, () => soundResponse(mp3), speechVendor({ codec }));
    await collectSound(response);
    expect(response.usage().tokens).to.deep.equal({ input: 9, output: 15 });
  });
});

describe('running speech in pieces', () => {
  it('requests pieces in order, and joins mp3 without invalid tags', async function () {
    needProgram(this as never, 'ffmpeg');
    const requests: string[] = [];
    const response = await run(LONG, (request) => {
      requests.push(textOf(request));
      return soundResponse(fixture('hi.mp3'));
    });
    const sound = await collectSound(response);
    expect(requests).to.deep.equal(['One two three. ', 'Four five six. ', 'Seven eight.']);
    expect(sound.includes('ID3')).to.equal(false);
    expect(sound.includes('Info')).to.equal(false);
    expect(decode(sound, 'mp3').seconds).to.be.closeTo(3 * decode(fixture('hi.mp3'), 'mp3').seconds, 0.2);
    expect(response.usage().characters).to.equal(42);
  });

  it('joins WAV under one header, without chunks other than sound', async () => {
    const tagged = Buffer.concat([fixture('hi.wav'), Buffer.from('LIST\x04\0\0\0junk')]);
    const sound = await collectSound(await run({ ...LONG, format: 'wav' }, () => soundResponse(tagged)));
    expect(hearWav(sound).seconds).to.be.closeTo(1.2, 0.001);
    expect(sound.includes('junk')).to.equal(false);
  });

  it('marks the size of a streamed join as unknown', async () => {
    const response = await run({ ...LONG, format: 'wav' }, () => soundResponse(fixture('hi.wav')));
    for await (const header of response.audio) {
      expect(Buffer.from(header).readUInt32LE(40)).to.equal(0xffff_ffff);
      break;
    }
  });

  it('refuses to join WAVs of different kinds', async () => {
    const other = Buffer.from(fixture('hi.wav'));
    other.writeUInt32LE(8000, 24);
    const wavs = [fixture('hi.wav'), other, other];
    const response = await run({ ...LONG, format: 'wav' }, () => soundResponse(wavs.shift() ?? Buffer.alloc(0)));
    expect((await failure(collectSound(response))).message).to.include('cannot be joined');
  });

  it('ends with an error when a later piece fails, and requests no further one', async () => {
    let requestCount = 0;
    const response = await run({ ...LONG, format: 'pcm' }, () => {
      requestCount += 1;
      if (requestCount === 2) throw new StreamFailure({ class: 'upstream_error', message: 'no' });
      return soundResponse(fixture('hi.pcm'));
    });
    expect((await failure(collectSound(response))).class).to.equal('upstream_error');
    expect(requestCount).to.equal(2);
    expect(response.usage().characters).to.equal(30);
  });

  it('requests no further piece once the call is aborted', async () => {
    const stop = new AbortController();
    let requestCount = 0;
    const response = await run(
      { ...LONG, format: 'pcm' },
      () => {
        requestCount += 1;
        return soundResponse(fixture('hi.pcm'));
      },
      speechVendor(),
      stop.signal,
    );
    stop.abort(new Error('left'));
    await collectSound(response).then(
      () => expect.fail('it went on'),
      (error: Error) => expect(error.message).to.equal('left'),
    );
    expect(requestCount).to.equal(1);
  });
});
