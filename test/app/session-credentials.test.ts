import { expect } from 'chai';
import { bodyOf } from '../support/clients/browser.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';

/** Third-party plugin that accepts a header as a session on every request. */
const PLUGIN = `export default {
  name: 'people',
  kind: 'auth',
  apiVersion: 1,
  credentials: ['session'],
  isCredential: () => false,
  setup(api) {
    api.hook('authenticate', ({ headers }) => {
      const userId = headers['x-person'];
      return userId && { credential: 'session', userId, account: userId, isAdmin: userId === 'ann' };
    });
  },
};`;
const ANN = { 'x-person': 'ann', 'content-type': 'application/json' };
const CHAT = JSON.stringify({ model: 'echo/echo', messages: [{ role: 'user', content: 'Hi' }] });

describe('a plugin’s session', () => {
  let gateway: TestGateway;
  afterEach(() => gateway.stop());

  const start = async (auth: object): Promise<void> => {
    const files = { 'people.mjs': PLUGIN };
    gateway = await startGateway({ auth: { ...auth, people: { plugin: './people.mjs' } } }, { files });
  };
  const send = async (method: string, path: string, headers: Record<string, string>, body?: string) => {
    const response = await fetch(gateway.url + path, { method, headers, ...(body !== undefined && { body }) });
    return { status: response.status, body: await bodyOf(response) };
  };

  it('is a credential on operators’ routes, whose changes are audited like those of the console', async () => {
    await start({ 'api-key': {} });
    expect((await send('POST', '/api/core/admin/users/zoe/block', ANN)).status).to.equal(200);
    const { body } = await send('GET', '/api/core/admin/audit?subject=zoe', ANN);
    expect(body.data[0].actor).to.include({ via: 'console', user_id: 'ann' });
  });

  it('pays for no call and manages no keys', async () => {
    await start({ 'api-key': {} });
    for (const [method, path, body] of [
      ['POST', '/v1/chat/completions', CHAT],
      ['POST', '/api/core/echo/chat/completions', CHAT],
      ['GET', '/v1/models', undefined],
    ] as const)
      expect([path, (await send(method, path, ANN, body)).body.error.code]).to.deep.equal([path, 'invalid_api_key']);
    expect((await send('GET', '/api/core/api_keys', ANN)).body.error.code).to.equal('feature_disabled');
  });

  it('is refused on operators’ routes for a person who is not an operator', async () => {
    await start({ 'api-key': {} });
    const { body } = await send('GET', '/api/core/admin/audit', { 'x-person': 'bob' });
    expect(body.error.code).to.equal('permission_denied');
  });

  it('opens operators’ routes also without keys and tokens, with instructions to sign in', async () => {
    await start({ 'api-key': false });
    expect((await send('GET', '/api/core/admin/audit', ANN)).status).to.equal(200);
    expect((await send('GET', '/api/core/admin/audit', {})).body.error.message).to.include('sign in with a browser');
    expect((await send('POST', '/v1/chat/completions', ANN, CHAT)).body.error.code).to.equal('feature_disabled');
  });
});
