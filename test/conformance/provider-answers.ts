import assert from 'node:assert/strict';
import { type ChatResponse, StreamFailure } from '../../core/index.ts';
import { itShows } from './cells.ts';
import { assertIncludes, assertResponse } from './provider-shape.ts';
import { CALL, type Fixture, type ProviderSubject } from './provider-subject.ts';
import { findRunner } from './runner.ts';

/** What an answer may show, and whether it does. */
const FEATURES: readonly (readonly [string, (response: ChatResponse) => boolean])[] = [
  ['tool calls', ({ choices }) => choices.some(({ message }) => message.tool_calls !== undefined)],
  ['parallel tool calls', ({ choices }) => choices.some(({ message }) => (message.tool_calls?.length ?? 0) > 1)],
  ['reasoning content', ({ choices }) => choices.some(({ message }) => Boolean(message.reasoning_content))],
  ['log probabilities', ({ choices }) => choices.some(({ logprobs }) => logprobs !== null)],
  ['usage', ({ usage }) => usage !== undefined],
  ['cached tokens', ({ usage }) => (usage?.prompt_tokens_details?.cached_tokens ?? 0) > 0],
  ['reasoning tokens', ({ usage }) => (usage?.completion_tokens_details?.reasoning_tokens ?? 0) > 0],
];

/** Whole answers come out in OpenAI's shape; failures that came with status 200 are found. */
export function testAnswers({ name, provider: { chat }, kit, fixtures }: ProviderSubject): void {
  const { describe, it } = findRunner();
  if (!chat) return;
  const read = ({ text }: Fixture) => chat.response(JSON.parse(text), CALL);

  describe('an answer', () => {
    const answers = fixtures('chat', '.json');
    it('is among the fixtures', () => {
      assert.ok(answers.length > 0, 'put a chat.json of the vendor’s bytes into the fixtures');
    });
    for (const fixture of answers) {
      itShows(
        it,
        { provider: name, feature: 'answers', says: 'verified' },
        `has OpenAI’s shape: ${fixture.name}`,
        () => {
          const response = read(fixture);
          assertResponse(response);
          kit.validate?.response?.(response);
          if (fixture.expected) assertIncludes(response, fixture.expected);
          assert.deepEqual(read(fixture), response, 'the same bytes give the same answer');
        },
      );
      for (const [feature, shows] of FEATURES) {
        if (!shows(read(fixture))) continue;
        itShows(it, { provider: name, feature, says: 'verified' }, `shows ${feature}: ${fixture.name}`, () => {
          assert.ok(shows(read(fixture)));
        });
      }
    }

    for (const fixture of fixtures('failure', '.json')) {
      itShows(
        it,
        { provider: name, feature: 'failures with status 200', says: 'verified' },
        `is a failure: ${fixture.name}`,
        () => {
          assertFailure(() => read(fixture), fixture);
        },
      );
    }

    const GARBAGE: readonly unknown[] = [null, 1, 'text', [], {}, { choices: 1 }, { choices: null }, { error: {} }];
    for (const body of GARBAGE) {
      it(`that is ${JSON.stringify(body)} is a failure, not a crash`, () => {
        assert.throws(() => chat.response(body, CALL), StreamFailure);
      });
    }
  });
}

/** Asserts that reading a fixture throws the failure that its expectation names. */
export function assertFailure(read: () => unknown, { expected }: Fixture): void {
  assert.throws(read, (error: unknown) => {
    assert.ok(error instanceof StreamFailure, `a StreamFailure, not ${String(error)}`);
    if (expected) assertIncludes(error.failure, expected);
    return true;
  });
}
