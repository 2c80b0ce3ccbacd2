import { randomBytes } from 'node:crypto';
import { expect } from 'chai';
import { createKey } from '../../plugins/auth/api-key/format.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';

const CHAT = { model: 'echo/echo', messages: [{ role: 'user', content: 'Hi' }] };
const LIMIT = 3;

describe('wrong credentials by address (E34)', () => {
  let gateway: TestGateway;

  beforeEach(async () => {
    gateway = await startGateway({ server: { port: 0, failedCredentials: LIMIT, trustProxy: true } });
  });
  afterEach(() => gateway.stop());

  const chat = (key: string, from = '192.0.2.1', body: object = CHAT) =>
    gateway.post('/v1/chat/completions', body, { authorization: `Bearer ${key}`, 'x-forwarded-for': from });
  const wrongKey = (): string => createKey(randomBytes).text;
  const statuses = async (keys: readonly string[], from?: string): Promise<readonly number[]> => {
    const found: number[] = [];
    for (const key of keys) found.push((await chat(key, from)).status);
    return found;
  };

  for (const [what, make] of [
    ['made up with a right checksum', wrongKey],
    ['of another shape', () => `sk-${randomBytes(12).toString('hex')}`],
    ['that look like tokens', () => 'eyJhbGciOiJub25lIn0.e30.x'],
  ] as const)
    it(`E34: get 429 with retry-after from the fourth on, ${what}`, async () => {
      expect(await statuses(Array.from({ length: LIMIT + 1 }, make))).to.deep.equal([401, 401, 401, 429]);
      const refused = await chat(make());
      expect(refused.status).to.equal(429);
      expect(Number(refused.headers.get('retry-after'))).to.be.within(1, 60);
      expect(await refused.json()).to.have.nested.property('error.code', 'rate_limited');
      expect((await chat(make(), '192.0.2.2')).status).to.equal(401);
      const lines = gateway.logs.filter(({ limit }) => limit === LIMIT);
      expect(lines.map(({ ip }) => ip)).to.deep.equal(['192.0.2.1']);
    });

  it('E34: do not affect valid keys, used before or not, with and without a stream', async () => {
    const { api_key: fresh } = await gateway.command<{ api_key: string }>('keys', 'create', '--user', 'ann');
    expect((await chat(gateway.key)).status).to.equal(200);
    expect(await statuses(Array.from({ length: LIMIT + 3 }, wrongKey))).to.include(429);
    expect((await chat(gateway.key)).status).to.equal(200);
    expect((await chat(fresh)).status).to.equal(200);
    expect((await chat(fresh, '192.0.2.1', { ...CHAT, stream: true })).status).to.equal(200);
  });

  it('E34: count a revoked key, and no request without a credential', async () => {
    const { api_key: key } = await gateway.command<{ api_key: string }>('keys', 'create', '--user', 'ann');
    await gateway.command('keys', 'revoke', key);
    const anonymous = { 'x-forwarded-for': '192.0.2.1' };
    for (let n = 0; n < LIMIT + 2; n += 1)
      expect((await fetch(`${gateway.url}/v1/models`, { headers: anonymous })).status).to.equal(401);
    expect(await statuses(Array.from({ length: LIMIT + 1 }, () => key))).to.deep.equal([401, 401, 401, 429]);
  });
});

describe('wrong credentials by address, disabled (E34)', () => {
  it('E34: are 401, however many', async () => {
    const gateway = await startGateway({ server: { port: 0, failedCredentials: 0 } });
    try {
      for (let n = 0; n < 40; n += 1)
        expect((await gateway.get('/v1/models', { authorization: 'Bearer tg_no' })).status).to.equal(401);
    } finally {
      await gateway.stop();
    }
  });
});
