import { expect } from 'chai';
import { StreamFailure } from '../../../../contract/index.ts';
import { createSoundCheck } from '../../../../plugins/tts/kit/audio/sound-check.ts';
import type { SpeechFormat } from '../../../../plugins/tts/kit/index.ts';
import { fixture } from '../../../support/speech/sound.ts';

const FORMATS: readonly SpeechFormat[] = ['mp3', 'wav', 'opus', 'pcm', 'aac', 'flac'];

function inspect(format: SpeechFormat, bytes: Buffer, size = bytes.length || 1): number | undefined {
  const check = createSoundCheck(format);
  for (let at = 0; at < bytes.length; at += size) check.push(bytes.subarray(at, at + size));
  return check.end();
}

describe('the sound check', () => {
  for (const format of FORMATS) {
    const sound = fixture(`hi.${format}`);

    it(`measures the length of ${format}, however it is split`, () => {
      const seconds = inspect(format, sound);
      for (const size of [1, 3, 10, 417, 5000]) expect(inspect(format, sound, size)).to.equal(seconds);
      if (format !== 'flac') expect(seconds).to.be.closeTo(0.4, 0.1);
    });

    it(`calls ${format} without sound empty`, () => {
      const head = { mp3: 0, wav: 44, opus: 0, pcm: 0, aac: 0, flac: 42 }[format];
      for (const length of [0, head]) {
        expect(() => inspect(format, sound.subarray(0, length))).to.throw(StreamFailure, 'empty');
      }
    });

    if (format !== 'pcm') {
      it(`refuses HTML, JSON and other formats as ${format}`, () => {
        for (const bytes of [Buffer.from('<html>oops</html>'), Buffer.from('{"error":"quota"} and more')]) {
          expect(() => inspect(format, bytes)).to.throw(`did not return ${format} audio`);
        }
        for (const other of FORMATS.filter((each) => each !== format)) {
          expect(() => inspect(format, fixture(`hi.${other}`))).to.throw(`did not return ${format} audio`);
        }
      });
    }
  }

  for (const format of ['mp3', 'wav', 'opus', 'aac', 'pcm'] as const) {
    it(`calls ${format} that stops inside a frame broken off`, () => {
      const sound = fixture(`hi.${format}`);
      expect(() => inspect(format, sound.subarray(0, sound.length - 101))).to.throw(StreamFailure, 'was interrupted');
    });
  }

  it('allows a tag before aac', () => {
    const tag = Buffer.concat([Buffer.from('ID3\x04\0\0\0\0\0\x05', 'latin1'), Buffer.alloc(5)]);
    expect(inspect('aac', Buffer.concat([tag, fixture('hi.aac')]), 3)).to.be.closeTo(0.4, 0.1);
  });

  it('allows a tag at the end of mp3', () => {
    const tag = Buffer.concat([Buffer.from('TAG'), Buffer.alloc(125, 'x')]);
    expect(inspect('mp3', Buffer.concat([fixture('hi.mp3'), tag]))).to.be.closeTo(0.4, 0.1);
  });

  it('allows other chunks after the sound of a WAV', () => {
    expect(inspect('wav', Buffer.concat([fixture('hi.wav'), Buffer.from('LIST\x02\0\0\0ab')]))).to.equal(0.4);
  });
});
