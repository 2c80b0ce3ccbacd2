import { expect } from 'chai';
import { createResampler } from '../../../../plugins/tts/kit/audio/convert.ts';
import {
  mendWav,
  readWavHeader,
  UNKNOWN_SIZE,
  wavHeader,
  withWavSizes,
} from '../../../../plugins/tts/kit/audio/wav.ts';
import { fixture, hearWav } from '../../../support/speech/sound.ts';

describe('WAV headers', () => {
  const wav = fixture('hi.wav');

  it('are read unchanged', () => {
    expect(readWavHeader(wav)).to.deep.equal({
      headerBytes: 44,
      encoding: 1,
      channels: 1,
      sampleRate: 24_000,
      bitsPerSample: 16,
      dataBytes: 19_200,
    });
  });

  it('are read behind other chunks, odd ones among them', () => {
    const list = Buffer.from('LIST\x05\0\0\0abcde\0', 'latin1');
    const longer = Buffer.concat([wav.subarray(0, 36), list, wav.subarray(36)]);
    expect(readWavHeader(longer)).to.include({ headerBytes: 58, dataBytes: 19_200 });
  });

  it('need more data at every incomplete length', () => {
    for (let length = 0; length < 44; length++) expect(readWavHeader(wav.subarray(0, length))).to.equal('more');
  });

  for (const [title, bytes] of [
    ['other bytes', Buffer.from('ID3\x04 not a wav at all, really')],
    ['another RIFF', Buffer.from('RIFF\0\0\0\0AVI LIST....')],
    ['a header of no channels', Buffer.concat([wav.subarray(0, 22), Buffer.alloc(2), wav.subarray(24, 100)])],
    ['sound before its format', Buffer.concat([wav.subarray(0, 12), wav.subarray(36)])],
  ] as const) {
    it(`are not found in ${title}`, () => {
      expect(readWavHeader(bytes)).to.equal('invalid');
    });
  }

  for (const size of [0, 0x7fff_f000, UNKNOWN_SIZE]) {
    it(`with the size 0x${size.toString(16)} are those of a stream, and can be mended`, () => {
      const streamed = Buffer.from(wav);
      streamed.writeUInt32LE(size, 40);
      expect(readWavHeader(streamed)).to.include({ dataBytes: undefined });
      expect(mendWav(streamed).equals(wav)).to.equal(true);
    });
  }

  it('are written as they are read', () => {
    expect(wavHeader(24_000, 19_200).equals(wav.subarray(0, 44))).to.equal(true);
    expect(readWavHeader(wavHeader(24_000))).to.include({ dataBytes: undefined, sampleRate: 24_000 });
    expect(withWavSizes(wavHeader(24_000), 19_200).equals(wavHeader(24_000, 19_200))).to.equal(true);
  });

  it('that are correct stay unchanged', () => {
    expect(mendWav(wav)).to.equal(wav);
    expect(hearWav(wav).loudness).to.be.above(0.02);
  });
});

describe('resampling', () => {
  const tone = (rate: number, seconds: number) => {
    const samples = Buffer.alloc(Math.round(rate * seconds) * 2);
    for (let at = 0; at < samples.length / 2; at++) {
      samples.writeInt16LE(Math.round(10_000 * Math.sin((2 * Math.PI * 200 * at) / rate)), at * 2);
    }
    return samples;
  };

  for (const from of [8000, 16_000, 22_050, 44_100]) {
    it(`keeps length, loudness and pitch from ${from} to 24000`, () => {
      const out = createResampler(from, 24_000).push(tone(from, 0.5));
      expect(out.length / 2).to.be.closeTo(12_000, 4);
      const ideal = tone(24_000, 0.5);
      for (let at = 0; at < out.length / 2; at += 97) {
        expect(out.readInt16LE(at * 2)).to.be.closeTo(ideal.readInt16LE(at * 2), 250);
      }
    });
  }

  it('returns the same samples however the bytes are split, also inside a sample', () => {
    const input = tone(22_050, 0.05);
    const whole = createResampler(22_050, 24_000).push(input);
    for (const size of [1, 2, 3, 7, 100]) {
      const resampler = createResampler(22_050, 24_000);
      const pieces: Buffer[] = [];
      for (let at = 0; at < input.length; at += size) pieces.push(resampler.push(input.subarray(at, at + size)));
      const joined = Buffer.concat(pieces);
      expect(joined.length).to.be.closeTo(whole.length, 2);
      for (let at = 0; at < Math.min(joined.length, whole.length); at += 2) {
        expect(joined.readInt16LE(at)).to.be.closeTo(whole.readInt16LE(at), 1);
      }
    }
  });
});
