import { spawnSync } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'chai';
import { GatewayError, type HttpRequest, StreamFailure } from '../../../contract/index.ts';
import { localVoices, resolveSpeech } from '../../../plugins/operations/speech/check.ts';
import { collectSound } from '../../../plugins/operations/speech/collect-sound.ts';
import { runSpeech } from '../../../plugins/operations/speech/operation.ts';
import espeak from '../../../plugins/tts/espeak/index.ts';
import type { SpeechFormat, SpeechProvider, SpeechRequest } from '../../../plugins/tts/kit/index.ts';
import { useTempFolder } from '../../support/folders.ts';
import { decode, hearWav, needProgram } from '../../support/speech/sound.ts';
import { CODEC_CALL, loadSpeech } from '../../support/speech/speech-vendor.ts';
import { until } from '../../support/wait.ts';

const never = new AbortController().signal;

async function start(vendor: SpeechProvider, request: SpeechRequest, abortSignal: AbortSignal = never) {
  const checked = await resolveSpeech(vendor, request);
  const { transport } = vendor;
  if (!transport) throw new Error('espeak has a transport');
  const send = async (each: HttpRequest) => {
    const { status, headers, body } = await transport(each, abortSignal);
    if (status !== 200) throw new StreamFailure(vendor.error(status, undefined, headers));
    return { headers, body };
  };
  return await runSpeech(vendor, checked, { send, abortSignal, codecCall: CODEC_CALL });
}

async function say(request: SpeechRequest, config: Readonly<Record<string, unknown>> = {}): Promise<Buffer> {
  return await collectSound(await start(await loadSpeech(espeak, config), request));
}

