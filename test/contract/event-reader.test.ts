import { expect } from 'chai';
import fc from 'fast-check';
import { createEventReader, readEvents } from '../../contract/event-reader.ts';
import type { SseEvent } from '../../contract/events.ts';
import { StreamFailure } from '../../contract/provider.ts';
import { corpusJson } from '../support/corpus.ts';

interface WptCase {
  readonly name: string;
  readonly wire_base64: string;
  readonly events: readonly SseEvent[];
}

describe('sse', () => {
  describe('reading', () => {
    it('returns the events that bytes complete, in batches', () => {
      const reader = createEventReader();
      expect(data(reader.push(Buffer.from('data: 1\n\ndata: 2\n\nda')))).to.deep.equal(['1', '2']);
      expect(data(reader.push(Buffer.from('ta: 3\n')))).to.deep.equal([]);
      expect(data(reader.push(Buffer.from('\n')))).to.deep.equal(['3']);
      expect(data(reader.end())).to.deep.equal([]);
    });

    it('keeps the name of an event and ignores comments, ids and retry', () => {
      const text = ': hello\nid: 7\nretry: 10\nevent: ping\ndata: {}\n\n: bye\n\n';
      const [event, ...more] = readAt(Buffer.from(text), []);
      expect(event).to.include({ event: 'ping', data: '{}' });
      expect(more).to.deep.equal([]);
    });

    it('does not let an event ended by CR wait for the next one', () => {
      expect(data(createEventReader().push(Buffer.from('data: 1\r\r')))).to.deep.equal(['1']);
      expect(data(createEventReader().push(Buffer.from('data: 1\r\n\r')))).to.deep.equal(['1']);
    });

    for (const [what, text, expected] of [
      ['[DONE]', 'data: [DONE]', ['[DONE]']],
      ['a whole JSON object', 'data: {"a":1}', ['{"a":1}']],
      ['a whole JSON object and its line end', 'event: x\ndata: {"a":1}\r\n', ['{"a":1}']],
      ['half a JSON object', 'data: {"a":', []],
      ['other text', 'data: test', []],
    ] as const) {
      it(`at the end ${expected.length ? 'delivers' : 'drops'} an event without blank line that is ${what}`, () => {
        expect(data(readAt(Buffer.from(text), []))).to.deep.equal(expected);
      });
    }

    it('replaces invalid bytes by U+FFFD and continues', () => {
      const wire = Buffer.concat([Buffer.from('data: a'), Buffer.from([0xff, 0xc3]), Buffer.from('b\n\ndata: c\n\n')]);
      expect(data(readAt(wire, []))).to.deep.equal(['a\ufffd\ufffdb', 'c']);
    });

    it('keeps code points intact wherever they are split', () => {
      const text = 'data: {"content":"é 😀 中 \u{1F468}\u200d\u{1F469}"}\n\n';
      const wire = Buffer.from(`\ufeff${text}`);
      for (let at = 0; at <= wire.length; at++) {
        expect(data(readAt(wire, [at]))).to.deep.equal([text.slice(6, -2)]);
      }
    });

    it('returns the same events for every split of any stream', () => {
      const line = fc.constantFrom(
        'data: x',
        'data:é😀',
        'data',
        'event: e',
        ': c',
        'id: 1',
        '',
        '',
        '\ufeff',
        'data:\u0000',
      );
      const lines = fc.array(fc.tuple(line, fc.constantFrom('\n', '\r', '\r\n')), { maxLength: 12 });
      const splits = fc.array(fc.nat(80), { maxLength: 6 });
      fc.assert(
        fc.property(lines, splits, (parts, at) => {
          const wire = Buffer.from(parts.flat().join(''));
          expect(readAt(wire, at)).to.deep.equal(readAt(wire, []));
        }),
      );
    });

    for (const [what, chunks] of [
      ['without a line end', Array(40).fill('data: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx')],
      ['of endless lines', Array(40).fill('data: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n')],
      ['in one piece', [`data: ${'x'.repeat(1001)}\n\n`]],
    ] as const) {
      it(`rejects an overlong event: ${what}`, () => {
        const reader = createEventReader({ maxEventLength: 1000 });
        expect(() => {
          for (const chunk of chunks) reader.push(Buffer.from(chunk));
        })
          .to.throw(StreamFailure)
          .with.nested.property('failure.class', 'upstream_error');
      });
    }

    it('reads a body in batches, and its error after its events', async () => {
      async function* body() {
        yield Buffer.from('data: 1\n\ndata: 2\n\n');
        yield Buffer.from(': ping\n\n');
        yield Buffer.from('data: 3\n\n');
        throw new Error('broke off');
      }
      const batches: string[][] = [];
      let thrown: unknown;
      try {
        for await (const events of readEvents(body())) batches.push(data(events));
      } catch (error) {
        thrown = error;
      }
      expect(batches).to.deep.equal([['1', '2'], ['3']]);
      expect(thrown).to.have.property('message', 'broke off');
    });

    describe('the cases of web-platform-tests', () => {
      const { cases } = corpusJson('wpt-eventsource/wpt-eventsource-cases.json') as { cases: readonly WptCase[] };
      for (const { name, wire_base64, events } of cases) {
        const wire = Buffer.from(wire_base64, 'base64');
        const wanted = events.map(({ event, data }) => ({ event, data }));
        it(`${name}: whole and byte by byte`, () => {
          expect(readAt(wire, [])).to.deep.equal(wanted);
          expect(readAt(wire, [...wire.keys()])).to.deep.equal(wanted);
        });
        it(`${name}: at every split`, () => {
          for (let at = 0; at <= wire.length; at++) expect(readAt(wire, [at]), `split at ${at}`).to.deep.equal(wanted);
        });
      }
    });
  });
});

function data(events: readonly SseEvent[]): string[] {
  return events.map((event) => event.data);
}

/** All events of some bytes, which the reader gets in pieces cut at these offsets. */
function readAt(wire: Buffer, offsets: readonly number[]): { event: string | undefined; data: string }[] {
  const reader = createEventReader();
  const cuts = [0, ...[...offsets].sort((a, b) => a - b), wire.length].map((at) => Math.min(at, wire.length));
  const events = cuts.slice(1).flatMap((end, n) => reader.push(wire.subarray(cuts[n], end)));
  return [...events, ...reader.end()].map(({ event, data }) => ({ event, data }));
}
