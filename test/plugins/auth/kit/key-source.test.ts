import { expect } from 'chai';
import type { FlattenedJWSInput, JSONWebKeySet } from 'jose';
import { createKeySource, type KeySource } from '../../../../plugins/auth/kit/key-source.ts';
import { codeOf } from '../../../support/errors.ts';
import { createSigner, type TestSigner } from '../../../support/identity/tokens.ts';
import { until } from '../../../support/wait.ts';

const TOKEN = {} as FlattenedJWSInput;

describe('the keys of an identity provider', () => {
  let one: TestSigner;
  let two: TestSigner;
  let published: TestSigner[];
  let loads: number;
  let down: boolean;
  let nowMs: number;
  let failures: unknown[];
  let source: KeySource;

  before(async () => {
    [one, two] = await Promise.all([createSigner('one'), createSigner('two')]);
  });
  beforeEach(() => {
    published = [one];
    loads = 0;
    down = false;
    nowMs = 1000;
    failures = [];
    source = createKeySource({ load, onFailure: (error) => failures.push(error), now: () => nowMs });
  });

  const load = async (): Promise<JSONWebKeySet> => {
    loads += 1;
    if (down) throw new Error('the provider is away');
    return { keys: published.map(({ publicJwk }) => publicJwk) };
  };
  const find = async (kid: string) => source.getKey({ alg: 'RS256', kid }, TOKEN);
  const outcome = async (kid: string) => {
    try {
      await find(kid);
      return 'found';
    } catch (error) {
      return (error as { code: string }).code;
    }
  };

  it('are read once for all who wait', async () => {
    await Promise.all(Array.from({ length: 50 }, () => find('one')));
    expect(loads).to.equal(1);
  });

  it('J21 are read again, once, for a token that names a new one', async () => {
    await find('one');
    published = [two];
    nowMs += 30_000;
    expect(await Promise.all([outcome('two'), outcome('two'), outcome('two')])).to.deep.equal(Array(3).fill('found'));
    expect(loads).to.equal(2);
    expect(await outcome('one')).to.equal('ERR_JWKS_NO_MATCHING_KEY');
  });

  it('J21 are not read again for each of a thousand made-up names', async () => {
    await find('one');
    nowMs += 30_000;
    for (let i = 0; i < 1000; i += 1) expect(await outcome(`made-up-${i}`)).to.equal('ERR_JWKS_NO_MATCHING_KEY');
    expect(loads).to.equal(2);
  });

  it('are read again after ten minutes, without delaying a request', async () => {
    await find('one');
    published = [two];
    nowMs += 600_000;
    expect(await outcome('one')).to.equal('found');
    await until('the keys are read again', async () => (await outcome('two')) === 'found');
    expect(await outcome('one')).to.equal('ERR_JWKS_NO_MATCHING_KEY');
    expect(loads).to.equal(2);
  });

  it('go on being used for an hour while they cannot be read', async () => {
    await find('one');
    down = true;
    nowMs += 3_599_999;
    expect(await outcome('one')).to.equal('found');
    await until('the failure is reported', () => failures.length === 1);
    nowMs += 5001;
    expect(await outcome('one')).to.equal('store_unavailable');
  });

  it('are requested once in five seconds while they are unavailable', async () => {
    down = true;
    for (let i = 0; i < 100; i += 1) expect(await outcome('one')).to.equal('store_unavailable');
    expect(loads).to.equal(1);
    nowMs += 5000;
    down = false;
    expect(await outcome('one')).to.equal('found');
  });

  it('leave a token undecided whose key may be new while they cannot be read', async () => {
    await find('one');
    down = true;
    nowMs += 30_000;
    expect(await outcome('two')).to.equal('store_unavailable');
    expect(await outcome('one')).to.equal('found');
  });

  it('report why they are unavailable on an explicit read', async () => {
    down = true;
    expect(await source.refresh().catch((error) => error.message)).to.equal('the provider is away');
    expect(await codeOf(find('one') as Promise<unknown>)).to.equal('store_unavailable');
  });
});