async function refusal(work: Promise<unknown>): Promise<GatewayError> {
  try {
    await work;
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  return expect.fail('nothing was refused');
}

describe('espeak', () => {
  before(function () {
    needProgram(this as never, 'espeak-ng');
  });

  it('returns real speech as a WAV whose header has its true size', async () => {
    const { seconds, loudness } = hearWav(await say({ text: 'Hello world, this is a test.' }));
    expect(seconds).to.be.within(1, 4);
    expect(loudness).to.be.above(0.02);
  });

  it('returns pcm at 24 kHz with the length of the WAV', async () => {
    const wav = hearWav(await say({ text: 'Hello world' }));
    const pcm = await say({ text: 'Hello world', format: 'pcm' });
    expect(pcm.length / 48_000).to.be.closeTo(wav.seconds, 0.001);
    expect(decode(pcm, 'pcm').loudness).to.be.closeTo(wav.loudness, 0.01);
  });

  for (const format of ['mp3', 'opus', 'aac', 'flac'] as const satisfies readonly SpeechFormat[]) {
    it(`returns valid ${format}, as long and as loud as the WAV`, async function () {
      needProgram(this as never, 'ffmpeg');
      const wav = hearWav(await say({ text: 'Hello world' }));
      const heard = decode(await say({ text: 'Hello world', format }), format);
      expect(heard.seconds).to.be.closeTo(wav.seconds, 0.15);
      expect(heard.loudness).to.be.closeTo(wav.loudness, 0.05);
    });
  }

  it('speaks slower and faster on request', async () => {
    const lengths = await Promise.all(
      [0.5, 1, 2].map(async (speed) => hearWav(await say({ text: 'One two three four five', speed })).seconds),
    );
    const [slow = 0, normal = 0, fast = 0] = lengths;
    expect(slow).to.be.above(normal * 1.5);
    expect(fast).to.be.below(normal * 0.75);
  });

  it('speaks German differently from English', async () => {
    const [english, german] = await Promise.all([say({ text: 'Strand' }), say({ text: 'Strand', language: 'de-AT' })]);
    expect(german.equals(english)).to.equal(false);
    expect(german.equals(await say({ text: 'Strand', voice: 'de' }))).to.equal(true);
  });

  it('maps the names of OpenAI’s voices to variants that sound different', async () => {
    const [alloy, onyx] = await Promise.all([
      say({ text: 'Hello', voice: 'alloy' }),
      say({ text: 'Hello', voice: 'onyx' }),
    ]);
    expect(alloy.equals(onyx)).to.equal(false);
  });

  it('lists its voices, and every one of the languages can be spoken with', async () => {
    const voices = (await localVoices(await loadSpeech(espeak))) ?? [];
    expect(voices.length).to.be.above(80);
    const mute = voices.slice(13).filter(({ id }) => {
      const { stdout } = spawnSync('espeak-ng', ['-v', id, '--stdin', '--stdout'], { input: '1 2 3' });
      return stdout.length < 1000;
    });
    expect(mute.map(({ id }) => id)).to.deep.equal([]);
  });

  it('speaks everything after a NUL and other control characters too', async () => {
    const whole = hearWav(await say({ text: 'one\u0000two\u0007three' }));
    expect(whole.seconds).to.be.above(hearWav(await say({ text: 'one' })).seconds * 1.5);
  });

  it('treats a text that looks like options, shell or markup as text', async () => {
    for (const text of ['-w/tmp/evil.wav', '$(touch /tmp/evil)', '; rm -rf /', '--help', '<break time="9s"/> now']) {
      expect(hearWav(await say({ text })).seconds).to.be.within(0.3, 8);
    }
  });

  it('joins a long text that was split into one WAV', async () => {
    const text = 'This sentence is said again and again. '.repeat(150);
    const error = await refusal(say({ text }));
    expect([error.code, error.param]).to.deep.equal(['request_too_large', 'text']);
    expect(hearWav(await say({ text, split: true })).seconds).to.be.above(200);
  });

  it('streams a long text before it is complete, under a header with an unknown size', async () => {
    const run = await start(await loadSpeech(espeak), { text: 'This sentence is said again and again. '.repeat(60) });
    const [first] = await firstOf(run.audio);
    expect(Buffer.from(first ?? []).readUInt32LE(40)).to.equal(0xffff_ffff);
  });

  for (const [voice, same] of [
    ['fr', 'fr-fr'],
    ['en', 'en-us'],
    ['fr+f3', 'fr-fr+f3'],
  ] as const) {
    it(`maps the bare language "${voice}" to the voice ${same}`, async () => {
      const text = 'Bonjour Paris';
      expect((await say({ text, voice })).equals(await say({ text, voice: same }))).to.equal(true);
    });
  }

  const refused: readonly [string, SpeechRequest, string, string][] = [
    ['an unknown language', { text: 'a', voice: 'xx' }, 'voice', 'is unknown'],
    ['blank text', { text: ' \n\t\u200b' }, 'text', 'is empty or blank'],
    ['an unknown voice', { text: 'a', voice: 'en-uss' }, 'voice', 'en-us'],
    ['an unknown variant, which the program would ignore', { text: 'a', voice: 'en-us+nosuch' }, 'voice', 'is unknown'],
    ['a voice that is an option', { text: 'a', voice: '-w/tmp/x' }, 'voice', 'is unknown'],
    ['a voice that is a path', { text: 'a', voice: '../../etc/passwd' }, 'voice', 'is unknown'],
    ['an unknown language', { text: 'a', language: 'xx' }, 'language', 'not supported'],
    ['a speed it does not reach', { text: 'a', speed: 0.25 }, 'speed', '0.46 to 2.57'],
  ];
  for (const [title, request, param, words] of refused) {
    it(`refuses ${title}`, async () => {
      const error = await refusal(say(request));
      expect([error.code, error.param]).to.deep.equal(['invalid_request', param]);
      expect(error.message).to.include(words);
    });
  }

  it('names the formats it has when ffmpeg is not there', async () => {
    const error = await refusal(say({ text: 'a', format: 'mp3' }, { ffmpeg: 'no-such-program' }));
    expect([error.code, error.param]).to.deep.equal(['invalid_request', 'format']);
    expect(error.message).to.include('wav, pcm');
  });

  it('ends the program when the listener disconnects, and releases its slot', async () => {
    const vendor = await loadSpeech(espeak, { concurrency: 1 });
    for (let round = 0; round < 3; round++) {
      const run = await start(vendor, { text: 'word '.repeat(780), format: 'pcm' });
      await firstOf(run.audio);
    }
    expect(hearWav(await collectSound(await start(vendor, { text: 'still here' }))).seconds).to.be.above(0.3);
  });
});

/** First piece; leaving the loop ends the source. */
async function firstOf(audio: AsyncIterable<Uint8Array>): Promise<readonly Uint8Array[]> {
  for await (const bytes of audio) return [bytes];
  return [];
}

describe('espeak without the program', () => {
  it('explains how to install it', async () => {
    const error = await refusal(say({ text: 'Hello' }, { program: 'no-such-espeak' }));
    expect(error.code).to.equal('feature_disabled');
    expect(error.message).to.include('apt-get install espeak-ng');
  });

  it('shows no path of the machine', async () => {
    const error = await refusal(say({ text: 'Hello' }, { program: '/opt/secret/espeak-ng' }));
    expect(error.message).to.not.include('/opt');
  });
});

/** Fake program that is slow, silent or broken on demand. */
function fakeProgram(folder: string, speak: string): string {
  const file = join(folder, 'espeak-fake');
  const voices =
    'Pty Language       Age/Gender VoiceName          File\n 5  en-us           --/M      English            gmw/en-US\n';
  writeFileSync(
    file,
    `#!/bin/sh\ncase "$1" in --voices*) printf '${voices.replaceAll('\n', '\\n')}';; *) echo $$ > "${folder}/pid"; ${speak};; esac\n`,
  );
  chmodSync(file, 0o755);
  return file;
}

describe('espeak with a program that misbehaves', () => {
  const folder = useTempFolder('espeak');
  const HEADER = 'head -c 44 /dev/zero | tr "\\\\0" R';
  const failureOf = (work: Promise<unknown>) =>
    work.then(
      () => expect.fail('it passed for a sound'),
      (error: unknown) => (error as StreamFailure).failure.class,
    );

  it('treats an exit code as an error, also after sound', async () => {
    expect(await failureOf(say({ text: 'a' }, { program: fakeProgram(folder, 'exit 1') }))).to.equal('upstream_error');
    const wav = `espeak-ng -v en-us --stdin --stdout; exit 3`;
    expect(await failureOf(say({ text: 'a' }, { program: fakeProgram(folder, wav) }))).to.equal('upstream_error');
  });

  it('treats silence as a text that cannot be spoken', async () => {
    expect(await failureOf(say({ text: 'a' }, { program: fakeProgram(folder, 'exit 0') }))).to.equal('invalid_request');
  });

  it('refuses anything but a WAV', async () => {
    const error = await refusal(say({ text: 'a' }, { program: fakeProgram(folder, HEADER) }));
    expect(error.code).to.equal('provider_invalid_response');
  });

  it('kills a slow program', async () => {
    const program = fakeProgram(folder, 'exec sleep 600');
    expect(await failureOf(say({ text: 'a' }, { program, timeout: '300ms' }))).to.equal('timeout');
    await until('the program is gone', () => !isRunning(folder));
  });

  it('kills the program when the call is aborted, before or after its turn', async () => {
    const program = fakeProgram(folder, 'exec sleep 600');
    const vendor = await loadSpeech(espeak, { program, concurrency: 1 });
    const [running, waiting] = [new AbortController(), new AbortController()];
    const first = outcome(start(vendor, { text: 'a' }, running.signal));
    await until('the program runs', () => isRunning(folder));
    const second = outcome(start(vendor, { text: 'b' }, waiting.signal));
    waiting.abort(new Error('left early'));
    expect(await second).to.equal('left early');
    running.abort(new Error('left'));
    expect(await first).to.equal('left');
    await until('the program is gone', () => !isRunning(folder));
  });

  it('sheds load when too many wait', async () => {
    const program = fakeProgram(folder, 'exec sleep 600');
    const vendor = await loadSpeech(espeak, { program, concurrency: 1 });
    const stop = new AbortController();
    const crowd = Array.from({ length: 9 }, () => outcome(start(vendor, { text: 'a' }, stop.signal)));
    expect(await failureOf(start(vendor, { text: 'one more' }, stop.signal))).to.equal('overloaded');
    stop.abort(new Error('enough'));
    expect(new Set(await Promise.all(crowd))).to.deep.equal(new Set(['enough']));
  });

  it('passes the program neither the gateway’s environment nor the text as an argument', async () => {
    process.env['TOLLGATE_TEST_SECRET'] = 'sk-very-secret';
    try {
      const spy = `{ env; echo "$@"; } > "${folder}/seen"; exit 1`;
      await failureOf(say({ text: 'a private text' }, { program: fakeProgram(folder, spy) }));
      const seen = spawnSync('cat', [join(folder, 'seen')]).stdout.toString();
      expect(seen).to.include('--stdin');
      expect(seen).to.not.include('sk-very-secret');
      expect(seen).to.not.include('private');
    } finally {
      delete process.env['TOLLGATE_TEST_SECRET'];
    }
  });
});

function outcome(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => 'sound',
    (error: Error) => error.message,
  );
}

/** Returns true if the fake program, which wrote its process id to a file, is still running. */
function isRunning(folder: string): boolean {
  const pid = spawnSync('cat', [join(folder, 'pid')])
    .stdout.toString()
    .trim();
  return pid !== '' && spawnSync('kill', ['-0', pid]).status === 0;
}
