import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';
import { type OpenIdProvider, startOpenIdProvider } from '../support/identity/openid-provider.ts';

const KEYS = '/api/core/api_keys';
/** Costs 4 micro-dollars at the echo provider and reserves 5. */
const CHAT = { model: 'echo/echo', max_tokens: 3, messages: [{ role: 'user', content: 'Hi there' }] };

// biome-ignore lint/suspicious/noExplicitAny: answers are looked into, whatever their shape
type Loose = any;

describe('limits that several keys share', () => {
  let provider: OpenIdProvider;
  let gateway: TestGateway;
  let ann: string;

  before(async () => {
    provider = await startOpenIdProvider({
      users: { ann: {}, cheap: { money: '0.000060' }, slow: { rate: 3 }, terse: { tokens: 40 } },
      audience: 'tollgate',
    });
    const claims = { rpm: 'rate', tpm: 'tokens', budget_usd: 'money' };
    gateway = await startGateway({
      providers: { echo: { prices: { '*': { input: 1, output: 1 } } } },
      auth: { 'api-key': {}, jwt: { issuer: provider.issuer, audience: 'tollgate', claims } },
    });
    ann = await provider.token('ann');
  });
  after(async () => {
    await gateway?.stop();
    await provider?.stop();
  });

  const send = async (method: string, where: string, credential: string, body?: unknown): Promise<Loose> => {
    const headers = { authorization: `Bearer ${credential}`, 'content-type': 'application/json' };
    const sent = body === undefined ? { method, headers } : { method, headers, body: JSON.stringify(body) };
    return (await fetch(gateway.url + where, sent)).json();
  };
  const create = (token: string, body?: object): Promise<Loose> => send('POST', `${KEYS}/create`, token, body ?? {});
  const rotate = (token: string, { api_key_info: { id } }: Loose): Promise<Loose> =>
    send('POST', `${KEYS}/rotate`, token, { id, overlap_seconds: 600 });
  const sendRequest = async (key: string): Promise<number> =>
    (await gateway.post('/v1/chat/completions', CHAT, { authorization: `Bearer ${key}` })).status;
  /** Calls with each key in turn; returns the statuses. */
  const sendInTurn = async (keys: readonly Loose[], rounds: number): Promise<readonly number[]> => {
    const statuses: number[] = [];
    for (let round = 0; round < rounds; round++)
      for (const { api_key } of keys) statuses.push(await sendRequest(api_key));
    return statuses;
  };
  const count = (statuses: readonly number[], status: number) => statuses.filter((each) => each === status).length;

  describe('rotated keys', () => {
    it('share one budget, in the overlap and after it, and each shows the total spend', async () => {
      const first = await create(ann, { budget_usd: '0.000060' });
      const second = await rotate(ann, first);
      const third = await rotate(ann, second);
      const keys = [first, second, third];
      expect(third.api_key_info.budget_usd).to.equal('0.00006');
      expect(count(await sendInTurn(keys, 15), 200)).to.be.within(1, 15);
      expect(await sendInTurn(keys, 1)).to.deep.equal([402, 402, 402]);
      const { data } = await send('GET', `${KEYS}?limit=100`, ann);
      const spent = keys.map(({ api_key_info: { id } }) => data.find((key: Loose) => key.id === id).spent_usd);
      expect(new Set(spent).size).to.equal(1);
      expect(Number(spent[0])).to.be.greaterThan(0).and.at.most(0.00006);
    });

    it('share their requests a minute', async () => {
      const first = await create(ann, { rpm: 2 });
      const second = await rotate(ann, first);
      expect(await sendInTurn([first, second], 2)).to.deep.equal([200, 200, 429, 429]);
    });
  });

  describe('keys of a user whose token has limits', () => {
    it('share one budget, however many are created and rotated', async () => {
      const token = await provider.token('cheap');
      const keys = [await create(token), await create(token, { budget_usd: '0.00005' })];
      keys.push(await rotate(token, keys[0]));
      expect(count(await sendInTurn(keys, 15), 200)).to.be.within(1, 15);
      expect(await sendInTurn(keys, 1)).to.deep.equal([402, 402, 402]);
      expect(await sendRequest((await create(token)).api_key), 'one made later').to.equal(402);
      expect((await gateway.command<Loose>('accounts', 'show', 'cheap')).held_usd).to.equal('0.00');
    });

    it('share their requests a minute', async () => {
      const token = await provider.token('slow');
      const keys = [await create(token), await create(token, { rpm: 2 })];
      expect(await sendInTurn(keys, 3)).to.deep.equal([200, 200, 200, 429, 429, 429]);
    });

    it('share their tokens a minute', async () => {
      const token = await provider.token('terse');
      const keys = [await create(token), await create(token), await create(token)];
      const statuses = await sendInTurn(keys, 6);
      expect(count(statuses, 200)).to.be.within(1, 10);
      expect(statuses.slice(-3)).to.deep.equal([429, 429, 429]);
    });

    it('do not affect those of another user', async () => {
      expect(await sendRequest((await create(ann)).api_key)).to.equal(200);
    });
  });
});
