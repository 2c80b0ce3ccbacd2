import { crc32 } from 'node:zlib';
import { expect } from 'chai';
import fc from 'fast-check';
import type { SseEvent } from '../../../contract/index.ts';
import { createFrameReader } from '../../../plugins/formats/bedrock/event-stream.ts';
import { amazonEvent, amazonException, amazonFrame } from '../../support/vendors/amazon-frames.ts';

/**
 * AWS's own test vectors, with the names in its SDKs: https://github.com/smithy-lang/smithy-typescript,
 * packages/eventstream-codec.
 */
const GOOD: Readonly<Record<string, string>> = {
  empty_message: '000000100000000005c248eb7d98c8ff',
  payload_no_headers: '0000001d00000000fd528c5a7b27666f6f273a27626172277dc3653936',
  int32_header: '0000002d0000001041c424b80a6576656e742d74797065040000a00c7b27666f6f273a27626172277d36f480a0',
  payload_one_str_header:
    '0000003d0000002007fd83960c636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e7b27666f6f273a27626172277d8d9c08b1',
  all_headers:
    '000000cc000000af0fae64ca0a6576656e742d74797065040000a00c0c636f6e74656e742d747970650700106170706c69636174696f6e2f6a736f6e0a626f6f6c2066616c73650109626f6f6c2074727565000462797465' +
    '02cf08627974652062756606001449276d2061206c6974746c6520746561706f74210974696d657374616d700800000000008' +
    '45fed05696e74313603002a05696e743634050000000002' +
    '8757b204757569640901020304050607' +
    '08090a0b0c0d0e0f107b27666f6f273a27626172277daba5f10c',
};
const BAD: Readonly<Record<string, string>> = {
  corrupted_headers: (GOOD['payload_one_str_header'] ?? '').replace('7b27666f6f', '7b61666f6f'),
  corrupted_header_len: (GOOD['payload_one_str_header'] ?? '').replace('00000020', '00000021'),
  corrupted_length: (GOOD['payload_one_str_header'] ?? '').replace('0000003d', '0000003e'),
  corrupted_payload: (GOOD['payload_no_headers'] ?? '').replace('7b27', '5b27'),
};

const EVENTS: readonly SseEvent[] = [
  { event: 'messageStart', data: '{"role":"assistant"}' },
  { event: 'contentBlockDelta', data: '{"delta":{"text":"Grüße 🙂"},"contentBlockIndex":0}' },
  { event: 'throttlingException', data: '{"message":"Too many"}' },
];
const BYTES = Buffer.concat([
  amazonEvent('messageStart', { role: 'assistant' }),
  amazonEvent('contentBlockDelta', { delta: { text: 'Grüße 🙂' }, contentBlockIndex: 0 }),
  amazonException('throttlingException', 'Too many'),
]);

const hex = (text: string): Buffer => Buffer.from(text, 'hex');

describe('frames of Amazon’s event streams', () => {
  for (const [name, bytes] of Object.entries(GOOD))
    it(`are read, those without an event are passed over: ${name}`, () => {
      const reader = createFrameReader();
      expect(reader.push(Buffer.concat([hex(bytes), BYTES]))).to.deep.equal(EVENTS);
    });

  for (const [name, bytes] of Object.entries(BAD))
    it(`are refused: ${name}`, () => {
      expect(() => createFrameReader().push(hex(bytes)))
        .to.throw('are damaged')
        .with.nested.property('failure.class', 'upstream_error');
    });

  it('may be halved anywhere', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(BYTES.length), { maxLength: 20 }), (cuts) => {
        const reader = createFrameReader();
        const at = [0, ...cuts.toSorted((a, b) => a - b), BYTES.length];
        const events = at.slice(1).flatMap((to, index) => reader.push(BYTES.subarray(at[index], to)));
        expect([...events, ...reader.end()]).to.deep.equal(EVENTS);
      }),
    );
    const reader = createFrameReader();
    expect([...BYTES].flatMap((byte) => reader.push(Buffer.from([byte])))).to.deep.equal(EVENTS);
  });

  it('are limited by their first bytes, and report the memory that they use', () => {
    const long = amazonEvent('chunk', { bytes: 'x'.repeat(100_000) });
    let held = 0;
    const reader = createFrameReader({ onGrowth: (more) => (held += more) });
    expect(reader.push(long.subarray(0, 90_000))).to.deep.equal([]);
    expect(held).to.equal(90_000 - 64 * 1024);
    expect(reader.push(long.subarray(90_000))).to.have.length(1);
    expect(() => createFrameReader({ maxEventLength: 50_000 }).push(long.subarray(0, 12))).to.throw(
      'longer than 50000 bytes',
    );
  });

  it('with headers beyond their end are refused, with any checksums', () => {
    for (const [at, value] of [
      [12, 200],
      [24, 77],
      [25, 255],
    ] as const) {
      const frame = amazonFrame({ ':event-type': 'x' }, '{}');
      frame[at] = value;
      frame.writeUInt32BE(crc32(frame.subarray(0, -4)), frame.length - 4);
      expect(() => createFrameReader().push(frame), `${at}`).to.throw('headers are malformed');
    }
  });

  it('with an error without an event are the event `error`', () => {
    const headers = { ':message-type': 'error', ':error-code': 'InternalError', ':error-message': 'It broke.' };
    expect(createFrameReader().push(amazonFrame(headers, ''))).to.deep.equal([
      { event: 'error', data: '{"message":"It broke."}' },
    ]);
  });

  it('with JSON that is nested too deeply are refused', () => {
    const deep = amazonFrame(
      { ':message-type': 'event', ':event-type': 'x' },
      `${'['.repeat(2000)}${']'.repeat(2000)}`,
    );
    expect(() => createFrameReader().push(deep)).to.throw('too much nesting');
  });
});
