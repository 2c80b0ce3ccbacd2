import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { useTempFolder } from '../support/folders.ts';
import { runCli } from '../support/processes/cli.ts';
import { decode, hearWav, needProgram } from '../support/speech/sound.ts';

describe('tollgate say', () => {
  const folder = useTempFolder('say');
  before(function () {
    needProgram(this as never, 'espeak-ng');
    writeFileSync(path.join(folder, 'tollgate.config.json'), JSON.stringify({ store: 'memory:', tts: { espeak: {} } }));
  });

  it('writes a WAV that plays', async () => {
    const { code, stdout, stderr } = await runCli(['say', 'hello', '--vendor', 'espeak', '-o', 'hello.wav'], folder);
    expect([code, stdout.trim(), stderr]).to.deep.equal([0, 'hello.wav', '']);
    expect(hearWav(readFileSync(path.join(folder, 'hello.wav'))).loudness).to.be.above(0.02);
  });

  it('derives the format from the extension, and prints facts as JSON', async function () {
    needProgram(this as never, 'ffmpeg');
    const { code, stdout } = await runCli(['say', 'hello', '-o', 'hello.mp3', '--speed', '1.5', '--json'], folder);
    expect(code).to.equal(0);
    expect((JSON.parse(stdout) as { data: object }).data).to.include({
      file: 'hello.mp3',
      format: 'mp3',
      voice: 'en-us',
      characters: 5,
    });
    expect(decode(readFileSync(path.join(folder, 'hello.mp3')), 'mp3').loudness).to.be.above(0.02);
  });

  it('reads the text from stdin', async () => {
    const { code } = await runCli(['say', '-o', 'piped.wav'], folder, { input: 'piped text' });
    expect(code).to.equal(0);
    expect(hearWav(readFileSync(path.join(folder, 'piped.wav'))).seconds).to.be.above(0.5);
  });

  const refusals: readonly [string, readonly string[], number, string][] = [
    ['an invalid speed', ['--speed', 'fast'], 2, '0.25 to 4'],
    ['an unknown format', ['--format', 'ogg'], 2, 'mp3, wav'],
    ['an unknown voice', ['--voice', 'en-uss'], 2, 'en-us'],
    ['a vendor that is not configured', ['--vendor', 'missing'], 2, 'espeak'],
  ];
  for (const [title, words, exitCode, hint] of refusals) {
    it(`refuses ${title}, and leaves no file behind`, async () => {
      const { code, stderr, stdout } = await runCli(['say', 'hello', '-o', 'never.wav', ...words], folder);
      expect([code, stdout]).to.deep.equal([exitCode, '']);
      expect(stderr).to.include(hint);
      expect(existsSync(path.join(folder, 'never.wav'))).to.equal(false);
      expect(readdirSync(folder).filter((name) => name.endsWith('.part'))).to.deep.equal([]);
    });
  }
});
