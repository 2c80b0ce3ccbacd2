import path from 'node:path';
import { expect } from 'chai';
import { PACKAGE_ROOT } from '../../config/package-root.ts';
import { renderDocsSite } from '../../openapi/pages/docs-site.ts';

interface Section {
  readonly page: string;
}

interface DocsSearch {
  prepare(sections: readonly Section[]): readonly object[];
  rank(pages: readonly object[], phrase: string): readonly Section[];
}

/** Queries of operators, and the expected first page. */
const QUERIES = [
  ['rotate vendor key', 'how-to/rotate-a-vendor-key.html'],
  ['add model alias', 'how-to/add-a-model-alias.html'],
  ['fallback when provider down', 'how-to/add-a-model-alias.html'],
  ['budget end 402', 'how-to/set-a-budget.html'],
  ['limit team', 'how-to/limit-a-team.html'],
  ['replicas nginx', 'how-to/run-replicas-behind-nginx.html'],
  ['https proxy', 'how-to/use-an-https-proxy.html'],
  ['claude code sso', 'how-to/claude-code-with-company-sign-in.html'],
  ['leaking key', 'how-to/stop-a-leaking-key.html'],
  ['backup', 'how-to/back-up-and-restore.html'],
  ['postgres', 'how-to/move-to-postgres-or-redis.html'],
  ['price unknown model_not_allowed', 'how-to/set-a-model-price.html'],
  ['erase user gdpr', 'how-to/erase-a-user.html'],
] as const;

describe('the search of the docs', () => {
  let sections: readonly Section[];
  let search: (phrase: string) => readonly string[];

  before(async () => {
    const index = renderDocsSite(PACKAGE_ROOT).get('search.json');
    sections = JSON.parse(String(index)) as readonly Section[];
    // Script that pages load.
    await import(path.join(PACKAGE_ROOT, 'openapi/pages/rank.js'));
    const { prepare, rank } = (globalThis as unknown as { readonly docsSearch: DocsSearch }).docsSearch;
    const pages = prepare(sections);
    search = (phrase) => [...new Set(rank(pages, phrase).map(({ page }) => page))];
  });

  for (const [phrase, page] of QUERIES)
    it(`finds ${page} first for "${phrase}"`, () => {
      expect(search(phrase)[0], search(phrase).slice(0, 4).join(', ')).to.equal(page);
    });

  it('leaves out decisions and the changelog', () => {
    expect(sections.filter(({ page }) => /^decisions\/|^changes\.html$/.test(page))).to.deep.equal([]);
  });

  it('finds pages that have some of the words when none has all, and nothing for a word that none has', () => {
    expect(search('postgres zebra')[0]).to.equal('how-to/move-to-postgres-or-redis.html');
    expect(search('zebra')).to.deep.equal([]);
    expect(search('<img zebra>')).to.deep.equal([]);
    expect(search('[*')).to.deep.equal([]);
  });
});
