import path from 'node:path';
import { expect } from 'chai';
import fc from 'fast-check';
import { createVectorTable, fuseRankings, searchPassages } from '../../../../plugins/agents/rag/retrieve.ts';
import { toQueryWords } from '../../../../plugins/agents/rag/terms.ts';
import { DOCUMENTS, QUESTIONS } from '../../../fixtures/rag-documents.ts';
import { EVERYTHING, openTestIndex, type TestIndex } from '../../../support/agents/rag-index.ts';
import { anyText } from '../../../support/arbitrary-text.ts';
import { useTempFolder } from '../../../support/folders.ts';
import { generatedCases } from '../../../support/generated-cases.ts';

const MODEL = 'echo/echo-embedding';

describe('search in the knowledge base', () => {
  const folder = useTempFolder('rag-search');
  let index: TestIndex;
  before(async () => {
    index = await openTestIndex(path.join(folder, 'index'));
    index.write(DOCUMENTS);
    await index.update({ model: MODEL });
  });
  after(() => index.close());

  for (const [question, source] of QUESTIONS) {
    it(`finds ${source} first for "${question}", by words alone`, () => {
      expect(index.sources(question)[0]).to.equal(source);
    });
    it(`finds ${source} for "${question}", by words and vectors of hashed words`, async () => {
      const hits = await index.searchBoth(question, MODEL);
      expect(hits.slice(0, 2).map((hit) => hit.source)).to.include(source);
    });
  }

  const SYNTAX = [
    '"',
    '""',
    'a"b',
    'refunds AND',
    'NOT money',
    'NEAR(a b)',
    'title:refunds',
    'refund*',
    '^refunds',
    '-money',
    '(',
    'a\u0000b',
    '{title}: x',
    ';DROP TABLE chunks',
    '+',
    '\ud800',
    '💥',
  ];
  for (const query of SYNTAX) {
    it(`treats ${JSON.stringify(query)} as words, not as syntax`, () => {
      expect(() => searchPassages(index.reader, query, 5, EVERYTHING, undefined)).not.to.throw();
    });
  }

  it('accepts any text as a query', () => {
    fc.assert(
      fc.property(anyText({ maxLength: 200 }), (query) => {
        searchPassages(index.reader, query, 5, EVERYTHING, undefined);
      }),
      { numRuns: generatedCases(500) },
    );
  });

  it('finds nothing for a query without words', () => {
    expect(toQueryWords('?! …')).to.deep.equal([]);
    expect(index.sources('?! …')).to.deep.equal([]);
  });

  it('ignores common words, unless there are no others', () => {
    const words = (query: string) =>
      toQueryWords(query).map(({ phrase }) => /"(.*)"/.exec(phrase)?.[1]?.replace(/\s/g, ''));
    expect(words('what is the refund')).to.deep.equal(['refund']);
    expect(words('who is it')).to.deep.equal(['who', 'is', 'it']);
    expect(words('犬を飼うときの手続き')).to.include.members(['犬', '手続き']).and.not.include('を');
  });

  it('returns the requested number, best first, scores between 0 and 1', async () => {
    const hits = await index.searchBoth('days', MODEL);
    expect(hits.length).to.be.within(2, 10);
    for (const [at, { score }] of hits.entries()) expect(score).to.be.within(0, hits[at - 1]?.score ?? 1);
  });

  it('ranks a result first that is first in every ranking', () => {
    expect(
      fuseRankings([
        [8, 7],
        [7, 9],
      ])[0],
    ).to.equal(7);
    expect(fuseRankings([])).to.deep.equal([]);
  });

  const SCORES: readonly (readonly [what: string, query: string, from: number, to: number])[] = [
    ['1 to a passage with every word of the query', 'refunds', 1, 1],
    ['less to one with a common word and not the rare one', 'refund saxophone', 0.05, 0.6],
    ['less to one with a word that is only like the one that is looked for', 'warehouseman', 0.3, 0.9],
  ];
  for (const [what, query, from, to] of SCORES)
    it(`returns ${what} (E23)`, () => {
      const [best] = searchPassages(index.reader, query, 5, EVERYTHING, undefined);
      expect(best?.score).to.be.within(from, to);
    });

  it('ranks vectors by cosine, and equal ones by their order', () => {
    const vector = (...values: number[]) => Float32Array.from(values);
    const table = createVectorTable(1, [
      { id: 3, folder: '', vector: vector(1, 0) },
      { id: 5, folder: '', vector: vector(0, 1) },
      { id: 9, folder: 'x', vector: vector(0, 1) },
      { id: 11, folder: '', vector: vector(0.6, 0.8) },
    ]);
    const both = new Set(['', 'x']);
    const ids = (folders: ReadonlySet<string>) => table.nearest(vector(0, 1), 3, folders).map(({ id }) => id);
    expect(ids(both)).to.deep.equal([5, 9, 11]);
    expect(table.nearest(vector(0, 1), 1, both)[0]?.cosine).to.equal(1);
    expect(table.nearest(vector(0, 1), 10, both)).to.have.length(4);
    expect(table.nearest(vector(0, 1, 0), 3, both), 'a vector of another model').to.deep.equal([]);
    expect(ids(new Set([''])), 'without another folder').to.deep.equal([5, 11, 3]);
    expect([table.hasAny(new Set(['x'])), table.hasAny(new Set(['y']))]).to.deep.equal([true, false]);
  });
});
