import { expect } from 'chai';
import { useTempFolder } from '../support/folders.ts';
import { startGateway, type TestGateway } from '../support/gateways/gateway.ts';

const DAY_MS = 86_400_000;

interface Made {
  readonly api_key: string;
  readonly api_key_info: { readonly id: string; readonly prefix: string; readonly expires_at: string | null };
}

describe('the expiry of operators’ keys (E41)', () => {
  const folder = useTempFolder('operator-keys');
  let gateway: TestGateway;
  afterEach(() => gateway.stop());

  const start = async (more: object = {}): Promise<void> => {
    const auth = { 'api-key': { bootstrap: true, pepper: 'a pepper of 32 bytes or more, for tests', ...more } };
    gateway = await startGateway({ store: `sqlite:${folder}/data`, auth });
  };
  const make = async (...words: readonly string[]): Promise<Made['api_key_info']> =>
    (await gateway.command<Made>('keys', 'create', '--user', 'ann', ...words)).api_key_info;
  const daysLeft = ({ expires_at }: Made['api_key_info']): number =>
    Math.round((Date.parse(expires_at ?? '') - Date.now()) / DAY_MS);

  it('is a year away by default, or as configured; keys for programs have none', async () => {
    await start();
    expect(daysLeft(await make('--admin'))).to.equal(365);
    expect(daysLeft(await make('--scope', 'metrics:read'))).to.equal(365);
    expect(daysLeft(await make('--role', 'admin', '--expires', '90d'))).to.equal(90);
    expect((await make()).expires_at).to.equal(null);
    const { api_key: key } = await gateway.command<Made>('keys', 'create', '--user', 'ann', '--admin');
    const response = await fetch(`${gateway.url}/api/core/admin/keys`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ user_id: 'bea', role: 'viewer', expires_at: null }),
    });
    expect(daysLeft(((await response.json()) as Made).api_key_info)).to.equal(365);
    await gateway.stop();
    await start({ operatorKeyFor: '30d' });
    expect(daysLeft(await make('--role', 'viewer'))).to.equal(30);
  });

  it('is removed by operators who may change the key', async () => {
    await start();
    const { prefix } = await make('--admin');
    const changed = await gateway.command<Made['api_key_info']>('keys', 'update', prefix, '--clear', 'expires');
    expect(changed.expires_at).to.equal(null);
  });

  it('is announced for two weeks, in the log and as a metric, for active keys', async () => {
    await start();
    const soon = await make('--admin', '--expires', '13d');
    await make('--admin', '--expires', '15d');
    await make('--expires', '1d');
    const revoked = await make('--role', 'viewer', '--expires', '2d');
    await gateway.command('keys', 'revoke', revoked.prefix);
    const rotated = await make('--role', 'viewer', '--expires', '20d');
    await gateway.command('keys', 'rotate', rotated.prefix, '--overlap', '1h');
    await gateway.stop();
    await start();
    const warned = gateway.logs.filter(({ msg }) => String(msg).startsWith('An operator key expires soon.'));
    expect(warned.map(({ key }) => key)).to.deep.equal([soon.prefix]);
    expect(await (await gateway.get('/metrics')).text()).to.match(/^tollgate_operator_keys_ending 1$/m);
  });

  it('is refused if it would be immediate', async () => {
    await start();
    const error: unknown = await startGateway({ auth: { 'api-key': { operatorKeyFor: '1h' } } }).catch(
      (e: unknown) => e,
    );
    expect(String(error)).to.match(/operatorKeyFor.* must be at least 1d, but is 1h/);
  });
});
