import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { corpusJson } from '../support/corpus.ts';
import { formsOf } from '../support/gateways/fault-forms.ts';
import { type FormsOfFaults, withFaults } from '../support/pages/reliability-page.ts';
import { FAULTS } from './index.ts';
import { BREAKS, NO_ANSWERS } from './upstream-cases.ts';

const FORMS = JSON.parse(readFileSync(new URL('./forms.json', import.meta.url), 'utf8')) as FormsOfFaults;
const read = (file: string): string => readFileSync(path.join(PACKAGE_ROOT, file), 'utf8');

describe('the list of faults', () => {
  it('has every fault of the corpus, and no other', () => {
    const { cases } = corpusJson('gateway-cases/faults.json') as { cases: readonly { id: string }[] };
    expect(Object.keys(FAULTS)).to.deep.equal(cases.map(({ id }) => id));
  });

  it('points to existing tests that name the fault', () => {
    const missing = Object.entries(FAULTS).flatMap(([id, { tests }]) => {
      if (tests.length === 0) return [`${id}: no test`];
      return tests.flatMap((test) => {
        const [file = '', words = id] = test.split('#');
        return existsSync(path.join(PACKAGE_ROOT, file)) && read(file).includes(words) ? [] : [`${id}: ${test}`];
      });
    });
    expect(missing).to.deep.equal([]);
  });

  it('has every fault of a provider tested in each format in which it can occur', () => {
    const missing = Object.keys(FAULTS).filter((id) => /^[UC]/.test(id) && !FORMS[id]);
    expect(missing).to.deep.equal([]);
    for (const { title, stream } of [...BREAKS, ...NO_ANSWERS]) {
      const names = formsOf(stream).map(({ name }) => name);
      expect(FORMS[title.slice(0, 3)], title).to.include.members(names);
    }
  });

  it('matches docs/reliability.md (npm run reliability)', () => {
    const page = read('docs/reliability.md');
    expect(page).to.equal(withFaults(page, FAULTS, FORMS));
  });
});
