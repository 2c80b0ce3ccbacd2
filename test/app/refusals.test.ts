import { expect } from 'chai';
import type { AuditChange } from '../../contract/index.ts';
import { createRefusals, type Refusal } from '../../plugins/policies/kit/refusals.ts';
import { type Operator, startOperator } from '../support/gateways/operator.ts';
import { eventually } from '../support/wait.ts';

const ADMIN = '/api/core/admin';

interface Entry {
  readonly action: string;
  readonly subject: string;
  readonly actor: Record<string, unknown>;
  readonly after: Record<string, unknown>;
}

describe('the audit log of refusals', () => {
  let operator: Operator;
  beforeEach(async () => {
    operator = await startOperator({ policies: { metrics: { auth: 'admin' } } });
  });
  afterEach(() => operator.gateway.stop());

  const send = async (path: string, bearer: string, method = 'GET'): Promise<number> => {
    const headers = { authorization: `Bearer ${bearer}`, origin: operator.gateway.url };
    const response = await fetch(operator.gateway.url + path, { method, headers });
    await response.text();
    return response.status;
  };
  const entries = (count: number): Promise<readonly Entry[]> =>
    eventually(async () => {
      const { data } = (await operator.call('GET', '/audit')).body as { data: readonly Entry[] };
      const found = data.filter(({ action }) => action.endsWith('.refused'));
      expect(found).to.have.lengthOf(count);
      return found;
    });

  it('contains the caller, missing scope, route and address of a refusal (E47)', async () => {
    const { gateway } = operator;
    const words = ['keys', 'create', '--user', 'eve', '--scope', 'usage:read'];
    const { api_key: key } = await gateway.command<{ api_key: string }>(...words);
    expect(await send(`${ADMIN}/keys/x/revoke`, key, 'POST')).to.equal(403);
    const [entry] = await entries(1);
    expect(entry).to.deep.include({ action: 'admin.refused', subject: `POST ${ADMIN}/keys/:id/revoke` });
    expect(entry?.actor).to.include({ via: 'api', user_id: 'eve', address: '127.0.0.1' });
    expect(entry?.actor['key_id']).to.be.a('string');
    expect(entry?.after).to.deep.equal({ code: 'permission_denied', lacking: 'the scope "keys:write"' });
  });

  it('contains wrong keys, also at the metrics, without any of their characters', async () => {
    const wrong = `${operator.key.slice(0, -3)}xyz`;
    expect(await send(`${ADMIN}/keys`, wrong)).to.equal(401);
    expect(await send('/metrics', operator.gateway.key)).to.equal(403);
    const found = await entries(2);
    expect(found.map(({ subject, after }) => [subject, after['code']])).to.have.deep.members([
      ['GET /metrics', 'permission_denied'],
      [`GET ${ADMIN}/keys`, 'invalid_api_key'],
    ]);
    expect(JSON.stringify(found)).not.to.include(wrong.slice(20));
  });

  it('contains refused sign-ins at the console, by key and by link', async () => {
    const { gateway } = operator;
    expect(await send(`${ADMIN}/console/session`, 'tg_nothing', 'POST')).to.equal(401);
    const headers = { origin: gateway.url, 'content-type': 'application/json' };
    const body = JSON.stringify({ token: 'x'.repeat(43) });
    expect((await fetch(`${gateway.url}${ADMIN}/console/link`, { method: 'POST', headers, body })).status).to.equal(
      401,
    );
    const found = await entries(2);
    for (const { action, subject, actor } of found)
      expect([action, subject, actor['via'], actor['address']]).to.deep.equal([
        ...['session.refused', 'console', 'console', '127.0.0.1'],
      ]);
  });

  it('does not contain requests without a credential, nor calls', async () => {
    await (await fetch(`${operator.gateway.url}${ADMIN}/keys`)).text();
    expect((await operator.chat('tg_nothing')).status).to.equal(401);
    expect(await send(`${ADMIN}/keys`, operator.gateway.key)).to.equal(403);
    await entries(1);
  });

  it('is not filled by repeated attempts', async () => {
    for (let n = 0; n < 200; n += 1) await send(`${ADMIN}/keys`, operator.gateway.key);
    await entries(1);
  });
});

describe('refusals', () => {
  const collect = () => {
    const written: AuditChange[] = [];
    const closers: (() => void | Promise<void>)[] = [];
    const note = createRefusals({
      operators: { audit: async (change) => void written.push(change) },
      onClose: (close) => void closers.push(close),
    });
    return { written, note, close: async () => closers[0]?.() };
  };
  const refusal = (address: string): Refusal => ({
    ...{ actor: { via: 'api', address }, action: 'admin.refused', subject: 'GET /x', code: 'invalid_api_key' },
  });

  it('are written once, and once more with the number of repetitions', async () => {
    const { written, note, close } = collect();
    for (let n = 0; n < 500; n += 1) note(refusal('192.0.2.1'));
    expect(written).to.have.lengthOf(1);
    await close();
    expect(written.map(({ after }) => after)).to.deep.equal([
      { code: 'invalid_api_key' },
      { code: 'invalid_api_key', more_times: 499 },
    ]);
  });

  it('from any number of addresses make a limited number of entries, without loss', async () => {
    const { written, note, close } = collect();
    for (let n = 0; n < 10_000; n += 1) note(refusal(`192.0.${n >> 8}.${n & 255}`));
    for (let n = 0; n < 1000; n += 1) note(refusal(`2001:db8::${n.toString(16)}`));
    await close();
    expect(written.length).to.be.at.most(102);
    const times = written.map(({ after }) => (after as { more_times?: number }).more_times ?? 1);
    expect(times.reduce((sum, each) => sum + each, 0)).to.equal(11_000);
  });
});
