import { expect } from 'chai';
import { type Operator, startOperator } from '../support/gateways/operator.ts';
import { completion, openAiVendor, tokenPrices } from '../support/vendors/openai-vendor.ts';
import { respondWith, type ScriptedUpstream, startScriptedUpstream } from '../support/vendors/scripted-upstream.ts';
import { eventually } from '../support/wait.ts';

/** Promise that a test resolves. */
function createSignal() {
  let resolve = (): void => undefined;
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

describe('a user who is erased', () => {
  let operator: Operator;
  let vendor: ScriptedUpstream;
  const [hasArrived, mayRespond] = [createSignal(), createSignal()];
  before(async () => {
    vendor = await startScriptedUpstream(async (wire) => {
      hasArrived.resolve();
      await mayRespond.promise;
      await wire.send(respondWith(200, completion()));
    });
    operator = await startOperator({
      providers: { echo: { prices: tokenPrices(1, 1) }, slow: openAiVendor(vendor, { prices: tokenPrices(1, 1) }) },
      agents: { team: { model: 'echo/echo', memory: { enabled: true } } },
      calls: { bodies: 'on' },
    });
  });
  after(async () => {
    await operator.gateway.stop();
    await vendor.close();
  });

  it('is previewed first; then keys, sessions, memories, bodies, stored responses and names are deleted, and the ledger stays (E50)', async () => {
    const { call, chat, gateway } = operator;
    const [one, two] = [
      (await call('POST', '/keys', { user_id: 'ann', name: 'Ann’s laptop' })).body,
      (await call('POST', '/keys', { user_id: 'ann', name: 'Ann’s phone' })).body,
    ];
    await call('POST', '/keys', { user_id: 'bea' });
    await call('POST', `/keys/${two.api_key_info.id}/revoke`);
    await call('PATCH', '/users/ann', { name: 'Ann Miller' });
    await call('POST', '/accounts/ann/credit', { amount_usd: 5 });
    expect((await chat(one.api_key)).status).to.equal(200);
    const headers = { authorization: `Bearer ${one.api_key}`, 'idempotency-key': 'once-for-ann' };
    const body = { model: 'echo/echo', messages: [{ role: 'user', content: 'my address is 1 Main Street' }] };
    await (await gateway.post('/v1/chat/completions', body, headers)).text();
    const viewer = (await call('POST', '/keys', { user_id: 'ann', role: 'viewer' })).body;
    const own = { origin: gateway.url, 'sec-fetch-site': 'same-origin', authorization: `Bearer ${viewer.api_key}` };
    const signedIn = await fetch(`${gateway.url}/api/core/admin/console/session`, { method: 'POST', headers: own });
    const cookie = signedIn.headers.getSetCookie()[0]?.split(';')[0] ?? '';
    const look = async () => (await fetch(`${gateway.url}/api/core/admin/targets`, { headers: { cookie } })).status;
    expect([signedIn.status, await look()]).to.deep.equal([204, 200]);
    await eventually(async () => {
      expect((await call('GET', '/calls?user=ann')).body.data).to.have.lengthOf(2);
      expect((await call('DELETE', '/users/ann')).body.erased).to.include({ bodies: 2 });
    });
    const counted = (await call('DELETE', '/users/ann')).body;
    expect(counted).to.include({ object: 'erasure', user_id: 'ann', dry_run: true });
    expect(counted.erased).to.include({ keys: 2, revoked_keys: 1, sessions: 1, bodies: 2, records_of_the_user: 1 });
    expect(counted.erased.kept_documents).to.be.at.least(1);
    expect((await chat(one.api_key)).status, 'a dry run changes nothing').to.equal(200);
    const before = (await call('GET', '/accounts/ann')).body;

    const erased = (await call('DELETE', '/users/ann?yes=true')).body;
    expect(erased.dry_run).to.equal(false);
    expect(erased.erased).to.include({ keys: 2, sessions: 1, bodies: 3, records_of_the_user: 1 });
    expect(await look()).to.equal(401);
    expect(erased.stays.map(({ what }: { what: string }) => what).join()).to.include('ledger');
    expect((await chat(one.api_key)).status).to.equal(401);
    expect((await call('GET', `/keys/${one.api_key_info.id}`)).status).to.equal(404);
    const keys = (await call('GET', '/keys')).body.data as { user_id: string }[];
    expect(keys.map(({ user_id }) => user_id)).to.have.members(['local', 'root', 'bea']);
    const users = (await call('GET', '/users')).body.data as { id: string }[];
    expect(users.map(({ id }) => id)).to.deep.equal(['bea', 'local', 'root']);
    expect((await call('GET', '/users/ann')).body).to.include({ name: null, keys: 0 });
    const again = (await call('DELETE', '/users/ann')).body;
    expect(Object.values(again.erased).filter((count) => count !== 0)).to.deep.equal([]);
    const { erased_id: id } = erased;
    expect(id).to.match(/^erased-[\w-]{16}$/);
    expect((await call('GET', '/calls?user=ann')).body.data).to.deep.equal([]);
    const [newest] = (await call('GET', `/calls?user=${id}&limit=1`)).body.data;
    expect((await call('GET', `/calls/${newest.id}`)).body.bodies).to.equal(null);
    const after = (await call('GET', `/accounts/${id}`)).body;
    expect((await call('GET', '/accounts/ann')).body).to.include({ credited_usd: '0.00', spent_usd: '0.00' });
    expect(after.entries.length).to.be.at.least(before.entries.length);
    expect(after).to.include({ credited_usd: '5.00', kept_bytes: 0 });
    const { data } = (await call('GET', `/audit?subject=${id}&action=user.erase`)).body;
    expect(data[0].after.erased).to.deep.equal(erased.erased);
    const alike = (await call('POST', '/keys', { user_id: '\u0430nn' })).body;
    expect(alike.similar, 'the id is not reported as similar').to.deep.equal([]);
  });

  it('is refused while a call runs, and an erasure that broke off is continued under the same id (G49)', async () => {
    const { call, chat, gateway } = operator;
    const { api_key: key } = (await call('POST', '/keys', { user_id: 'cleo' })).body;
    await chat(key);
    await eventually(async () => expect((await call('GET', '/calls?user=cleo')).body.data).to.have.lengthOf(1));
    const running = gateway.post(
      '/v1/chat/completions',
      { model: 'slow/m', messages: [{ role: 'user', content: 'Hi' }] },
      { authorization: `Bearer ${key}` },
    );
    await hasArrived.promise;
    const refused = await call('DELETE', '/users/cleo?yes=true');
    expect([refused.status, refused.body.error.code]).to.deep.equal([409, 'conflict']);
    expect(refused.body.error.message).to.include('erase again');
    expect((await chat(key)).status, 'no new call begins').to.equal(401);
    mayRespond.resolve();
    expect((await running).status).to.equal(200);
    await eventually(async () => {
      const { status, body } = await call('DELETE', '/users/cleo?yes=true');
      expect(status).to.equal(200);
      expect((await call('GET', `/calls?user=${body.erased_id}`)).body.data).to.have.lengthOf(2);
    });
    expect((await call('GET', '/calls?user=cleo')).body.data).to.deep.equal([]);
    const again = (await call('POST', '/keys', { user_id: 'cleo' })).body;
    expect((await chat(again.api_key)).status).to.equal(200);
    await eventually(async () => expect((await call('GET', '/calls?user=cleo')).body.data).to.have.lengthOf(1));
  });

  it('is erased by the command line only with --yes, and only with the scope (E50)', async () => {
    const { call, gateway } = operator;
    await call('POST', '/keys', { user_id: 'max' });
    const counted = await gateway.command<{ dry_run: boolean; erased: object }>('users', 'erase', 'max');
    expect(counted).to.deep.include({ dry_run: true });
    expect(counted.erased).to.include({ keys: 1 });
    const made = await call('POST', '/keys', { user_id: 'support', role: 'operator' });
    const headers = { authorization: `Bearer ${made.body.api_key}` };
    const refused = await fetch(`${gateway.url}/api/core/admin/users/max?yes=true`, { method: 'DELETE', headers });
    expect(refused.status).to.equal(403);
    const done = await gateway.command<{ dry_run: boolean; erased: object }>('users', 'erase', 'max', '--yes');
    expect(done).to.deep.include({ dry_run: false });
    expect(done.erased).to.include({ keys: 1 });
    expect((await call('DELETE', '/users/%00')).status).to.equal(400);
  });
});
