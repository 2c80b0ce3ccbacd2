import { expect } from 'chai';
import { ERRORS } from '../../../contract/errors.ts';
import { FAILURES, failureToError } from '../../../contract/failures.ts';
import type { FailureClass } from '../../../contract/provider.ts';
import { redact } from '../../../contract/redaction.ts';

const CANARIES = [
  'sk-proj-AbCdEf0123456789',
  'sk-abc***************wxyz',
  'tg_0123456789ab_secretsecretsecretsecret',
  'gsk_abcdefghijklmnop',
  'xai-abcdefghijklmnop',
  'AIzaSyA1234567890abcdefghijk',
  'AKIAIOSFODNN7EXAMPLE',
  '0123456789abcdef0123456789abcdef',
  'Bearer abcdefgh.ijklmnop',
  'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln',
  'org-Zx81kQpLmN',
  'proj_9aZ81kQpLmN',
  'arn:aws:iam::123456789012:user/bob',
  'projects/acme-7',
  'ops@corp.example',
  'https://user:pw@api.vendor.com/v1/chat?key=1',
  'redis://10.0.0.7:6379',
  'api.inner.vendor.com:8443',
  'gpu-7.svc.cluster.local',
  '10.1.2.3:8000',
  '[fd00::1]:8000',
  'localhost:11434',
];

describe('failures', () => {
  it('has one row for each class, with a code of the error table', () => {
    for (const row of Object.values(FAILURES)) expect(ERRORS).to.have.property(row.code);
    expect(Object.isFrozen(FAILURES) && Object.values(FAILURES).every(Object.isFrozen)).to.equal(true);
  });

  for (const [failure, code] of [
    ['authentication', 'provider_auth_failed'],
    ['billing', 'provider_quota_exhausted'],
    ['rate_limit', 'upstream_rate_limited'],
    ['overloaded', 'provider_overloaded'],
    ['upstream_error', 'provider_unavailable'],
    ['timeout', 'provider_timeout'],
  ] as const) {
    it(`hides the vendor’s message for ${failure}, and returns ${code}`, () => {
      const error = failureToError({ class: failure, message: `secret ${CANARIES.join(' ')}` }, 'openai');
      expect(error.code).to.equal(code);
      expect(error.message).to.match(/^The provider openai /);
      for (const canary of CANARIES) expect(error.message).not.to.include(canary);
      expect(error.message).not.to.include('secret');
    });
  }

  for (const [failure, code] of [
    ['invalid_request', 'invalid_request'],
    ['context_length', 'context_length_exceeded'],
    ['content_filter', 'content_filtered'],
    ['model_not_found', 'unsupported_model'],
  ] as const) {
    it(`shows the vendor’s message for ${failure}, redacted, and returns ${code}`, () => {
      const error = failureToError(
        { class: failure, message: 'max_tokens is too large for sk-abcdefghijkl', param: 'max_tokens' },
        'local',
      );
      expect(error).to.include({ code, param: 'max_tokens', message: 'local: max_tokens is too large for [redacted]' });
      expect(failureToError({ class: failure, message: '' }, 'local').message).to.match(/^local: .+\.$/);
    });
  }

  it('passes on the retry time', () => {
    expect(failureToError({ class: 'rate_limit', message: '', retryAfterMs: 2000 }, 'x').retryAfterMs).to.equal(2000);
  });

  it('never retries the caller’s own errors nor counts them against a provider', () => {
    for (const failure of ['invalid_request', 'context_length', 'content_filter'] satisfies FailureClass[]) {
      expect(FAILURES[failure]).to.include({ failover: false });
    }
  });

  describe('redacting', () => {
    for (const canary of CANARIES) {
      it(`removes ${canary}`, () => {
        const shown = redact(`Refused: "${canary}" (see ${canary}).`);
        expect(shown).to.not.include(canary);
        for (const part of canary.split(/[:/@ *]+/).filter((part) => part.length > 6))
          expect(shown).to.not.include(part);
        expect(shown).to.include('Refused: "').and.to.include('[redacted]');
      });
    }

    for (const plain of [
      'This model’s maximum context length is 8192 tokens, however you requested 9000.',
      'Unknown parameter: skip_special_tokens. Did you mean frequency_penalty?',
      "messages[0].content: 'user_message_content' is not of type 'string'",
      'model gpt-5.2-mini-2026-01-01 does not support temperature=0.7 (range 0.0-2.0)',
      'meta-llama/Llama-3.3-70B-Instruct needs api_version_parameter and response_format.json_schema',
    ]) {
      it(`keeps: ${plain}`, () => expect(redact(plain)).to.equal(plain));
    }

    it('puts everything on one line and cuts it at 500 characters', () => {
      expect(redact('a\r\nb\u0000c\u202ed')).to.equal('a b c d');
      expect(redact(`${'word '.repeat(1000)}`).length).to.be.at.most(501);
    });

    it('takes no longer for hostile text', () => {
      for (const text of [
        'a.'.repeat(1e6),
        'a@'.repeat(1e6),
        'http://'.repeat(1e6),
        '['.repeat(1e6),
        'sk-'.repeat(1e6),
      ]) {
        expect(redact(text).length).to.be.at.most(501);
      }
    });
  });
});
