import { expect } from 'chai';
import { startAccounts } from '../plugins/mcp/account-rig.ts';
import { openBrowser } from '../support/clients/browser.ts';
import { CLIENT_SECRET, startOpenIdPeople } from '../support/identity/openid-people.ts';
import { freePort } from '../support/processes/server-process.ts';
import { eventually } from '../support/wait.ts';

/** Id of a person that is an e-mail address, as with many identity providers, and the person's name. */
const ADDRESS = 'ann.arbor@acme.example';
const NAME = 'Ann Q. Arbor';
const ADMIN = '/api/core/admin';

/** Part of a store that must not contain the person. */
interface StoreUnderTest {
  /** Value of `store` in the configuration. */
  readonly store: string | object;
  /** All rows of the store as text. */
  dump(): Promise<string>;
}

/**
 * Leaves traces of a person everywhere (calls, keys, budgets, a team, a sign-in, an account at an MCP server, audit entries), erases
 * them, and searches the store.
 */
export async function expectErased({ store, dump }: StoreUnderTest): Promise<void> {
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const people = await startOpenIdPeople({
    people: { [ADDRESS]: { roles: ['operator'], name: NAME, email: ADDRESS } },
    redirectUris: [`${origin}${ADMIN}/callback`],
  });
  people.person = ADDRESS;
  const { issuer } = people;
  const openid = {
    issuer,
    clientId: 'gateway',
    clientSecret: CLIENT_SECRET,
    publicUrl: origin,
    adminRoles: ['operator'],
  };
  const rig = await startAccounts([ADDRESS, 'bea'], {
    server: { port, drainTimeout: '2s' },
    store,
    providers: { echo: { prices: { '*': { input: 1, output: 1 } } } },
    auth: { 'api-key': { bootstrap: true }, openid },
    plans: {
      all: { serverTools: ['mcp:*'] },
      pro: {
        rpm: 100,
        concurrency: 9,
        providers: { echo: { rpm: 90 } },
        budgets: [{ name: 'monthly', amount_usd: 50, every: 'month' }],
      },
    },
    tags: { owner: [ADDRESS, 'bea'] },
    calls: { bodies: 'on' },
  }).catch(async (error: unknown) => {
    await people.stop();
    throw error;
  });
  const { gateway } = rig;
  try {
    const { api_key: root } = await gateway.command<{ api_key: string }>('keys', 'create', '--user', 'root', '--admin');
    const call = async (method: string, path: string, body?: object) => {
      const headers = { authorization: `Bearer ${root}`, 'content-type': 'application/json' };
      const response = await fetch(`${origin}${ADMIN}${path}`, {
        method,
        headers,
        ...(body && { body: JSON.stringify(body) }),
      });
      const reported = await response.json();
      expect(response.status, `${method} ${path}: ${JSON.stringify(reported)}`).to.be.within(200, 201);
      // biome-ignore lint/suspicious/noExplicitAny: a test looks into responses of every shape
      return reported as any;
    };
    const chat = async (user: string, more: object = {}, headers: Record<string, string> = {}) => {
      const body = { model: 'echo/echo', messages: [{ role: 'user', content: 'Hi' }], ...more };
      return (await gateway.post('/v1/chat/completions', body, { ...rig.as(user), ...headers })).status;
    };
    const person = `/users/${encodeURIComponent(ADDRESS)}`;
    const account = `/accounts/${encodeURIComponent(ADDRESS)}`;

    await call('PUT', `${account}/plan`, { plan: 'pro' });
    await call('POST', `${account}/credit`, { amount_usd: 5, reason: `a gift for ${ADDRESS}`, id: `gift:${ADDRESS}` });
    await call('PUT', '/budgets/of-ann', { user: ADDRESS, amount_usd: 9, every: 'month' });
    await call('PUT', '/budgets/of-end-user', { user: 'bea', end_user: ADDRESS, amount_usd: 9, every: 'month' });
    await call('PUT', '/teams/owner%3Dbea', { owners: { users: [ADDRESS, 'bea'] }, members: [ADDRESS] });
    await call('POST', '/keys', { user_id: ADDRESS, name: `laptop of ${ADDRESS}`, budget_usd: 3 });
    await rig.connect(ADDRESS);
    await rig.whoami(ADDRESS);
    expect(await chat(ADDRESS, { user: 'a customer' }, { 'x-tollgate-tag': `owner=${ADDRESS}` })).to.equal(200);
    expect(await chat('bea', { user: ADDRESS }, { 'x-tollgate-tag': `owner=${ADDRESS}` })).to.equal(200);
    expect(await chat(ADDRESS, { model: 'echo/missing-model', max_tokens: -1 })).to.be.at.least(400);
    const browser = openBrowser();
    expect((await browser.visit(`${origin}${ADMIN}/login`)).status).to.equal(200);
    const block = { method: 'POST', headers: { origin, 'content-type': 'application/json' }, body: '{}' };
    expect((await browser.send(`${origin}${ADMIN}/users/mallory/block`, block)).status, 'of the session').to.equal(200);

    const usage = () => call('GET', '/usage?by=user&from=2020-01-01');
    await eventually(async () => expect((await call('GET', `/calls?user=${ADDRESS}`)).data.length).to.be.at.least(2));
    const before = await usage();
    const found = await dump();
    for (const text of [ADDRESS, NAME]) expect(found, 'the test leaves traces').to.include(text);

    const { erased, erased_id: id } = await call('DELETE', `${person}?yes=true`);
    expect(erased).to.include({ budgets: 2, teams: 1, plans_of_the_account: 1, records_of_the_user: 1 });
    const rows = (await dump()).split('\n');
    for (const text of [ADDRESS, NAME])
      expect(
        rows.filter((row) => row.includes(text)),
        text,
      ).to.deep.equal([]);

    const after = await usage();
    expect(after.total).to.deep.equal(before.total);
    const rowOf = (report: { data: { user: string; user_id?: string }[] }, user: string) =>
      JSON.parse(
        JSON.stringify(report.data.find((row) => Object.values(row).includes(user)) ?? null).replaceAll(user, 'person'),
      );
    expect(rowOf(after, id)).to.deep.equal(rowOf(before, ADDRESS));
    expect(
      (await call('GET', `/audit?subject=${id}&limit=50`)).data.map(({ action }: { action: string }) => action),
    ).to.include.members(['user.erase', 'account.credit']);
    expect((await call('GET', `/audit?actor=${id}`)).data[0]).to.include({ action: 'user.block', subject: 'mallory' });

    expect(await call('GET', account)).to.include({
      balance_usd: '0.00',
      spent_usd: '0.00',
      credited_usd: '0.00',
      plan: 'all',
    });
    expect((await call('GET', person)).keys).to.equal(0);
    expect((await call('GET', `/calls?user=${ADDRESS}`)).data).to.deep.equal([]);
  } finally {
    await rig.stop();
    await people.stop();
  }
}
