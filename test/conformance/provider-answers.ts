import assert from 'node:assert/strict';
import { type ChatResponse, StreamFailure } from '../../contract/index.ts';
import { itShows } from './cells.ts';
import { deepFreeze } from './deep-freeze.ts';
import { type FixtureFeature, testFixtureFeature } from './provider-features.ts';
import { assertExpected, assertResponse } from './provider-shape.ts';
import { CALL, type Fixture, type ProviderSubject } from './provider-subject.ts';
import { findRunner } from './runner.ts';

/** Features of a response, and their detection. */
const FEATURES: readonly FixtureFeature<ChatResponse>[] = [
  {
    name: 'tool calls',
    lack: 'tool calls',
    shows: ({ choices }) => choices.some(({ message }) => message.tool_calls !== undefined),
  },
  {
    name: 'parallel tool calls',
    lack: 'parallel tool calls',
    shows: ({ choices }) => choices.some(({ message }) => (message.tool_calls?.length ?? 0) > 1),
  },
  {
    name: 'reasoning content',
    lack: 'reasoning content',
    shows: ({ choices }) => choices.some(({ message }) => Boolean(message.reasoning_content)),
  },
  {
    name: 'log probabilities',
    lack: 'log probabilities',
    shows: ({ choices }) => choices.some(({ logprobs }) => logprobs !== null),
  },
  { name: 'usage', shows: ({ usage }) => usage !== undefined },
  {
    name: 'cached tokens',
    lack: 'cached tokens',
    shows: ({ usage }) => (usage?.prompt_tokens_details?.cached_tokens ?? 0) > 0,
  },
  {
    name: 'reasoning tokens',
    lack: 'reasoning tokens',
    shows: ({ usage }) => (usage?.completion_tokens_details?.reasoning_tokens ?? 0) > 0,
  },
];

/** Tests that JSON responses have OpenAI's shape and show the vendor's features. */
export function testResponses(subject: ProviderSubject): void {
  const { describe, it } = findRunner();
  const {
    name,
    provider: { chat },
    kit,
    fixtures,
  } = subject;
  if (!chat) return;
  const read = ({ text }: Fixture) => chat.response(deepFreeze(JSON.parse(text)), CALL);

  describe('a response', () => {
    const responses = fixtures('chat', '.json');
    it('is among the fixtures', () => {
      assert.ok(responses.length > 0, 'put a chat.json of the vendor’s bytes into the fixtures');
    });
    for (const fixture of responses) {
      itShows(
        it,
        { provider: name, feature: 'answers', says: 'verified' },
        `has OpenAI’s shape: ${fixture.name}`,
        () => {
          const response = read(fixture);
          assertResponse(response);
          kit.validate?.response?.(response);
          assertExpected(response, fixture);
          assert.deepEqual(read(fixture), response, 'the same bytes give the same answer');
        },
      );
    }
    for (const feature of FEATURES) {
      testFixtureFeature(subject, feature, { files: 'chat*.json', fixtures: responses, read });
    }

    const GARBAGE: readonly unknown[] = [null, 1, 'text', [], {}, { choices: 1 }, { choices: null }, { error: {} }];
    for (const body of GARBAGE) {
      it(`that is ${JSON.stringify(body)} is a failure, not a crash`, () => {
        assert.throws(() => chat.response(body, CALL), StreamFailure);
      });
    }
  });
}
