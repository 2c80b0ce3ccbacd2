import assert from 'node:assert/strict';
import { type ChatChunk, type ChatResponse, GatewayError } from '../../core/index.ts';
import { deepFreeze } from './deep-freeze.ts';
import { compileOrder, type DialectFormat, valuesAt } from './dialect-format.ts';
import { chunksOf, INTERLEAVED, SAMPLES, type Sample } from './dialect-samples.ts';
import { askFor, type DialectSubject, type NamedEvent, readEvents, writeAll } from './dialect-subject.ts';
import { findRunner } from './runner.ts';

/** Responses are written in the format's shape, whole and streamed, with the same content and the right counts. */
export function testWriting(subject: DialectSubject): void {
  const { describe, it } = findRunner();
  const { dialect, format, responses } = subject;
  const streamed = (chunks: readonly ChatChunk[]): readonly NamedEvent[] => {
    const stream = dialect.stream(askFor(subject, true));
    return readEvents(subject, writeAll(stream, deepFreeze(chunks)), stream.contentType);
  };

  describe('responses', () => {
    for (const { name, canonical, written } of responses)
      it(`${name} is written as the fixture says`, () => {
        assert.deepEqual(plain(dialect.write(deepFreeze(canonical), askFor(subject, false))), written);
      });

    for (const { title, response } of SAMPLES) {
      const whole = (said: ChatResponse = response) => plain(dialect.write(deepFreeze(said), askFor(subject, false)));
      it(`write ${title} whole, twice the same`, () => {
        assert.deepEqual(whole(), whole());
        assertUsage(format, whole(), format.usage.whole, response);
      });
      it(`stream ${title} in the order of the grammar`, () =>
        assertOrder(format, 'complete', streamed(chunksOf(response))));
      it(`stream ${title} with the content of the whole response`, () => {
        const events = streamed(chunksOf(response));
        for (const { what, whole: paths, streamed: sources } of format.content) {
          const expected = joined(paths.flatMap((path) => valuesAt(whole(), path)));
          const parts = events.flatMap(({ name, value }) =>
            sources.filter((source) => source.events.includes(name)).flatMap(({ path }) => valuesAt(value, path)),
          );
          assert.equal(joined(parts), expected, what);
        }
      });
      it(`stream ${title} with the usage of the whole response`, () => {
        const last = streamed(chunksOf(response)).findLast(
          ({ value }) => valuesAt(value, format.usage.streamed).length > 0,
        );
        assertUsage(format, last?.value, format.usage.streamed, response);
      });
    }

    it('stream calls whose pieces come in turns in the order of the grammar', () => {
      assertOrder(format, 'complete', streamed(INTERLEAVED));
    });
    it('stream a response that has only an end in the order of the grammar', () => {
      const [, { response }] = SAMPLES as readonly [Sample, Sample];
      assertOrder(format, 'complete', streamed(chunksOf(response).slice(-2)));
    });

    for (const { title, response } of SAMPLES)
      it(`end with one error, and nothing after it, wherever ${title} breaks off`, () => {
        const chunks = chunksOf(response);
        for (let count = 0; count <= chunks.length; count++) {
          const stream = dialect.stream(askFor(subject, true));
          const text = chunks.slice(0, count).map((chunk) => stream.push(chunk));
          const end = stream.fail(
            new GatewayError('provider_unavailable', 'The provider broke off.'),
            'req_conformance',
          );
          assertOrder(format, 'failed', readEvents(subject, text.join('') + end, stream.contentType));
        }
      });
  });
}

/** Fails unless events come in the order of the grammar, and its counters count. */
export function assertOrder(format: DialectFormat, end: 'complete' | 'failed', events: readonly NamedEvent[]): void {
  const order = compileOrder(
    format[end],
    format.events.map(({ name }) => name),
  );
  const names = events.map(({ name }) => `${name} `).join('');
  assert.match(names, order);
  for (const { events: counted, path } of format.counters ?? []) {
    const numbers = events.filter(({ name }) => counted.includes(name)).flatMap(({ value }) => valuesAt(value, path));
    assert.deepEqual(
      numbers,
      numbers.map((_, index) => index),
      path,
    );
  }
}

function assertUsage({ usage }: DialectFormat, body: unknown, at: string, { usage: canonical }: ChatResponse): void {
  const [told] = valuesAt(body, at);
  assert.ok(told, `there is no usage at ${at}`);
  const sum = (paths: readonly string[]) => paths.flatMap((path) => valuesAt(told, path)).reduce<number>(add, 0);
  assert.equal(sum(usage.input), canonical?.prompt_tokens, 'input');
  assert.equal(sum(usage.output), canonical?.completion_tokens, 'output');
  if (usage.total !== undefined) assert.equal(sum([usage.total]), canonical?.total_tokens, 'total');
}

const add = (sum: number, value: unknown): number => sum + Number(value);

/** Texts one after the other; an object as JSON. No arguments at all may be left out of a stream. */
function joined(values: readonly unknown[]): string {
  const texts = values.map((value) => (typeof value === 'string' ? value : JSON.stringify(value)));
  return texts.join('').replaceAll('{}', '');
}

/** As it is over HTTP. */
export function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value)) as unknown;
}
