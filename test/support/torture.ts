import { expect } from 'chai';
import type { SseEvent, StreamDecoder } from '../../core/index.ts';
import { type Decoded, decode, readSse } from './codec.ts';

export interface TorturedStream {
  /** A whole stream as the vendor sends it. */
  readonly bytes: Buffer;
  readonly decoder: () => StreamDecoder;
}

/** The same stream in other clothes: each must decode to the same chunks. */
const CLOTHES: readonly (readonly [string, (text: string) => string])[] = [
  ['lines end in LF', (text) => text.replaceAll('\r\n', '\n')],
  ['lines end in CR LF', (text) => text.replace(/\r?\n/g, '\r\n')],
  ['lines end in CR', (text) => text.replace(/\r?\n/g, '\r')],
  ['it begins with a byte order mark', (text) => `\uFEFF${text}`],
  ['comments stand between the events', (text) => `: hello\n\n${text.replace(/(\r?\n\r?\n)/g, '$1: keep-alive\n\n')}`],
  ['there is no space after data:', (text) => text.replace(/^data: /gm, 'data:')],
  ['there are events without data', (text) => text.replace(/(\r?\n\r?\n)/g, '$1event: ping\n\n')],
  ['there are empty events', (text) => text.replace(/(\r?\n\r?\n)/g, '$1data:\n\n')],
  ['the vendor sends ids and retry times', (text) => text.replace(/^data: /gm, 'id: 1\nretry: 10\ndata: ')],
];

/** Tests that a codec gives the same chunks however the bytes of its stream arrive. */
export function tortureStream(name: string, { bytes, decoder }: TorturedStream): void {
  const whole = decode(decoder(), readSse([bytes]));
  const same = (decoded: Decoded): void => {
    expect(decoded).to.deep.equal(whole);
  };

  describe(`${name} decodes to the same chunks`, () => {
    it('cut in two at every byte', () => {
      for (let cut = 1; cut < bytes.length; cut += 1) {
        same(decode(decoder(), readSse([bytes.subarray(0, cut), bytes.subarray(cut)])));
      }
    });

    it('byte by byte', () => {
      same(decode(decoder(), readSse(Array.from(bytes, (byte) => Buffer.of(byte)))));
    });

    for (const [title, dress] of CLOTHES) {
      it(`when ${title}`, () => {
        same(decode(decoder(), readSse([Buffer.from(dress(bytes.toString('utf8')))])));
      });
    }

    it('when two streams are decoded in turns', () => {
      const events = readSse([bytes]);
      const two = [decoder(), decoder()].map((each) => ({ each, chunks: [] as Decoded['chunks'][number][] }));
      for (const event of events) for (const { each, chunks } of two) chunks.push(...each.push(event));
      for (const { each, chunks } of two) {
        const { chunks: last, complete } = each.end();
        same({ chunks: [...chunks, ...last], complete });
      }
    });

    it('but is not complete when it breaks off before its end', () => {
      const events = readSse([bytes]);
      for (let length = 0; length < Math.min(events.length - 2, 4); length += 1) {
        expect(decode(decoder(), events.slice(0, length)).complete).to.equal(false);
      }
    });
  });
}

/** The events with one text of a megabyte put in the place of a marker. */
export function withGiantText(bytes: Buffer, marker: string): { readonly events: SseEvent[]; readonly text: string } {
  const text = 'ü'.repeat(512 * 1024);
  return { events: readSse([Buffer.from(bytes.toString('utf8').replace(marker, text))]), text };
}
