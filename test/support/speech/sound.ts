/** Decodes and measures sound. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { Context } from 'mocha';
import { readWavHeader } from '../../../plugins/tts/kit/audio/wav.ts';
import type { SpeechFormat } from '../../../plugins/tts/kit/index.ts';

const FIXTURES = new URL('../../fixtures/tts/', import.meta.url);

/** File of `test/fixtures/tts`. */
export function fixture(name: string): Buffer {
  return readFileSync(new URL(name, FIXTURES));
}

export interface Heard {
  readonly seconds: number;
  /** Root mean square of the samples, 0 to 1; speech has some hundredths, silence has 0. */
  readonly loudness: number;
}

/** Measures 16-bit mono samples. */
export function hear(samples: Buffer, sampleRate: number): Heard {
  const count = Math.floor(samples.length / 2);
  let sum = 0;
  for (let index = 0; index < count; index++) sum += (samples.readInt16LE(index * 2) / 32_768) ** 2;
  return { seconds: count / sampleRate, loudness: count === 0 ? 0 : Math.sqrt(sum / count) };
}

/** Measures a WAV by its own header, which must contain its true size. */
export function hearWav(wav: Buffer): Heard {
  const facts = readWavHeader(wav);
  if (typeof facts === 'string') throw new Error('not a WAV');
  if (facts.dataBytes !== wav.length - facts.headerBytes) throw new Error('the WAV header tells a wrong size');
  return hear(wav.subarray(facts.headerBytes), facts.sampleRate);
}

/** Decodes any format with ffmpeg, which also rejects invalid sound. */
export function decode(sound: Buffer, format: SpeechFormat): Heard {
  if (format === 'pcm') return hear(sound, 24_000);
  const { status, stdout, stderr } = spawnSync(
    'ffmpeg',
    [
      '-hide_banner',
      '-xerror',
      '-loglevel',
      'error',
      '-i',
      'pipe:0',
      '-f',
      's16le',
      '-ac',
      '1',
      '-ar',
      '24000',
      'pipe:1',
    ],
    { input: sound, maxBuffer: 64 * 1024 * 1024 },
  );
  if (status !== 0) throw new Error(`ffmpeg does not decode it: ${stderr.toString()}`);
  return hear(stdout, 24_000);
}

const found = new Set<string>();

/** Skips a test if a program is missing; in CI a missing program is a failure. */
export function needProgram(test: Context, program: string): void {
  if (found.has(program)) return;
  const { error } = spawnSync(program, [program === 'ffmpeg' ? '-version' : '--version']);
  if (!error) {
    found.add(program);
    return;
  }
  if (process.env['CI']) throw new Error(`CI has no ${program}: apt-get install -y espeak-ng ffmpeg`);
  if (test.test) test.test.title += ` (skipped: no ${program})`;
  test.skip();
}
