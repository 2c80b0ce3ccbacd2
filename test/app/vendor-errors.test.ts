import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';

interface Case {
  readonly title: string;
  readonly status: number;
  readonly body: unknown;
  readonly expected: { readonly status: number; readonly code: string };
  readonly says: RegExp;
  /** True if the next target of a list is tried. */
  readonly goesOn: boolean;
}

const openai = (message: string, code?: string) => ({ error: { message, type: 'invalid_request_error', code } });
const anthropic = (type: string, message: string) => ({ type: 'error', error: { type, message } });
const google = (code: number, status: string, message: string) => ({ error: { code, status, message } });

const REGION = 'Country, region, or territory not supported';
const CASES: Readonly<Record<string, readonly Case[]>> = {
  openai: [
    {
      title: 'a body that is too large',
      status: 413,
      body: openai('The body is over 25 MB.'),
      expected: { status: 413, code: 'request_too_large' },
      says: /^openai: The body is over 25 MB\.$/,
      goesOn: true,
    },
    {
      title: 'a field that it cannot process',
      status: 422,
      body: { detail: [{ loc: ['body', 'seed'], msg: 'value is not a valid integer' }] },
      expected: { status: 400, code: 'invalid_request' },
      says: /value is not a valid integer/,
      goesOn: false,
    },
    {
      title: 'a region that it does not serve',
      status: 403,
      body: openai(REGION, 'unsupported_country_region_territory'),
      expected: { status: 403, code: 'permission_denied' },
      says: new RegExp(`^openai: ${REGION}$`),
      goesOn: true,
    },
    {
      title: 'a 403 for a wrong key',
      status: 403,
      body: openai('Incorrect API key provided', 'invalid_api_key'),
      expected: { status: 503, code: 'provider_auth_failed' },
      says: /rejected its configured key/,
      goesOn: true,
    },
    {
      title: 'a 403 without a word',
      status: 403,
      body: '',
      expected: { status: 403, code: 'permission_denied' },
      says: /^openai: the request is not allowed for its account there\./,
      goesOn: true,
    },
    {
      title: 'a file that does not exist',
      status: 404,
      body: openai('No such File object: file-7'),
      expected: { status: 404, code: 'not_found' },
      says: /^openai: No such File object: file-7$/,
      goesOn: true,
    },
    {
      title: 'a path that does not exist',
      status: 404,
      body: '<html><body>nginx</body></html>',
      expected: { status: 404, code: 'not_found' },
      says: /check the `baseUrl`/,
      goesOn: true,
    },
    {
      title: 'a model that does not exist',
      status: 404,
      body: openai('The model `m` does not exist'),
      expected: { status: 404, code: 'unsupported_model' },
      says: /The model `m` does not exist/,
      goesOn: true,
    },
  ],
  anthropic: [
    {
      title: 'a body that is too large',
      status: 413,
      body: anthropic('request_too_large', 'Request exceeds the maximum size'),
      expected: { status: 413, code: 'request_too_large' },
      says: /^anthropic: Request exceeds the maximum size$/,
      goesOn: true,
    },
    {
      title: 'a feature that the account does not have',
      status: 403,
      body: anthropic('permission_error', 'Your account may not use fast mode'),
      expected: { status: 403, code: 'permission_denied' },
      says: /^anthropic: Your account may not use fast mode$/,
      goesOn: true,
    },
    {
      title: 'a file that does not exist',
      status: 404,
      body: anthropic('not_found_error', 'File not found: file_1'),
      expected: { status: 404, code: 'not_found' },
      says: /File not found/,
      goesOn: true,
    },
    {
      title: 'a model that does not exist',
      status: 404,
      body: anthropic('not_found_error', 'model: claude-9'),
      expected: { status: 404, code: 'unsupported_model' },
      says: /model: claude-9/,
      goesOn: true,
    },
  ],
  gemini: [
    {
      title: 'a body that is too large',
      status: 413,
      body: google(413, 'INVALID_ARGUMENT', 'Request payload size exceeds the limit'),
      expected: { status: 413, code: 'request_too_large' },
      says: /payload size exceeds/,
      goesOn: true,
    },
    {
      title: 'a permission that the account does not have',
      status: 403,
      body: google(403, 'PERMISSION_DENIED', "Permission denied on '//x.googleapis.com/projects/acme-prod-7/models/m'"),
      expected: { status: 403, code: 'permission_denied' },
      says: /^gemini: Permission denied on '(?!.*acme-prod-7)/,
      goesOn: true,
    },
    {
      title: 'a model that does not exist',
      status: 404,
      body: google(404, 'NOT_FOUND', 'models/gemini-9 is not found for API version v1beta'),
      expected: { status: 404, code: 'unsupported_model' },
      says: /gemini-9 is not found/,
      goesOn: true,
    },
  ],
};

describe('G27: an error of a vendor', () => {
  let upstream: ScriptedUpstream;
  let gateway: TestGateway;
  let refusal: Case;

  before(async () => {
    upstream = await startScriptedUpstream((wire) =>
      wire.send(respondWith(refusal.status, refusal.body as object, { 'retry-after': '7' })),
    );
    const vendor = { baseUrl: upstream.url, apiKey: 'sk-local-key', models: ['*'] };
    gateway = await startGateway({
      providers: { openai: vendor, anthropic: vendor, gemini: vendor, echo: {} },
      models: Object.fromEntries(Object.keys(CASES).map((name) => [`list-${name}`, [`${name}/m`, 'echo/echo']])),
    });
  });
  after(async () => {
    await gateway.stop();
    await upstream.close();
  });
  const chat = (model: string) =>
    gateway.post('/v1/chat/completions', { model, max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] });

  for (const [provider, cases] of Object.entries(CASES))
    for (const each of cases)
      it(`of ${provider} about ${each.title} is ${each.expected.status} ${each.expected.code}`, async () => {
        refusal = each;
        const response = await chat(`${provider}/m`);
        const { error } = (await response.json()) as { error: { code: string; message: string } };
        expect({ status: response.status, code: error.code }).to.deep.equal(each.expected);
        expect(error.message).to.match(each.says);
        expect(response.headers.get('retry-after')).to.equal(null);
        if (response.status === 503) expect(response.headers.get('x-should-retry')).to.equal('false');
        expect((await chat(`list-${provider}`)).status).to.equal(each.goesOn ? 200 : each.expected.status);
      });

  it('about its own key, balance or a missing key asks clients not to retry', async () => {
    refusal = { ...(CASES['openai']?.[0] as Case), status: 429, body: openai('Pay', 'insufficient_quota') };
    const response = await chat('openai/m');
    expect(response.status).to.equal(503);
    expect(response.headers.get('x-should-retry')).to.equal('false');
    const bare = await startGateway({ providers: { openai: { apiKey: '', models: ['*'] } } });
    try {
      const missing = await bare.post('/v1/chat/completions', {
        model: 'openai/m',
        messages: [{ role: 'user', content: 'Hi' }],
      });
      expect(missing.status).to.equal(503);
      expect(missing.headers.get('x-should-retry')).to.equal('false');
    } finally {
      await bare.stop();
    }
  });
});
