import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import type { CommandInput } from '../../../../contract/index.ts';
import { createSayCommand } from '../../../../plugins/operations/speech/index.ts';
import type { SpeechRequest } from '../../../../plugins/tts/kit/index.ts';
import { useTempFolder } from '../../../support/folders.ts';
import { fakeIo } from '../../../support/plugins/fake-io.ts';
import { fixture } from '../../../support/speech/sound.ts';
import { soundResponse } from '../../../support/speech/speech-vendor.ts';

const wav = fixture('hi.wav');

/** Runs the command with a vendor whose response does not depend on the request. */
async function say(args: readonly string[], options: CommandInput['options'], isTerminal = false) {
  const requests: { vendor: string; request: SpeechRequest }[] = [];
  const written: Uint8Array[] = [];
  const results: unknown[] = [];
  const command = createSayCommand(async (vendor, request) => {
    requests.push({ vendor, request });
    const { body } = soundResponse(wav);
    return { contentType: 'audio/wav', format: 'wav', model: 'm', voice: 'v', characters: 5, audio: body };
  });
  await command.run?.({
    args,
    options,
    signal: new AbortController().signal,
    actor: { via: 'cli' },
    io: fakeIo({
      isTerminal,
      result: (value) => void results.push(value),
      write: (bytes) => void written.push(Buffer.from(bytes)),
      read: async () => 'from stdin',
    }),
  });
  return { requests, written: Buffer.concat(written), results };
}

describe('the command say', () => {
  const folder = useTempFolder('say-command');

  it('writes the sound to stdout unchanged', async () => {
    const { written, requests } = await say(['hello', 'world'], {});
    expect(written.equals(wav)).to.equal(true);
    expect(requests).to.deep.equal([
      { vendor: 'espeak', request: { text: 'hello world', stream: false, split: true } },
    ]);
  });

  it('reads stdin when no text, or a dash, is given', async () => {
    for (const args of [[], ['-']]) expect((await say(args, {})).requests[0]?.request.text).to.equal('from stdin');
  });

  it('writes a complete file, in the format of its extension, and reports it', async () => {
    const output = path.join(folder, 'hello.wav');
    const { requests, results } = await say(['hi'], {
      output,
      vendor: 'other',
      speed: '1.5',
      voice: 'ann',
      language: 'de',
    });
    expect(readFileSync(output).equals(wav)).to.equal(true);
    expect(readdirSync(folder)).to.deep.equal(['hello.wav']);
    expect(requests[0]).to.deep.equal({
      vendor: 'other',
      request: { text: 'hi', stream: false, split: true, format: 'wav', speed: 1.5, voice: 'ann', language: 'de' },
    });
    expect(results[0]).to.include({ file: output, bytes: wav.length, vendor: 'other', format: 'wav', characters: 5 });
  });

  const refusals: readonly [string, CommandInput['options'], boolean, string][] = [
    ['an invalid speed', { speed: 'fast' }, false, '0.25 to 4'],
    ['an unknown format', { format: 'ogg' }, false, 'mp3, wav'],
    ['sound on a terminal', {}, true, '-o hello.wav'],
  ];
  for (const [title, options, isTerminal, words] of refusals) {
    it(`refuses ${title}`, async () => {
      const error = await say(['hi'], options, isTerminal).catch((thrown: unknown) => thrown);
      expect(error).to.include({ code: 'invalid_request' });
      expect((error as Error).message).to.include(words);
    });
  }

  it('leaves no partial file if it cannot write', async () => {
    const output = path.join(folder, 'nowhere', 'hello.wav');
    const error = await say(['hi'], { output }).catch((thrown: unknown) => thrown);
    expect(error).to.have.property('code', 'ENOENT');
    expect(existsSync(output)).to.equal(false);
  });
});
