import { expect } from 'chai';
import { geminiFailure } from '../../../../plugins/providers/gemini/errors.ts';
import { jsonFixture } from '../../../support/codec.ts';

const error = (code: number, status: string, message = 'x'): object => ({ error: { code, status, message } });

describe('gemini errors', () => {
  for (const [title, status, body, expected] of [
    ['a bad key, which is a 400 here', 400, jsonFixture('gemini/errors/api-key-invalid.json'), 'authentication'],
    ['a missing key', 403, error(403, 'PERMISSION_DENIED'), 'authentication'],
    ['a bad token', 401, error(401, 'UNAUTHENTICATED'), 'authentication'],
    ['an invalid argument', 400, error(400, 'INVALID_ARGUMENT'), 'invalid_request'],
    ['a region without the free tier', 400, error(400, 'FAILED_PRECONDITION'), 'billing'],
    ['prepaid credit used up', 402, error(402, 'FAILED_PRECONDITION'), 'billing'],
    ['an unknown model', 404, error(404, 'NOT_FOUND'), 'model_not_found'],
    ['a quota', 429, error(429, 'RESOURCE_EXHAUSTED'), 'rate_limit'],
    ['a prompt that is too long', 400, jsonFixture('gemini/errors/context.json'), 'context_length'],
    ['a fault', 500, error(500, 'INTERNAL'), 'upstream_error'],
    ['an overload', 503, error(503, 'UNAVAILABLE'), 'overloaded'],
    ['a deadline', 504, error(504, 'DEADLINE_EXCEEDED'), 'timeout'],
    ['a cancellation nobody asked for', 499, error(499, 'CANCELLED'), 'upstream_error'],
    ['a proxy’s page', 502, '<html>Bad Gateway</html>', 'upstream_error'],
    ['a proxy’s limit', 429, 'slow down', 'rate_limit'],
    ['a body that is too large', 413, '', 'invalid_request'],
    ['a status name that is not one', 500, error(500, 'constructor'), 'upstream_error'],
  ] as const) {
    it(`classifies ${title} as ${expected}`, () => {
      expect(geminiFailure(status, body, {}).class).to.equal(expected);
    });
  }

  it('reads the wait from RetryInfo, also inside an array', () => {
    expect(geminiFailure(429, jsonFixture('gemini/errors/rate-limit.json'), {}).retryAfterMs).to.equal(27_000);
  });

  it('waits long for a day’s quota, which tells no time', () => {
    expect(geminiFailure(429, jsonFixture('gemini/errors/daily-quota.json'), {}).retryAfterMs).to.equal(3_600_000);
  });

  it('names no wait where the vendor names none', () => {
    expect(geminiFailure(429, error(429, 'RESOURCE_EXHAUSTED'), {})).to.not.have.property('retryAfterMs');
  });

  it('shows a status where the body is no error of the vendor’s', () => {
    expect(geminiFailure(502, '<html>secret host</html>', {}).message).to.equal(
      'The provider answered with status 502.',
    );
  });
});
