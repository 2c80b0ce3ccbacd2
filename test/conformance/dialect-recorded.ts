import assert from 'node:assert/strict';
import { createEventReader } from '../../contract/event-reader.ts';
import type { ChatChunk, ChatCodec, CodecCall } from '../../contract/index.ts';
import { without } from './dialect-format.ts';
import { contextFor, contextOf, type DialectSubject, inputOf, readEvents, writeAll } from './dialect-subject.ts';
import { assertOrder, plain } from './dialect-writing.ts';
import { findRunner } from './runner.ts';

/**
 * Tests that a recorded response of a vendor with this format stays the same when its codec reads it and the dialect
 * writes it.
 */
export function testRecorded(subject: DialectSubject): void {
  const { describe, it } = findRunner();
  const { dialect, format, kit, recorded, requests } = subject;
  const { vendor } = kit;
  if (!vendor) return;
  const call = (stream: boolean): CodecCall => ({
    model: 'some-model',
    stream,
    created: 1_790_000_000,
    id: 'conformance',
  });
  const codecOf = (stream: boolean): Pick<ChatCodec, 'response' | 'stream'> => {
    const codec = vendor.native?.('some-model', stream)[dialect.name]?.codec ?? vendor.chat;
    if (!codec) throw new Error('the vendor has no codec for this format');
    return codec;
  };

  describe('a vendor with the same format', () => {
    for (const { name, text } of recorded.filter((one) => one.name.endsWith('.json')))
      it(`${name}: is the same after reading and writing, except for the differences in format.json`, () => {
        const body = JSON.parse(text) as unknown;
        const response = codecOf(false).response(body, call(false));
        const written = plain(dialect.write(response, contextFor(subject, false)));
        assert.deepEqual(without(written, format.modulo ?? []), without(body, format.modulo ?? []));
      });

    for (const { name, text } of recorded.filter((one) => one.name.endsWith('.sse')))
      for (const cut of [1, 7, 65_536])
        it(`${name}: follows the grammar after reading in pieces of ${cut} bytes and writing`, () => {
          const decoder = codecOf(true).stream(call(true));
          const reader = createEventReader();
          const chunks: ChatChunk[] = [];
          const bytes = new TextEncoder().encode(text);
          for (let at = 0; at < bytes.length; at += cut)
            for (const event of reader.push(bytes.subarray(at, at + cut))) chunks.push(...decoder.push(event));
          for (const event of reader.end()) chunks.push(...decoder.push(event));
          const end = decoder.end();
          assert.equal(end.complete, true);
          const stream = dialect.stream(contextFor(subject, true));
          const events = readEvents(subject, writeAll(stream, [...chunks, ...end.chunks]), stream.contentType);
          assertOrder(format, 'complete', events);
        });

    const { chat } = vendor;
    if (!chat || vendor.native?.('some-model', false)[dialect.name]?.codec) return;
    for (const fixture of requests.filter(({ native }) => native))
      it(`${fixture.name}: has the same content after reading and writing for the vendor`, async () => {
        const input = inputOf(subject, fixture);
        const { request } = dialect.read(input);
        const { context } = { context: contextOf(input, request) };
        const made = { ...call(request.stream === true), model: request.model, request };
        const sent = await chat.request(context.request, made);
        const expected = { ...fixture.body, ...fixture.native };
        const sameSet = (value: unknown) => without(plain(value), format.native?.edits ?? []);
        assert.deepEqual(sameSet(sent.body), sameSet(expected));
      });
  });
}
