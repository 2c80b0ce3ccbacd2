import { mock } from 'node:test';
import { expect } from 'chai';
import { GatewayError } from '../../../contract/errors.ts';
import { networkOf } from '../../../contract/hosts.ts';
import { createFailedCredentials } from '../../../core/http/failed-credentials.ts';
import { createSilentLog } from '../../support/log.ts';

const WRONG = new GatewayError('invalid_api_key', 'wrong');

/** Code of the error; "ok" without an error. */
function codeOf(act: () => unknown): string {
  try {
    act();
    return 'ok';
  } catch (error) {
    return (error as GatewayError).code;
  }
}

describe('the count of wrong credentials by address (E34)', () => {
  it('E34: returns 401 up to the limit, then 429 with the time to wait', () => {
    const failures = createFailedCredentials(2, createSilentLog());
    const reported = [1, 2, 3, 4].map(() => codeOf(() => failures.refuse(WRONG, '192.0.2.1')));
    expect(reported).to.deep.equal(['invalid_api_key', 'invalid_api_key', 'rate_limited', 'rate_limited']);
    expect(codeOf(() => failures.refuse(WRONG, '192.0.2.2'))).to.equal('invalid_api_key');
    expect(() => failures.refuse(WRONG, '192.0.2.1'))
      .to.throw(GatewayError)
      .with.property('retryAfterMs')
      .within(1, 60_000);
  });

  it('E34: resets after a minute', () => {
    mock.timers.enable({ apis: ['Date'] });
    try {
      const failures = createFailedCredentials(1, createSilentLog());
      const refuse = (): string => codeOf(() => failures.refuse(WRONG, '192.0.2.1'));
      expect([refuse(), refuse()]).to.deep.equal(['invalid_api_key', 'rate_limited']);
      mock.timers.tick(59_999);
      expect(refuse()).to.equal('rate_limited');
      mock.timers.tick(1);
      expect(refuse()).to.equal('invalid_api_key');
    } finally {
      mock.timers.reset();
    }
  });

  it('E34: counts all addresses of one /64 of IPv6 as one', () => {
    const failures = createFailedCredentials(1, createSilentLog());
    expect(codeOf(() => failures.refuse(WRONG, '2001:db8:1:2::1'))).to.equal('invalid_api_key');
    expect(codeOf(() => failures.refuse(WRONG, '2001:db8:1:2:ffff::9'))).to.equal('rate_limited');
    expect(codeOf(() => failures.refuse(WRONG, '2001:db8:1:3::1'))).to.equal('invalid_api_key');
  });

  it('E34: counts neither other errors nor requests without a credential', () => {
    const failures = createFailedCredentials(1, createSilentLog());
    const down = new GatewayError('store_unavailable', 'down');
    const missing = new GatewayError('missing_api_key', 'missing');
    for (let n = 0; n < 5; n += 1) {
      expect(codeOf(() => failures.refuse(down, '192.0.2.1'))).to.equal('store_unavailable');
      expect(codeOf(() => failures.refuse(missing, undefined))).to.equal('missing_api_key');
    }
    expect(codeOf(() => failures.refuse(WRONG, '192.0.2.1'))).to.equal('invalid_api_key');
  });

  it('E34: limits look-ups of an address only once it is over the limit, at ten times that', () => {
    const failures = createFailedCredentials(1, createSilentLog());
    const lookUp = () => codeOf(() => failures.beforeLookup('192.0.2.1'));
    for (let n = 0; n < 50; n += 1) expect(lookUp()).to.equal('ok');
    codeOf(() => failures.refuse(WRONG, '192.0.2.1'));
    const reported = Array.from({ length: 12 }, lookUp);
    expect(reported.filter((code) => code === 'ok')).to.have.lengthOf(10);
    expect(reported.slice(10)).to.deep.equal(['rate_limited', 'rate_limited']);
    expect(codeOf(() => failures.beforeLookup('192.0.2.2'))).to.equal('ok');
  });

  it('E34: logs one line a minute and address', () => {
    const log = createSilentLog();
    const failures = createFailedCredentials(1, log);
    for (let n = 0; n < 9; n += 1) codeOf(() => failures.refuse(WRONG, '2001:db8::1'));
    expect(log.lines.map(({ level, fields }) => ({ level, fields }))).to.deep.equal([
      { level: 'warn', fields: { ip: '2001:db8:0:0::/64', limit: 1 } },
    ]);
  });

  it('E34: limits nothing with a limit of 0', () => {
    const failures = createFailedCredentials(0, createSilentLog());
    for (let n = 0; n < 9; n += 1)
      expect(codeOf(() => failures.refuse(WRONG, '192.0.2.1'))).to.equal('invalid_api_key');
    expect(codeOf(() => failures.beforeLookup('192.0.2.1'))).to.equal('ok');
  });

  const NETWORKS: readonly (readonly [address: string, network: string])[] = [
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::1', '0:0:0:0::/64'],
    ['2001:db8::', '2001:db8:0:0::/64'],
    ['2001:0DB8:0:0:1:2:3:4', '2001:db8:0:0::/64'],
    ['[2001:db8:1:2::9]', '2001:db8:1:2::/64'],
    ['64:ff9b::192.0.2.1', '64:ff9b:0:0::/64'],
    ['1:2:3:4:5:6:192.0.2.1', '1:2:3:4::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['', ''],
    ['no address', 'no address'],
  ];
  for (const [address, network] of NETWORKS)
    it(`E34: treats "${address}" as "${network}"`, () => expect(networkOf(address)).to.equal(network));
});
