import { expect } from 'chai';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';

describe('the metrics', () => {
  let gateway: TestGateway;
  let admin: string;

  before(async () => {
    gateway = await startGateway({ policies: { metrics: {} } });
    admin = (await gateway.command<{ api_key: string }>('keys', 'create', '--user', 'prometheus', '--admin')).api_key;
  });
  after(() => gateway.stop());

  const read = async (headers: Record<string, string>) => {
    const response = await fetch(`${gateway.url}/metrics`, { headers });
    const text = await response.text();
    return { status: response.status, text, code: response.ok ? undefined : JSON.parse(text).error.code };
  };

  it('can be read with an admin key, as bearer or as x-api-key', async () => {
    for (const headers of [{ authorization: `Bearer ${admin}` }, { 'x-api-key': admin }]) {
      const { status, text } = await read(headers);
      expect(status).to.equal(200);
      expect(text).to.include('tollgate_build_info{');
    }
  });

  it('cannot be read by other callers', async () => {
    expect(await read({})).to.include({ status: 401, code: 'missing_api_key' });
    expect(await read({ authorization: `Bearer ${gateway.key}` })).to.include({
      status: 403,
      code: 'permission_denied',
    });
    expect(await read({ authorization: 'Bearer tg_wrong' })).to.include({ status: 401, code: 'invalid_api_key' });
    expect((await read({ authorization: `Bearer ${gateway.key}` })).text).not.to.include('tollgate_build_info');
  });

  it('need a key where the health checks need none', async () => {
    for (const path of ['/livez', '/readyz', '/healthz'])
      expect((await fetch(gateway.url + path)).status).to.equal(200);
  });

  it('are open to everybody where the operator says so, and the former words for it are refused', async () => {
    const open = await startGateway({ policies: { metrics: { auth: 'none' } } });
    try {
      expect((await fetch(`${open.url}/metrics`)).status).to.equal(200);
    } finally {
      await open.stop();
    }
    for (const auth of [true, false, 'key']) {
      const refused = await startGateway({ policies: { metrics: { auth } } }).catch((error: Error) => error);
      expect(String(refused)).to.match(/auth/).and.to.match(/admin/);
    }
  });
});
