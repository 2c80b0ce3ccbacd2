import { expect } from 'chai';
import type { Store } from '../../../../contract/index.ts';
import { createDocuments, createStoredDocuments, createUserDocuments } from '../../../../plugins/auth/kit/documents.ts';
import { createSecrets } from '../../../../plugins/auth/kit/secrets.ts';
import { createGrants, GRANT_MS, type Grants, readUserCode } from '../../../../plugins/auth/sign-in/grants.ts';
import {
  createSignIns,
  KNOWN_MS,
  OVERLAP_MS,
  type SignIns,
  type Tokens,
} from '../../../../plugins/auth/sign-in/sign-ins.ts';
import { openMemory } from '../../../../plugins/stores/memory/index.ts';
import { codeOf } from '../../../support/errors.ts';
import { openShakyStore, type ShakyStore } from '../../../support/stores/shaky-store.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const ANN = { userId: 'ann', words: ['dev'], program: 'claude_code', address: '203.0.113.7' };

/** Sign-ins of one node on a store. */
function openSignIns(store: Store): SignIns {
  return createSignIns(
    {
      accesses: createStoredDocuments<never>(store.stored('auth'), 'accesses'),
      refreshes: createStoredDocuments<never>(store.stored('auth'), 'refreshes'),
      signIns: createStoredDocuments<never>(store.stored('auth'), 'sign-ins'),
      ofUsers: createUserDocuments(store.sets, 'sign-ins'),
      counters: store.counters,
      findPerson: async () => ({ words: ['dev'] }),
    },
    { accessForMs: HOUR_MS, signInForMs: 7 * DAY_MS },
  );
}

function openGrants(store: Store): Grants {
  const { counters } = store;
  const secrets = (name: string) =>
    createSecrets<never>(name, GRANT_MS, createDocuments(store.keyv<never>(name)), counters);
  const decisions = createDocuments(store.keyv<never>('decisions'));
  return createGrants({ devices: secrets('devices'), codes: secrets('codes'), decisions, counters });
}

function tokensOf(found: Awaited<ReturnType<SignIns['refresh']>>): Tokens {
  if (typeof found === 'string') throw new Error(`no tokens: ${found}`);
  return found;
}

describe('a program that a person signed in with', () => {
  let store: ShakyStore;
  let signIns: SignIns;
  let start: number;
  let tokens: Tokens;
  beforeEach(async () => {
    store = openShakyStore(await openMemory());
    signIns = openSignIns(store);
    start = Date.now();
    tokens = await signIns.begin(ANN, start);
  });
  const isGood = async (at: number, token = tokens.access, by = signIns) => (await by.find(token, at)) !== undefined;

  it('is known on every node by its token, and by nothing that the store holds', async () => {
    expect(await openSignIns(store).find(tokens.access, start)).to.include({ userId: 'ann', program: 'claude_code' });
    const stored = store.writes.join('\n');
    for (const token of [tokens.access, tokens.refresh]) expect(stored).not.to.include(token.slice(-43));
    for (const text of new Set(stored.match(/[\w-]{43}/g)))
      expect(await isGood(start, `tg-access-${text}`), text).to.equal(false);
  });

  it('has an access token that ends by the clock of the gateway, however far that of another node is', async () => {
    expect(await isGood(start + HOUR_MS - 1)).to.equal(true);
    expect(await isGood(start + HOUR_MS)).to.equal(false);
    expect(await isGood(start - 5 * 60_000, tokens.access, openSignIns(store)), 'a clock behind').to.equal(true);
    expect(await isGood(start + HOUR_MS, tokens.access, openSignIns(store)), 'a clock ahead').to.equal(false);
  });

  it('continues by refresh tokens, and ends at its absolute expiry all the same', async () => {
    let last = tokens;
    for (let at = start + HOUR_MS; at < start + 7 * DAY_MS; at += 12 * HOUR_MS)
      last = tokensOf(await signIns.refresh(last.refresh, at));
    const nearEnd = start + 7 * DAY_MS - 60_000;
    last = tokensOf(await signIns.refresh(last.refresh, nearEnd));
    expect(last.expiresInMs, 'no access token outlives the sign-in').to.equal(60_000);
    expect(await signIns.refresh(last.refresh, start + 7 * DAY_MS)).to.equal('unknown');
  });

  it('ends when a refresh token is reused, because it was copied', async () => {
    const stolen = tokens.refresh;
    const newer = tokensOf(await signIns.refresh(stolen, start));
    expect(await signIns.refresh(stolen, start + OVERLAP_MS - 1), 'two that share a file of tokens').to.equal('used');
    expect(await isGood(start, newer.access)).to.equal(true);
    expect(await signIns.refresh(stolen, start + OVERLAP_MS)).to.equal('reused');
    expect(await isGood(start, newer.access), 'the tokens of the thief too').to.equal(false);
    expect(await signIns.refresh(newer.refresh, start + OVERLAP_MS)).to.equal('unknown');
  });

  it('is renewed once under concurrent requests on several nodes', async () => {
    const nodes = [signIns, openSignIns(store), openSignIns(store)];
    const came = await Promise.all([...nodes, ...nodes].map((node) => node.refresh(tokens.refresh, start)));
    expect(came.filter((each) => typeof each === 'object')).to.have.lengthOf(1);
    expect(new Set(came.filter((each) => typeof each === 'string'))).to.deep.equal(new Set(['used']));
  });

  it('ends on every node within two seconds, and immediately on the node that ended it', async () => {
    const other = openSignIns(store);
    expect(await isGood(start, tokens.access, other)).to.equal(true);
    await signIns.endByToken(tokens.access, start);
    expect(await isGood(start)).to.equal(false);
    expect(await isGood(start + KNOWN_MS, tokens.access, other)).to.equal(false);
  });

  it('is one of several of the same person, and its end leaves the others', async () => {
    const other = await signIns.begin({ ...ANN, program: 'codex' }, start);
    const [first] = await signIns.ofUser('ann', start);
    expect((await signIns.ofUser('ann', start)).map(({ program }) => program).sort()).to.deep.equal([
      'claude_code',
      'codex',
    ]);
    const ended = first && (await signIns.end(first.id, start));
    const left = await signIns.ofUser('ann', start);
    expect(left.map(({ id }) => id)).not.to.include(ended?.id);
    expect([await isGood(start), await isGood(start, other.access)].filter(Boolean)).to.have.lengthOf(1);
  });

  it('checks the limit before it looks up an unknown token, but not for a known one', async () => {
    let requestCount = 0;
    const count = (): void => {
      requestCount += 1;
    };
    await signIns.find(tokens.access, start, count);
    await signIns.find(tokens.access, start + KNOWN_MS, count);
    expect(requestCount).to.equal(1);
    await signIns.find(`tg-access-${'x'.repeat(43)}`, start, count);
    expect(requestCount).to.equal(2);
  });

  it('is neither good nor bad while the store does not answer, and its refresh token stays good', async () => {
    store.fail();
    expect(await codeOf(signIns.find(tokens.access, start))).to.equal('store_unavailable');
    expect(await codeOf(signIns.refresh(tokens.refresh, start))).to.equal('store_unavailable');
    store.recover();
    expect(typeof (await signIns.refresh(tokens.refresh, start))).to.equal('object');
  });
});

