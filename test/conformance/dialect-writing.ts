import assert from 'node:assert/strict';
import { type ChatChunk, type ChatResponse, GatewayError } from '../../contract/index.ts';
import { deepFreeze } from './deep-freeze.ts';
import { compileOrder, type DialectFormat, type Held, type Streamed, valuesAt } from './dialect-format.ts';
import { chunksOf, INTERLEAVED, INTERLEAVING, SAMPLES, type Sample } from './dialect-samples.ts';
import { contextFor, type DialectSubject, type NamedEvent, readEvents, writeAll } from './dialect-subject.ts';
import { findRunner } from './runner.ts';

/**
 * Tests that responses are written in the format's shape, as JSON and as a stream, with the same content and correct
 * counts.
 */
export function testWriting(subject: DialectSubject): void {
  const { describe, it } = findRunner();
  const { dialect, format, responses } = subject;
  const streamed = (chunks: readonly ChatChunk[]): readonly NamedEvent[] => {
    const stream = dialect.stream(contextFor(subject, true));
    return readEvents(subject, writeAll(stream, deepFreeze(chunks)), stream.contentType);
  };

  describe('responses', () => {
    for (const { name, canonical, written } of responses)
      it(`${name} is written as in the fixture`, () => {
        assert.deepEqual(plain(dialect.write(deepFreeze(canonical), contextFor(subject, false))), written);
      });

    for (const { title, response } of SAMPLES) {
      const whole = (said: ChatResponse = response) =>
        plain(dialect.write(deepFreeze(said), contextFor(subject, false)));
      it(`write ${title} as JSON, twice the same`, () => {
        assert.deepEqual(whole(), whole());
        assertUsage(format, whole(), format.usage.whole, response);
      });
      it(`stream ${title} in the order of the grammar`, () =>
        assertOrder(format, 'complete', streamed(chunksOf(response))));
      it(`stream ${title} with the content of the JSON response`, () => {
        const events = streamed(chunksOf(response));
        for (const { what, whole: paths, streamed: sources } of format.content) {
          const expected = joined(paths.flatMap((path) => valuesAt(whole(), path)));
          assert.equal(joined(valuesOf(events, sources)), expected, what);
        }
      });
      it(`write ${title} with all content of the model, once`, () => {
        for (const { what, whole: paths, holds } of format.content)
          if (holds)
            assert.equal(
              joined(paths.flatMap((path) => valuesAt(whole(), path))),
              joined(heldOf(response, holds)),
              what,
            );
      });
      it(`stream ${title} concurrently with another response, as it does alone`, () => {
        const [alone, other] = [chunksOf(response), chunksOf(INTERLEAVING.response)].map((chunks) =>
          deepFreeze(chunks),
        );
        const expected = writeAll(dialect.stream(contextFor(subject, true)), alone ?? []);
        const [one, two] = [
          dialect.stream(contextFor(subject, true)),
          dialect.stream(contextFor(subject, true, 'another')),
        ];
        const frames = (alone ?? []).map((chunk, at) => {
          const frame = one.push(chunk);
          const parallel = other?.[at];
          if (parallel) two.push(parallel);
          return frame;
        });
        two.end();
        assert.equal(frames.join('') + one.end(), expected);
      });
      it(`stream ${title} with the usage of the JSON response`, () => {
        const last = streamed(chunksOf(response)).findLast(
          ({ value }) => valuesAt(value, format.usage.streamed).length > 0,
        );
        assertUsage(format, last?.value, format.usage.streamed, response);
      });
    }

    it('stay the same when the connection is kept alive between their frames', () => {
      const [{ response }] = SAMPLES as readonly [Sample];
      const stream = dialect.stream(contextFor(subject, true));
      const { keepAlive = dialect.keepAlive, contentType } = stream;
      const frames = [...chunksOf(response).map((chunk) => stream.push(chunk)), stream.end()].filter(
        (text) => text !== '',
      );
      const plainly = readEvents(subject, frames.join(''), contentType);
      const kept = readEvents(subject, frames.join(keepAlive), contentType);
      const isKept = (name: string): boolean => !plainly.some((event) => event.name === name);
      assert.deepEqual(
        kept.filter(({ name }) => !isKept(name)),
        plainly,
      );
    });

    const { finish, id } = format;
    if (finish)
      for (const [reason, word] of Object.entries(finish.words))
        it(`end with "${word}" if the model ended with ${reason}`, () => {
          const [text, , , call] = SAMPLES as readonly [Sample, Sample, Sample, Sample];
          const { response: said } = reason === 'tool_calls' ? call : text;
          const choices = said.choices.map((choice) => ({ ...choice, finish_reason: reason as 'stop' }));
          const response = { ...said, choices };
          const whole = plain(dialect.write(deepFreeze(response), contextFor(subject, false)));
          assert.deepEqual(valuesAt(whole, finish.whole), [word], 'whole');
          assert.deepEqual(valuesOf(streamed(chunksOf(response)), finish.streamed), [word], 'streamed');
        });
    if (id)
      it('have an id of their own, the same in all of a stream', () => {
        const [{ response }] = SAMPLES as readonly [Sample];
        const ids = ['first', 'second'].map((own) => {
          const said = { ...response, id: `chatcmpl-${own}` };
          const whole = plain(dialect.write(deepFreeze(said), contextFor(subject, false, own)));
          const stream = dialect.stream(contextFor(subject, true, own));
          const text = writeAll(stream, chunksOf(said));
          const events = valuesOf(readEvents(subject, text, stream.contentType), id.streamed);
          return [valuesAt(whole, id.whole), [...new Set(events)]];
        });
        for (const found of ids.flat()) assert.equal(found.length, 1, `an id: ${JSON.stringify(found)}`);
        const [[first, streamedFirst], [second, streamedSecond]] = ids as [unknown[], unknown[]];
        assert.notDeepEqual(first, second, 'two responses have two ids');
        assert.notDeepEqual(streamedFirst, streamedSecond, 'two streams have two ids');
      });

    it('stream calls with interleaved pieces in the order of the grammar', () => {
      assertOrder(format, 'complete', streamed(INTERLEAVED));
    });
    it('stream a response that has only an end in the order of the grammar', () => {
      const [, { response }] = SAMPLES as readonly [Sample, Sample];
      assertOrder(format, 'complete', streamed(chunksOf(response).slice(-2)));
    });

    for (const { title, response } of SAMPLES)
      it(`end with one error, and nothing after it, wherever ${title} is interrupted`, () => {
        const chunks = chunksOf(response);
        for (let count = 0; count <= chunks.length; count++) {
          const stream = dialect.stream(contextFor(subject, true));
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

/** Returns the values at places of a stream, in order of arrival. */
function valuesOf(events: readonly NamedEvent[], places: readonly Streamed[]): readonly unknown[] {
  return events.flatMap(({ name, value }) =>
    places.filter((place) => place.events.includes(name)).flatMap(({ path }) => valuesAt(value, path)),
  );
}

/** Returns the model's texts for the parts that a row of `content` holds. */
function heldOf({ choices }: ChatResponse, holds: readonly Held[]): readonly string[] {
  return choices.flatMap(({ message }) =>
    holds.flatMap((part) => {
      const calls = (message.tool_calls ?? []).map(({ function: called }) => called);
      if (part === 'name') return calls.map(({ name }) => name);
      if (part === 'arguments') return calls.map((called) => called.arguments);
      return [message[part] ?? ''];
    }),
  );
}

/** Fails unless the events follow the grammar and its counters count. */
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
  const [reported] = valuesAt(body, at);
  assert.ok(reported, `there is no usage at ${at}`);
  const sum = (paths: readonly string[]) => paths.flatMap((path) => valuesAt(reported, path)).reduce<number>(add, 0);
  assert.equal(sum(usage.input), canonical?.prompt_tokens, 'input');
  assert.equal(sum(usage.output), canonical?.completion_tokens, 'output');
  if (usage.total !== undefined) assert.equal(sum([usage.total]), canonical?.total_tokens, 'total');
}

const add = (sum: number, value: unknown): number => sum + Number(value);

/** Joins texts; an object becomes JSON. A stream may omit empty arguments. */
function joined(values: readonly unknown[]): string {
  const texts = values.map((value) => (typeof value === 'string' ? value : JSON.stringify(value)));
  return texts.join('').replaceAll('{}', '');
}

/** Returns the value as sent over HTTP. */
export function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value)) as unknown;
}
