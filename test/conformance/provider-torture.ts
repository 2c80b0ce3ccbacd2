import assert from 'node:assert/strict';
import { createEventReader } from '../../contract/event-reader.ts';
import type { SseEvent } from '../../contract/events.ts';
import { StreamFailure } from '../../contract/index.ts';
import { itShows } from './cells.ts';
import { OPENAI_ERROR } from './provider-failures.ts';
import { readChunks } from './provider-shape.ts';
import { type Decoded, decodeStream, type Fixture, type ProviderSubject, streamCall } from './provider-subject.ts';
import { findRunner } from './runner.ts';

/** Longer streams are cut at this many places instead of at every byte. */
const MAX_CUTS = 3000;

/** Splits and alters one recorded stream as networks and relays do; the result must stay the same. */
export function tortureStream({ name, provider, kit }: ProviderSubject, { name: file, text }: Fixture): void {
  const { describe, it } = findRunner();
  const plain = text.replaceAll('\r\n', '\n');
  const events = plain.split(/\n\n+/).filter((event) => event.trim() !== '');
  const hasDone = events.at(-1)?.trim() === 'data: [DONE]';
  const errorEvent = kit.errorEvent ?? OPENAI_ERROR;
  const decode = (...pieces: readonly (string | Uint8Array)[]) =>
    decodeStream(
      provider,
      pieces.map((piece) => (typeof piece === 'string' ? new TextEncoder().encode(piece) : piece)),
    );
  const same = ({ chunks, complete }: Decoded) => {
    assert.deepEqual(readChunks(chunks), readChunks(decode(plain).chunks));
    assert.equal(complete, true);
  };
  const survives = (what: string, body: () => void) =>
    itShows(it, { provider: name, feature: 'stream torture', says: 'verified' }, `survives ${what}`, body);

  describe(`under torture: ${file}`, () => {
    survives('a cut at every byte', () => {
      const bytes = new TextEncoder().encode(plain);
      const step = Math.max(1, Math.ceil(bytes.length / MAX_CUTS));
      // A decoder gets one event at a time, so the same events give the same chunks.
      const whole = JSON.stringify(eventsOf(bytes));
      for (let at = 1; at < bytes.length; at += step)
        assert.equal(JSON.stringify(eventsOf(bytes.subarray(0, at), bytes.subarray(at))), whole, `cut at byte ${at}`);
    });
    survives('one byte at a time', () => {
      same(decode(...Array.from(new TextEncoder().encode(plain), (byte) => Uint8Array.of(byte))));
    });
    survives('CRLF', () => same(decode(plain.replaceAll('\n', '\r\n'))));
    survives('CR', () => same(decode(plain.replaceAll('\n', '\r'))));
    survives('a byte order mark', () => same(decode(`\uFEFF${plain}`)));
    survives('comments between events', () =>
      same(decode(events.map((event) => `: KEEP-ALIVE\n\n${event}\n\n`).join(''))),
    );
    survives('empty events', () =>
      same(decode(events.map((event) => `data:\n\nevent: ping\n\n${event}\n\n`).join(''))),
    );
    survives('`data:` without a space', () => same(decode(plain.replaceAll('data: ', 'data:'))));
    survives('a last event without its blank line', () => same(decode(plain.trimEnd())));
    survives('an event of a mebibyte', () => {
      same(decode(plain.replace('data: {', `data: {"x_padding":"${'x'.repeat(1024 * 1024)}",`)));
    });
    survives('a concurrent stream', () => same(interleaved(subjectDecoder, events)));

    const positions = new Set([0, Math.floor(events.length / 2), Math.max(events.length - 3, 0)]);
    for (const at of positions) {
      survives(`an error after ${at} of ${events.length} events, as an error`, () => {
        const before = events.slice(0, at).map((event) => `${event}\n\n`);
        assert.throws(() => decode(...before, errorEvent), StreamFailure);
      });
    }
    survives('a break after any event: it is complete only with its finish reasons', () => {
      for (let at = 0; at <= events.length; at++) {
        const { chunks, complete } = decode(
          events
            .slice(0, at)
            .map((event) => `${event}\n\n`)
            .join(''),
        );
        const { choices } = readChunks(chunks);
        const finished = choices.length > 0 && choices.every((choice) => choice.finish_reason !== null);
        assert.equal(complete, finished, `after ${at} of ${events.length} events`);
      }
    });
    if (!hasDone) return;
    survives('a missing [DONE]', () => same(decode(`${events.slice(0, -1).join('\n\n')}\n\n`)));
    survives('a second [DONE], and noise after it', () => {
      same(decode(`${plain.trimEnd()}\n\ndata: [DONE]\n\ndata: {"noise":true}\n\ndata: not json\n\n`));
    });
  });

  function subjectDecoder() {
    const decoder = provider.chat?.stream(streamCall());
    if (!decoder) throw new Error('the provider has no chat');
    return decoder;
  }
}

/** Reads the events of a stream that arrives in these pieces. */
function eventsOf(...pieces: readonly Uint8Array[]): readonly SseEvent[] {
  const reader = createEventReader();
  return [...pieces.flatMap((piece) => [...reader.push(piece)]), ...reader.end()];
}

/** Runs two decoders interleaved: they must not share state. */
function interleaved(
  create: () => NonNullable<ReturnType<NonNullable<ProviderSubject['provider']['chat']>['stream']>>,
  events: readonly string[],
): Decoded {
  const [one, two] = [create(), create()];
  const [ahead, behind] = [createEventReader(), createEventReader()];
  const chunks = events.flatMap((event, at) => {
    const bytes = new TextEncoder().encode(`${event}\n\n`);
    const late = new TextEncoder().encode(`${events[at - 1] ?? ''}\n\n`);
    for (const each of behind.push(late)) two.push(each);
    return ahead.push(bytes).flatMap((each) => [...one.push(each)]);
  });
  const end = one.end();
  return { chunks: [...chunks, ...end.chunks], complete: end.complete };
}
