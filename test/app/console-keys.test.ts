import { expect } from 'chai';
import { type Operator, startOperator } from '../support/gateways/operator.ts';
import { eventually } from '../support/wait.ts';

const SESSION = '/api/core/admin/console/session';

describe('a console session of a key', () => {
  let operator: Operator;
  before(async () => {
    operator = await startOperator({ server: { port: 0, trustProxy: true }, console: { remote: true } });
  });
  after(() => operator?.gateway.stop());

  const make = async (rights: object) => {
    const { status, body } = await operator.call('POST', '/keys', { user_id: 'eve', ...rights });
    expect(status, JSON.stringify(body)).to.equal(200);
    return { key: body.api_key as string, id: body.api_key_info.id as string };
  };
  const signIn = async (key: string, from: string): Promise<string> => {
    const { url } = operator.gateway;
    const headers = { authorization: `Bearer ${key}`, origin: url, 'x-forwarded-for': from };
    const response = await fetch(url + SESSION, { method: 'POST', headers });
    expect(response.status, await response.text()).to.equal(204);
    return response.headers.getSetCookie()[0]?.split(';')[0] ?? '';
  };
  const get = async (path: string, cookie: string, from: string) => {
    const response = await fetch(`${operator.gateway.url}/api/core/admin${path}`, {
      headers: { cookie, 'x-forwarded-for': from },
    });
    return { status: response.status, body: (await response.json()) as Record<string, unknown> };
  };

  it('keeps the addresses of the key (G63)', async () => {
    const { key } = await make({ role: 'viewer', addresses: ['203.0.113.0/24'] });
    const cookie = await signIn(key, '203.0.113.7');
    expect((await get('/targets', cookie, '203.0.113.9')).status).to.equal(200);
    expect((await get('/targets', cookie, '198.51.100.1')).status).to.equal(403);
    expect((await get('/console', cookie, '198.51.100.1')).body['user_id']).to.equal(null);
    expect((await get('/console', cookie, '203.0.113.9')).body['user_id']).to.equal('eve');
  });

  it('has the rights that the key has at each use, and not those of its beginning (G63)', async () => {
    const { key, id } = await make({ role: 'viewer', addresses: null });
    const cookie = await signIn(key, '203.0.113.7');
    expect((await get('/targets', cookie, '203.0.113.7')).status).to.equal(200);
    await operator.call('PATCH', `/keys/${id}`, { addresses: ['192.0.2.1'] });
    expect((await get('/targets', cookie, '203.0.113.7')).status).to.equal(403);
    await operator.call('PATCH', `/keys/${id}`, { addresses: null });
    expect((await get('/targets', cookie, '203.0.113.7')).status).to.equal(200);
    await operator.call('POST', `/keys/${id}/block`, {});
    expect((await get('/targets', cookie, '203.0.113.7')).status).to.equal(403);
    await operator.call('POST', `/keys/${id}/unblock`, {});
    await operator.call('POST', `/keys/${id}/revoke`, {});
    await eventually(async () => expect((await get('/targets', cookie, '203.0.113.7')).status).to.equal(401));
  });
});
