import { expect } from 'chai';
import { type Operator, startOperator } from '../support/gateways/operator.ts';

const MESSAGES = [{ role: 'user', content: 'Hi' }];

describe('the addresses of a key', () => {
  let operator: Operator;
  before(async () => {
    operator = await startOperator({ server: { port: 0, trustProxy: true } });
  });
  after(() => operator.gateway.stop());

  const make = async (addresses: readonly string[] | null): Promise<{ text: string; id: string }> => {
    const { status, body } = await operator.call('POST', '/keys', { user_id: 'ann', addresses });
    expect(status, JSON.stringify(body)).to.equal(200);
    expect(body.api_key_info.addresses).to.deep.equal(addresses);
    return { text: body.api_key, id: body.api_key_info.id };
  };
  /** Status of a chat with a key from an address. */
  const chat = async (key: string, from: string, stream = false) => {
    const response = await operator.gateway.post(
      '/v1/chat/completions',
      { model: 'echo/echo', messages: MESSAGES, stream },
      { authorization: `Bearer ${key}`, 'x-forwarded-for': from },
    );
    await response.text();
    return { status: response.status };
  };
  const errorOf = async (key: string, from: string): Promise<{ code?: string; message?: string }> => {
    const response = await operator.gateway.post(
      '/v1/chat/completions',
      { model: 'echo/echo', messages: MESSAGES },
      { authorization: `Bearer ${key}`, 'x-forwarded-for': from },
    );
    return ((await response.json()) as { error: object }).error;
  };

  it('limit its use to them and their networks, on a stream too (E71)', async () => {
    const { text } = await make(['203.0.113.7', '10.0.0.0/8', '2001:db8::/32']);
    for (const stream of [false, true]) {
      for (const from of ['203.0.113.7', '10.255.0.1', '2001:db8:1::9', '::ffff:10.0.0.1'])
        expect((await chat(text, from, stream)).status, from).to.equal(200);
      for (const from of ['203.0.113.8', '11.0.0.1', '2001:db9::1', '::ffff:11.0.0.1', '127.0.0.1'])
        expect((await chat(text, from, stream)).status, from).to.equal(403);
    }
    const refused = await errorOf(text, '203.0.113.8');
    expect(refused.code).to.equal('permission_denied');
    expect(refused.message).to.include('not allowed from the address').and.not.include('203.0.113');
  });

  it('carry over to a rotated key, and are changed or removed by an operator (E71)', async () => {
    const { id } = await make(['10.0.0.0/8']);
    const { body } = await operator.call('POST', `/keys/${id}/rotate`, {});
    const next = body.api_key as string;
    expect((await chat(next, '192.0.2.1')).status).to.equal(403);
    const { id: nextId } = body.api_key_info;
    const changed = await operator.call('PATCH', `/keys/${nextId}`, { addresses: ['192.0.2.0/24'] });
    expect([changed.status, changed.body.addresses]).to.deep.equal([200, ['192.0.2.0/24']]);
    expect((await chat(next, '192.0.2.1')).status).to.equal(200);
    expect((await chat(next, '10.0.0.1')).status).to.equal(403);
    await operator.call('PATCH', `/keys/${nextId}`, { addresses: null });
    expect((await chat(next, '10.0.0.1')).status).to.equal(200);
  });

  it('are set on the command line (E71)', async () => {
    const { gateway } = operator;
    const { api_key: key, api_key_info: info } = await gateway.command<{
      api_key: string;
      api_key_info: { addresses: readonly string[] };
    }>('keys', 'create', '--user', 'bob', '--addresses', '10.1.0.0/16, 2001:DB8::1');
    expect(info.addresses).to.deep.equal(['10.1.0.0/16', '2001:db8::1']);
    expect((await chat(key, '2001:db8::1')).status).to.equal(200);
    expect((await chat(key, '10.2.0.1')).status).to.equal(403);
  });

  for (const [wrong, why] of [
    ['office.example', 'a name'],
    ['10.0.0.0/33', 'more bits than there are'],
    ['2001:db8::/129', 'more bits than there are'],
    ['10.0.0', 'half an address'],
    ['10.0.0.0/', 'no length'],
    ['*', 'a star'],
  ] as const)
    it(`are refused with the valid form: ${why}, "${wrong}" (E71)`, async () => {
      const { status, body } = await operator.call('POST', '/keys', { user_id: 'ann', addresses: ['10.0.0.1', wrong] });
      expect([status, body.error.code, body.error.param]).to.deep.equal([400, 'invalid_request', 'addresses[1]']);
      expect(body.error.message).to.include(wrong).and.include('Use 203.0.113.7, 10.0.0.0/8 or 2001:db8::/32');
    });
});
