import { expect } from 'chai';
import { bodyOf, openBrowser } from '../../../support/clients/browser.ts';
import { startGateway, type TestGateway } from '../../../support/gateways/gateway.ts';
import { CLIENT_SECRET, type OpenIdPeople, startOpenIdPeople } from '../../../support/identity/openid-people.ts';
import { describeWith, freePort, type TestServer } from '../../../support/processes/server-process.ts';
import { INITDB, POSTGRES, startPostgresServer } from '../../../support/stores/postgres-server.ts';
import { REDIS_SERVER, startRedisServer } from '../../../support/stores/redis-server.ts';

const ADMIN = '/api/core/admin';
const PEPPER = 'mK3v9Xq2Lw7Tz5Rb8Nc4Hd6Jf1Gp0YsAqWeUiOp';

const STORES = [
  ['redis', { 'redis-server': REDIS_SERVER }, startRedisServer],
  ['postgres', { postgres: POSTGRES, initdb: INITDB }, startPostgresServer],
] as const;

for (const [name, needs, startStore] of STORES)
  describeWith(`a session on two gateways on one ${name}`, needs, () => {
    let store: TestServer;
    let people: OpenIdPeople;
    let one: TestGateway;
    let two: TestGateway;
    let origin: string;

    before(async () => {
      const port = await freePort();
      origin = `http://127.0.0.1:${port}`;
      store = await startStore();
      people = await startOpenIdPeople({
        people: { ann: { roles: ['admin'] } },
        redirectUris: [`${origin}${ADMIN}/callback`],
      });
      people.person = 'ann';
      const openid = { issuer: people.issuer, clientId: 'gateway', clientSecret: CLIENT_SECRET, publicUrl: origin };
      const config = { store: store.url, auth: { 'api-key': { pepper: PEPPER }, openid } };
      one = await startGateway({ ...config, server: { port } });
      two = await startGateway({ ...config, server: { port: 0 } });
    });
    after(async () => {
      await Promise.all([one, two].map((gateway) => gateway.stop()));
      await Promise.all([people.stop(), store.close()]);
    });

    it('begins on one, is finished on the other, holds on both, and ends on both', async () => {
      const browser = openBrowser();
      const { url } = await browser.visit(`${origin}${ADMIN}/login`, ({ pathname }) => pathname.endsWith('/callback'));
      const pending = browser.cookies(url.href);
      const back = `${two.url}${url.pathname}${url.search}`;
      const tries = await Promise.all(
        [back, url.href, back, url.href].map((to) => fetch(to, { headers: { cookie: pending }, redirect: 'manual' })),
      );
      const done = tries.filter(({ status }) => status === 302);
      expect(tries.map(({ status }) => status).toSorted()).to.deep.equal([302, 400, 400, 400]);
      const set = done[0]?.headers.getSetCookie().find((each) => each.startsWith('tollgate-session='));
      const cookie = set?.split(';', 1)[0] ?? '';
      const send = (gateway: TestGateway) => fetch(`${gateway.url}${ADMIN}/session`, { headers: { cookie } });
      for (const gateway of [one, two]) expect((await send(gateway)).status).to.equal(200);
      const out = await fetch(`${two.url}${ADMIN}/logout`, { method: 'POST', headers: { cookie, origin } });
      expect((await bodyOf(out)).ended).to.equal(true);
      for (const gateway of [one, two]) expect((await send(gateway)).status).to.equal(401);
    });
  });
