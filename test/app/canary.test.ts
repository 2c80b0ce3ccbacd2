import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { AUDIENCE, createSigner, ISSUER, type TestSigner } from '../support/identity/tokens.ts';
import { completion, usageOf } from '../support/vendors/openai-vendor.ts';
import {
  respondWith,
  type ScriptedUpstream,
  SSE_HEAD,
  sse,
  startScriptedUpstream,
} from '../support/vendors/scripted-upstream.ts';

const CHAT = '/v1/chat/completions';
const OPERATOR_KEY = 'sk-canaryOperatorKey0123456789abcdef';
const PROMPT = 'canary-prompt-my-diagnosis-is-private';
const REPLY = 'canary-reply-you-are-well';
const VENDOR_BODY = {
  error: {
    message: `Bad key ${OPERATOR_KEY} of org-canaryOrg123`,
    type: 'invalid_request_error',
    code: 'invalid_api_key',
  },
};

const piece = (delta: object, finish_reason: string | null = null) => ({
  id: 'c',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [{ index: 0, delta, finish_reason }],
});
const COMPLETION = completion(REPLY, { usage: usageOf(3, 2) });

/**
 * Requests in the other formats, each with the prompt. None is stored, because a stored response contains the prompt by
 * design.
 */
const GEMINI_BODY = { contents: [{ role: 'user', parts: [{ text: PROMPT }] }] };
const WAYS_IN: readonly (readonly [path: string, body: object])[] = [
  ['/v1/messages?beta=true', { model: 'vendor/m', max_tokens: 9, messages: [{ role: 'user', content: PROMPT }] }],
  ['/v1/messages/count_tokens', { model: 'vendor/m', messages: [{ role: 'user', content: PROMPT }] }],
  ['/v1/responses', { model: 'vendor/m', input: PROMPT, store: false }],
  ['/v1/responses/input_tokens', { model: 'vendor/m', input: PROMPT }],
  ['/v1/completions', { model: 'vendor/m', prompt: PROMPT }],
  ['/v1beta/models/vendor/m:generateContent', GEMINI_BODY],
  ['/v1beta/models/vendor/m:streamGenerateContent?alt=sse', GEMINI_BODY],
  ['/v1beta/models/vendor/m:countTokens', GEMINI_BODY],
];

