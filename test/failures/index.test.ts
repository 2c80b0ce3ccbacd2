import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'chai';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { corpusJson } from '../support/corpus.ts';
import { formsOf } from '../support/gateways/failure-forms.ts';
import { type FormsOfFailures, withFailures } from '../support/pages/reliability-page.ts';
import { FAILURES } from './index.ts';
import { BREAKS, FAILED_RESPONSES } from './upstream-cases.ts';

const FORMS = JSON.parse(readFileSync(new URL('./forms.json', import.meta.url), 'utf8')) as FormsOfFailures;
const read = (file: string): string => readFileSync(path.join(PACKAGE_ROOT, file), 'utf8');

describe('the list of failures', () => {
  it('has every failure of the corpus, and no other', () => {
    const { cases } = corpusJson('gateway-cases/failures.json') as { cases: readonly { id: string }[] };
    expect(Object.keys(FAILURES)).to.deep.equal(cases.map(({ id }) => id));
  });

  it('points to existing tests that name the failure', () => {
    const missing = Object.entries(FAILURES).flatMap(([id, { tests }]) => {
      if (tests.length === 0) return [`${id}: no test`];
      return tests.flatMap((test) => {
        const [file = '', words = id] = test.split('#');
        return existsSync(path.join(PACKAGE_ROOT, file)) && read(file).includes(words) ? [] : [`${id}: ${test}`];
      });
    });
    expect(missing).to.deep.equal([]);
  });

  it('has every failure of a provider tested in each format in which it can occur', () => {
    const missing = Object.keys(FAILURES).filter((id) => /^[UC]/.test(id) && !FORMS[id]);
    expect(missing).to.deep.equal([]);
    for (const { title, stream } of [...BREAKS, ...FAILED_RESPONSES]) {
      const names = formsOf(stream).map(({ name }) => name);
      expect(FORMS[title.slice(0, 3)], title).to.include.members(names);
    }
  });

  it('matches docs/reliability.md (npm run reliability)', () => {
    const page = read('docs/reliability.md');
    expect(page).to.equal(withFailures(page, FAILURES, FORMS));
  });
});
