import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import { createEventReader } from '../../contract/event-reader.ts';
import { type ChatResponse, readArray, readObject, StreamFailure } from '../../contract/index.ts';
import { itShows } from './cells.ts';
import { type FixtureFeature, testFixtureFeature } from './provider-features.ts';
import { assertExpected, type Outcome, type OutcomeChoice, readChunks } from './provider-shape.ts';
import {
  CALL,
  decodeDeclared,
  decodeStream,
  type Fixture,
  type ProviderSubject,
  streamCall,
} from './provider-subject.ts';
import { tortureStream } from './provider-torture.ts';
import { findRunner } from './runner.ts';

const FEATURES: readonly FixtureFeature<Outcome>[] = [
  {
    name: 'streamed tool calls',
    lack: 'tool calls',
    shows: ({ choices }) => choices.some(({ tool_calls: calls }) => calls.length > 0),
  },
  {
    name: 'streamed parallel tool calls',
    lack: 'parallel tool calls',
    shows: ({ choices }) => choices.some(({ tool_calls: calls }) => calls.length > 1),
  },
  {
    name: 'streamed reasoning content',
    lack: 'reasoning content',
    shows: ({ choices }) => choices.some(({ reasoning_content: text }) => text !== ''),
  },
  {
    name: 'streamed log probabilities',
    lack: 'log probabilities',
    shows: ({ choices }) => choices.some(({ logprobs }) => logprobs.length > 0),
  },
  { name: 'usage in streams', shows: ({ usage }) => usage !== undefined },
];

/** Tests that streams become OpenAI's exact chunks, however their bytes are split in transit. */
export function testStreams(subject: ProviderSubject): void {
  const { describe, it } = findRunner();
  const { name, provider, kit, fixtures } = subject;
  if (!provider.chat) return;
  const decode = ({ text }: Fixture) => decodeStream(provider, [new TextEncoder().encode(text)]);

  describe('a stream', () => {
    const streams = fixtures('stream', '.sse');
    const responses = fixtures('chat', '.json');
    it('is among the fixtures', () => {
      assert.ok(streams.length > 0, 'put a stream.sse of the vendor’s bytes into the fixtures');
    });
    for (const fixture of streams) {
      itShows(
        it,
        { provider: name, feature: 'streams', says: 'verified' },
        `has OpenAI’s chunks: ${fixture.name}`,
        () => {
          const { chunks, complete } = decode(fixture);
          const outcome = readChunks(chunks);
          for (const chunk of chunks) kit.validate?.chunk?.(chunk);
          assertExpected(outcome, fixture);
          assert.ok(complete, 'it is complete');
          assert.ok(outcome.choices.every((choice) => choice.finish_reason !== null));
        },
      );
      it(`is declared complete by \`progress\`, with nothing relevant after that: ${fixture.name}`, () => {
        const { chunks, progress } = decodeDeclared(provider, new TextEncoder().encode(fixture.text));
        assert.ok(
          progress !== undefined,
          'the decoder has no `progress`: callers would wait two seconds for a vendor that leaves its socket open',
        );
        assert.notEqual(progress, 'open', 'at the end of the fixture `progress` is `finished`, `ending` or `complete`');
        assert.deepEqual(readChunks(chunks), readChunks(decode(fixture).chunks), 'what follows `complete` is dropped');
      });
      const pair = responses.find(({ name: file }) => file.slice('chat'.length, -'.json'.length) === suffixOf(fixture));
      if (pair) {
        const respond = () => wholeOutcome(provider.chat?.response(JSON.parse(pair.text), CALL)?.choices ?? []);
        it(`says as much as ${pair.name} if its text is the same: ${fixture.name}`, () => {
          const streamed = readChunks(decode(fixture).chunks).choices;
          const whole = respond();
          const textOf = (choices: readonly OutcomeChoice[]) => choices.map(({ content }) => content);
          if (isDeepStrictEqual(textOf(streamed), textOf(whole)) && textOf(whole).join('') !== '')
            assert.deepEqual(streamed.map(comparedOf), whole.map(comparedOf));
        });
      }
      tortureStream(subject, fixture);
    }

    for (const feature of FEATURES) {
      const read = (fixture: Fixture) => readChunks(decode(fixture).chunks);
      testFixtureFeature(subject, feature, { files: 'stream*.sse', fixtures: streams, read });
    }

    it('with nothing in it is not complete', () => {
      const { chunks, complete } = decodeStream(provider, []);
      assert.deepEqual([chunks, complete], [[], false]);
    });

    it('with an event that is not JSON fails', () => {
      const decoder = provider.chat?.stream(streamCall());
      const events = createEventReader().push(new TextEncoder().encode('data: {"half":\n\n'));
      assert.throws(() => events.map((event) => decoder?.push(event)), StreamFailure);
    });
  });
}

function suffixOf({ name }: Fixture): string {
  return name.slice('stream'.length, -'.sse'.length);
}

/** Returns the choices of a whole response in the form of a stream's. */
function wholeOutcome(choices: ChatResponse['choices']): readonly OutcomeChoice[] {
  return choices.map(({ index, message, logprobs, finish_reason }) => ({
    index,
    content: message.content ?? '',
    reasoning_content: message.reasoning_content ?? '',
    refusal: message.refusal ?? '',
    logprobs: readArray(readObject(logprobs)['content']) as OutcomeChoice['logprobs'],
    tool_calls: (message.tool_calls ?? []).map(({ id, function: called }) => ({ id, ...called })),
    finish_reason,
  }));
}

/** Ids and figures differ between two responses of a vendor. */
function comparedOf({ logprobs, tool_calls: calls, ...choice }: OutcomeChoice): object {
  return {
    ...choice,
    tokens: logprobs.map(({ token }) => token),
    calls: calls.map(({ name, arguments: text }) => [name, JSON.parse(text || '{}')]),
  };
}
