import { expect } from 'chai';
import { anthropicFailure } from '../../../../plugins/providers/anthropic/errors.ts';
import { jsonFixture } from '../../../support/codec.ts';

const error = (type: string, message = 'x'): object => ({
  type: 'error',
  error: { type, message },
  request_id: 'req_1',
});

describe('anthropic errors', () => {
  for (const [title, status, body, expected] of [
    ['an invalid request', 400, error('invalid_request_error'), 'invalid_request'],
    [
      'a credit balance that is too low, which is a 400 here',
      400,
      jsonFixture('anthropic/errors/credit.json'),
      'billing',
    ],
    ['a prompt that is too long', 400, jsonFixture('anthropic/errors/context.json'), 'context_length'],
    [
      'a filtered answer',
      400,
      error('invalid_request_error', 'Output blocked by content filtering policy'),
      'content_filter',
    ],
    ['a bad key', 401, error('authentication_error', 'invalid x-api-key'), 'authentication'],
    ['billing', 402, error('billing_error'), 'billing'],
    ['a missing permission', 403, error('permission_error'), 'authentication'],
    ['an unknown model', 404, error('not_found_error', 'model: claude-x'), 'model_not_found'],
    ['a conflict', 409, error('conflict_error'), 'upstream_error'],
    ['a body that is too large', 413, error('request_too_large'), 'context_length'],
    ['a body that is too large, told by a proxy', 413, '<html>413</html>', 'context_length'],
    ['a rate limit', 429, error('rate_limit_error'), 'rate_limit'],
    ['a spend limit, which no waiting mends', 429, jsonFixture('anthropic/errors/spend-limit.json'), 'billing'],
    ['a fault', 500, error('api_error'), 'upstream_error'],
    ['a timeout', 504, error('timeout_error'), 'timeout'],
    ['an overload', 529, error('overloaded_error'), 'overloaded'],
    ['an overload without a body', 529, '', 'overloaded'],
    ['a type that is not one', 500, error('constructor'), 'upstream_error'],
  ] as const) {
    it(`classifies ${title} as ${expected}`, () => {
      expect(anthropicFailure(status, body, {}).class).to.equal(expected);
    });
  }

  it('reads the wait from retry-after', () => {
    expect(anthropicFailure(429, error('rate_limit_error'), { 'retry-after': '12' }).retryAfterMs).to.equal(12_000);
  });
});
