import { mkdirSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import type { GatewaySettings, Principal } from '../../../../contract/index.ts';
import { createRecordBook } from '../../../../core/plugins/instance-store.ts';
import { type AccessRules, createAccess, folderOf } from '../../../../plugins/agents/rag/access.ts';
import { checkFolders, checkRules, createCallerPlan } from '../../../../plugins/agents/rag/index.ts';
import { createVectorTables, searchPassages } from '../../../../plugins/agents/rag/retrieve.ts';
import { openMemory } from '../../../../plugins/stores/memory/index.ts';
import { embedHashes, openTestIndex, type TestIndex } from '../../../support/agents/rag-index.ts';
import { useTempFolder } from '../../../support/folders.ts';

const RULES: AccessRules = Object.freeze({
  hr: { plans: ['staff'] },
  'hr/salaries': { users: ['ann'] },
  partners: { keys: ['k1'], users: ['ann'] },
});

const PUBLIC = Object.freeze({
  'handbook.md': '# Salaries\n\nSalaries are paid at the end of a month.',
  'holidays.md': '# Holidays\n\nEverybody has thirty days of holidays, and the salary goes on.',
  'parking.md': '# Parking\n\nVisitors park behind the bakery.',
});

const HIDDEN = Object.freeze({
  'hr/rules.md': '# Rules\n\nThe month of notice is counted from its end. Salaries, salaries, salaries.',
  'hr/salaries/list.md': '# Salaries of the board\n\nThe salary of Bob is 91,000 a year, and that of Eve is more.',
  'hr/salaries/bonus.md': `# Bonus\n\n${'A bonus is paid at the end of the year, behind closed doors. '.repeat(20)}`,
  'partners/prices.md': '# Prices\n\nAcme pays half of the price of everybody else, at the end of a month.',
});

const QUERIES = Object.freeze([
  'salaries',
  'salary at the end of the month',
  'Bob bakery',
  'bonus',
  'price of parking',
]);

describe('the access rules of the knowledge base', () => {
  const folder = useTempFolder('rag-access');
  const caller = (more: Partial<Principal>): Principal => ({ credential: 'key', userId: 'u', account: 'u', ...more });
  const access = createAccess(RULES, async ({ plan }) => plan);
  const foldersOf = async (principal: Principal): Promise<readonly string[]> => [
    ...(await access.scopeOf(principal)).folders,
  ];

  it('allow by plan, key or user, and everyone without a rule on the folder', async () => {
    expect(await foldersOf(caller({}))).to.deep.equal(['']);
    expect(await foldersOf(caller({ plan: 'staff' }))).to.deep.equal(['', 'hr']);
    expect(await foldersOf(caller({ userId: 'ann' }))).to.deep.equal(['', 'hr/salaries', 'partners']);
    expect(await foldersOf(caller({ keyId: 'k1' }))).to.deep.equal(['', 'partners']);
    expect(await foldersOf(caller({ keyId: 'k9', limitsId: 'k1' })), 'a key that replaced it').to.include('partners');
    expect(await foldersOf(caller({ account: 'ann', keyName: 'k1' })), 'neither account nor name').to.deep.equal(['']);
  });

  it('can close the whole folder and open a subfolder', async () => {
    const closed = createAccess({ '.': { users: ['ann'] }, open: { everybody: true } }, async () => undefined);
    const scope = await closed.scopeOf(caller({}));
    expect(['a.md', 'open/a.md', 'opened/a.md'].map(scope.includes)).to.deep.equal([false, true, false]);
    const ann = await closed.scopeOf(caller({ userId: 'ann' }));
    expect(['a.md', 'open/a.md'].map(ann.includes)).to.deep.equal([true, true]);
  });

  it('apply to the innermost folder, by complete names', () => {
    const of = (source: string) => folderOf(source, access.folders);
    expect(['hr.md', 'hr/a.md', 'hr/salaries/a/b.md', 'hr/salaries.md', 'hrx/a.md', 'x/hr/a.md'].map(of)).to.deep.equal(
      ['', 'hr', 'hr/salaries', 'hr', '', ''],
    );
  });

  it('find nothing at all when the plan cannot be found out', async () => {
    const failing = createAccess(RULES, async () => Promise.reject(new Error('the store is down')));
    const failure = await failing.scopeOf(caller({ userId: 'ann' })).catch((error: Error) => error.message);
    expect(failure).to.equal('the store is down');
  });

  it('know the plan of the key, else of the account, else the default one, and no plan that is not configured', async () => {
    const accounts: Readonly<Record<string, string>> = { 'account:ann': 'staff', 'account:old': 'gone' };
    const settings = { plans: { staff: {}, guest: {}, free: {} }, defaultPlan: 'free' } as unknown as GatewaySettings;
    const get = async (key: string) => (accounts[key] ? { plan: accounts[key] } : undefined);
    const planOf = createCallerPlan({
      settings,
      books: { records: createRecordBook(await openMemory()) },
      stores: { shared: (name) => ({ get: name === 'accounts' ? get : undefined }) as never },
    });
    expect(await planOf(caller({ plan: 'guest', account: 'ann' }))).to.equal('guest');
    expect(await planOf(caller({ plan: 'gone', account: 'ann' }))).to.equal('staff');
    expect(await planOf(caller({ account: 'old' }))).to.equal('free');
    expect(await planOf(caller({ plan: 'constructor' }))).to.equal('free');
  });

  it('are refused when they contradict themselves or name a plan that is not there', () => {
    expect(() => checkRules(RULES, ['staff'])).not.to.throw();
    expect(() => checkRules(RULES, ['basic', 'pro'])).to.throw(
      'access.hr.plans.0 refers to the plan "staff", which is not in "plans". Use one of basic, pro.',
    );
    expect(() => checkRules(RULES, [])).to.throw('is not in "plans". Add it there.');
    const whole = `tg_${'a'.repeat(12)}_${'b'.repeat(49)}`;
    expect(() => checkRules({ a: { keys: [whole] } }, []))
      .to.throw('access.a.keys.0 contains a whole API key')
      .with.property('message')
      .that.does.not.include('bbb');
    expect(() => checkRules({ a: { everybody: true, users: ['u'] } }, [])).to.throw('combines everybody with users');
  });

  describe('in an index', () => {
    let shared: TestIndex;
    let alone: TestIndex;
    const job = { folders: access.folders, model: 'm' };
    before(async () => {
      shared = await openTestIndex(path.join(folder, 'shared'));
      shared.write({ ...HIDDEN, ...PUBLIC });
      await shared.update(job);
      alone = await openTestIndex(path.join(folder, 'alone'));
      alone.write(PUBLIC);
      await alone.update(job);
    });
    after(() => {
      shared.close();
      alone.close();
    });
    const search = (index: TestIndex, query: string, principal: Principal) =>
      access.scopeOf(principal).then((scope) => searchPassages(index.reader, query, 50, scope, undefined));
    const searchBoth = async (index: TestIndex, query: string, principal: Principal) =>
      index.searchBoth(query, 'm', await access.scopeOf(principal));

    it('a caller finds the same passages, in the same order with the same scores, as if the others were not there', async () => {
      for (const query of QUERIES) {
        expect(await search(shared, query, caller({})), query).to.deep.equal(await search(alone, query, caller({})));
        const both = await searchBoth(shared, query, caller({}));
        expect(both, `${query}, by meaning`).to.deep.equal(await searchBoth(alone, query, caller({})));
      }
    });

    it('two callers each find their own documents, also in sequence from the same vectors', async () => {
      const tables = createVectorTables(shared.reader, 'm');
      const sourcesOf = async (principal: Principal): Promise<readonly string[]> => {
        const scope = await access.scopeOf(principal);
        const table = await tables();
        const hits = searchPassages(shared.reader, 'salaries and bonus and prices', 50, scope, (depth) =>
          table.nearest(embedHashes('salaries bonus prices'), depth, scope.folders),
        );
        return hits
          .map(({ source }) => source)
          .filter((source) => source.includes('/'))
          .sort();
      };
      const ann = caller({ userId: 'ann' });
      const staff = caller({ plan: 'staff' });
      for (const _ of [1, 2]) {
        expect(await sourcesOf(ann)).to.deep.equal([
          'hr/salaries/bonus.md',
          'hr/salaries/list.md',
          'partners/prices.md',
        ]);
        expect(await sourcesOf(staff)).to.deep.equal(['hr/rules.md']);
        expect(await sourcesOf(caller({}))).to.deep.equal([]);
      }
    });

    it('a small folder of a caller is not ranked below public documents', async () => {
      const [first] = await search(shared, 'salary of Bob', caller({ userId: 'ann' }));
      expect(first?.source).to.equal('hr/salaries/list.md');
    });

    it('passages of two folders are ranked as those of one would be', async () => {
      const one = await openTestIndex(path.join(folder, 'one'));
      const two = await openTestIndex(path.join(folder, 'two'));
      try {
        const vocabulary = Array.from({ length: 40 }, (_, at) =>
          String.fromCharCode(97 + (at % 26), 97 + (at % 7), 120),
        );
        const files = Object.fromEntries(
          Array.from({ length: 60 }, (_, at) => {
            const words = Array.from({ length: 20 }, (_, nth) => vocabulary[(at * at + nth * (at + 3)) % 40]);
            return [`${at < 4 ? 'hr' : 'rest'}/${at}.md`, `# Same\n\n${words.join(' ')}`] as const;
          }),
        );
        for (const index of [one, two]) index.write(files);
        await one.update();
        await two.update({ folders: ['hr'] });
        const both = { folders: new Set(['', 'hr']), includes: () => true };
        for (const query of ['aax', 'bbx ccx', 'ddx eex ffx', vocabulary.slice(0, 12).join(' ')]) {
          expect(one.sources(query).length, query).to.be.above(0);
          expect(two.sources(query, both), query).to.deep.equal(one.sources(query));
        }
      } finally {
        one.close();
        two.close();
      }
    });

    it('a new rule applies immediately to indexed documents, and only its folder is read again', async () => {
      const index = await openTestIndex(path.join(folder, 'later'));
      try {
        index.write({ ...HIDDEN, ...PUBLIC });
        await index.update({ model: 'm' });
        for (const query of QUERIES) {
          const hits = [...(await search(index, query, caller({}))), ...(await searchBoth(index, query, caller({})))];
          expect(
            hits.filter(({ source }) => source.includes('/')),
            query,
          ).to.deep.equal([]);
        }
        const read: string[] = [];
        await index.update(job, { onFile: async ({ source }) => void read.push(source) });
        expect(read.sort()).to.deep.equal(Object.keys(HIDDEN).sort());
        for (const query of QUERIES)
          expect(await search(index, query, caller({})), query).to.deep.equal(await search(alone, query, caller({})));
      } finally {
        index.close();
      }
    });
  });

  it('are refused for a folder that is not there letter by letter, or is a link', async () => {
    const root = path.join(folder, 'root');
    mkdirSync(path.join(root, 'hr', 'salaries'), { recursive: true });
    symlinkSync(path.join(root, 'hr'), path.join(root, 'link'));
    await checkFolders({ '.': { users: ['a'] }, hr: { users: ['a'] }, 'hr/salaries': { users: ['a'] } }, root);
    for (const name of ['HR', 'hr/salary', 'link'])
      expect(String(await checkFolders({ [name]: { users: ['a'] } }, root).catch((error: Error) => error))).to.include(
        'is not a folder of the knowledge base',
      );
  });
});