describe('secrets and texts', () => {
  let upstream: ScriptedUpstream;
  let gateway: TestGateway;
  let signer: TestSigner;
  let token: string;
  let secondKey: string;
  /** Error responses with their headers. Complete responses contain the reply and are collected separately. */
  const errors: string[] = [];

  const seen = async (response: Response): Promise<void> => {
    errors.push(JSON.stringify([...response.headers]), await response.text());
  };
  /**
   * Calls one path with every kind of failure: vendor errors, malformed bodies, and keys in each place where clients
   * put them.
   */
  const callBadly = async (where: string, body: object): Promise<void> => {
    const [path = '', query = ''] = where.split('?');
    const keyed = (key: string) => `${path}?${query}&key=${key}`;
    const none = { authorization: '' };
    upstream.script(respondWith(200, COMPLETION));
    await (await gateway.post(where, body)).text();
    await (await gateway.post(keyed(gateway.key), body, none)).text();
    for (const status of [400, 401, 500]) {
      upstream.script(respondWith(status, VENDOR_BODY, { 'x-canary-header': OPERATOR_KEY }));
      await seen(await gateway.post(where, { ...body, stream: true }));
    }
    upstream.script(sse(piece({ role: 'assistant', content: 'x' }), { error: VENDOR_BODY.error }));
    await seen(await gateway.post(where, { ...body, stream: true }));
    await seen(await gateway.post(where, JSON.stringify(body).slice(0, -1)));
    await seen(await gateway.post(keyed(`${secondKey}x`), body, none));
    await seen(await gateway.post(keyed(token), body, none));
    await seen(await gateway.post(keyed(secondKey), body));
    await seen(await gateway.post(where, body, { ...none, 'x-goog-api-key': `${secondKey}x` }));
    await seen(await gateway.post(where, body, { ...none, 'x-api-key': `${token}x` }));
    await seen(await gateway.get(keyed(secondKey), none));
    await seen(await gateway.post(`${path}/nothing?key=${secondKey}`, body, none));
    await seen(await gateway.post(where, body, { ...none, referer: `http://x/?key=${secondKey}` }));
  };
  const requestOf = (rest: object = {}) => ({
    model: 'vendor/m',
    messages: [{ role: 'user', content: PROMPT }],
    ...rest,
  });

  before(async () => {
    upstream = await startScriptedUpstream();
    signer = await createSigner('canary');
    gateway = await startGateway(
      {
        store: 'sqlite:./data',
        providers: {
          echo: {},
          vendor: { plugin: 'openai-compatible', apiKey: OPERATOR_KEY, baseUrl: `${upstream.url}/v1`, models: ['*'] },
        },
        auth: { 'api-key': { bootstrap: true }, jwt: { issuer: ISSUER, audience: AUDIENCE, jwksFile: './jwks.json' } },
      },
      { level: 'debug', files: { 'jwks.json': JSON.stringify({ keys: [signer.publicJwk] }) } },
    );
    token = await signer.sign();
    const asToken = { authorization: `Bearer ${token}` };
    const made = await gateway.post('/api/core/api_keys/create', { name: 'canary' }, asToken);
    secondKey = ((await made.json()) as { api_key: string }).api_key;

    upstream.script(respondWith(200, COMPLETION));
    await (await gateway.post(CHAT, requestOf())).text();
    await (await gateway.post(CHAT, requestOf(), { authorization: `Bearer ${secondKey}` })).text();
    upstream.script(sse(piece({ role: 'assistant', content: REPLY }), piece({}, 'stop'), '[DONE]'));
    await (await gateway.post(CHAT, requestOf({ stream: true }))).text();
    for (const status of [400, 401, 404, 429, 500]) {
      upstream.script(respondWith(status, VENDOR_BODY, { 'x-canary-header': OPERATOR_KEY }));
      await seen(await gateway.post(CHAT, requestOf()));
      await seen(await gateway.post(CHAT, requestOf({ stream: true })));
    }
    upstream.script(async (wire) => {
      await wire.send(SSE_HEAD);
      wire.reset();
    });
    await seen(await gateway.post(CHAT, requestOf({ stream: true })));
    upstream.script(`HTTP/1.1 200 OK\r\ncontent-length: 40\r\n\r\nnot json ${OPERATOR_KEY}`.padEnd(100));
    await seen(await gateway.post(CHAT, requestOf()));
    await seen(await gateway.post(CHAT, requestOf({ temperature: 9 })));
    await seen(await gateway.post(CHAT, `{"model":"vendor/m","messages":[{"content":"${PROMPT}"`));
    await seen(await gateway.post(CHAT, requestOf(), { authorization: `Bearer ${secondKey}x` }));
    await seen(await gateway.post(CHAT, requestOf(), { authorization: `Bearer ${token}x` }));
    await seen(await gateway.post(CHAT, requestOf(), { 'x-api-key': secondKey }));
    for (const [where, body] of WAYS_IN) await callBadly(where, body);
    await seen(await gateway.get(`/nowhere/${PROMPT.slice(0, 3)}`, asToken));
    await seen(await gateway.get('/metrics'));
    await seen(await gateway.get('/openapi.json'));
    await seen(await gateway.get('/readyz'));
    await seen(await gateway.get('/api/core/usage', asToken));
  });
  after(async () => {
    await gateway.stop();
    await upstream.close();
  });

  /** Reads all files below a folder as text. */
  function dump(folder: string): string {
    return readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(path.join(entry.parentPath, entry.name), 'latin1'))
      .join('\n');
  }

  const SECRETS: readonly (readonly [name: string, secret: () => string])[] = [
    ['the operator’s key', () => OPERATOR_KEY],
    ['a caller’s key', () => gateway.key],
    ['the secret half of a key that was made over HTTP', () => secondKey.slice(16)],
    ['a token', () => token],
    ['the signature of a token', () => token.split('.')[2] ?? ''],
    ['a prompt', () => PROMPT],
    ['a reply', () => REPLY],
  ];
  const SINKS: readonly (readonly [name: string, text: () => string])[] = [
    ['the log at level debug', () => gateway.logText()],
    ['errors, metrics and documents', () => errors.join('\n')],
    ['the files of the store', () => dump(path.join(gateway.folder, 'data'))],
  ];
  for (const [sink, text] of SINKS)
    for (const [name, secret] of SECRETS)
      it(`never leave ${name} in ${sink}`, () => {
        expect(secret()).to.have.length.greaterThan(15);
        expect(text()).to.have.length.greaterThan(100);
        expect(text().includes(secret())).to.equal(false);
      });

  it('are hidden from callers, as are the vendor’s host, path and organisation', () => {
    // The code samples in the OpenAPI document contain the gateway's own address.
    const reported = errors.join('\n').replaceAll(gateway.url, '');
    expect(reported).not.to.match(/127\.0\.0\.1:\d+|org-canary|x-canary|\.ts:\d+|node_modules/);
  });
});