describe('a program that waits for a person', () => {
  const PROGRAM = { program: 'claude_code', address: '203.0.113.7' };
  const PERSON = { userId: 'ann', words: [] };
  let store: Store;
  let grants: Grants;
  let start: number;
  beforeEach(async () => {
    store = await openMemory();
    grants = openGrants(store);
    start = Date.now();
  });
  const issue = async () => ({ tokens: true });

  it('is approved on one node and gets its tokens on another, once', async () => {
    const { deviceCode, userCode } = await grants.begin(PROGRAM, start);
    const other = openGrants(store);
    const found = await other.find(userCode, start);
    expect(found && (await other.decide(found, PERSON, start))).to.equal(true);
    const nodes = [grants, other, openGrants(store)];
    const came = await Promise.all(nodes.map((node) => node.redeem(deviceCode, issue, start)));
    expect(came.filter((each) => typeof each === 'object')).to.have.lengthOf(1);
  });

  it('is over after ten minutes, for the person and for the program', async () => {
    const { deviceCode, userCode } = await grants.begin(PROGRAM, start);
    expect(await grants.find(userCode, start + GRANT_MS - 1)).not.to.equal(undefined);
    expect(await grants.find(userCode, start + GRANT_MS)).to.equal(undefined);
    expect(await grants.redeem(deviceCode, issue, start + GRANT_MS)).to.equal('expired_token');
  });

  it('gets its tokens by the next poll when the store failed in between', async () => {
    const { deviceCode, userCode } = await grants.begin(PROGRAM, start);
    const found = await grants.find(userCode, start);
    if (found) await grants.decide(found, PERSON, start);
    const failing = grants.redeem(deviceCode, () => Promise.reject(new Error('down')), start);
    expect(await failing.catch((error: Error) => error.message)).to.equal('down');
    expect(await grants.redeem(deviceCode, issue, start)).to.deep.equal({ tokens: true });
  });

  it('has a code that is read as people type it', () => {
    expect(['bcdf-ghjk', 'BCDFGHJK', ' bcdf ghjk '].map(readUserCode)).to.deep.equal(Array(3).fill('BCDF-GHJK'));
    expect(['', 'BCDF-GHJ', 'AEIO-UAEI', 'BCDF-GHJKL', 'x'.repeat(1000)].map(readUserCode)).to.deep.equal(
      Array(5).fill(undefined),
    );
  });
});
