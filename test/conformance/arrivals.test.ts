import { expect } from 'chai';
import { partOf } from '../support/generated-cases.ts';
import { arrivedCell, type DialectRuns, openDialectRuns } from '../support/pages/dialect-runs.ts';
import { loadProviders } from '../support/plugins/all-providers.ts';
import { type Cell, itShows } from './cells.ts';
import { SAMPLES } from './provider-samples.ts';

const PROVIDERS = await loadProviders();

describe('the arrival at a vendor', () => {
  let runs: DialectRuns;
  before(async () => {
    runs = await openDialectRuns(PROVIDERS);
  });
  after(() => runs?.close());

  for (const [at, provider] of PROVIDERS.entries())
    for (const field of partOf(Object.keys(SAMPLES), at)) {
      // The value of the cell is known after the test has run. The reporter of the matrix reads it then.
      const cell: { -readonly [Name in keyof Cell]: Cell[Name] } = arrivedCell(provider, field, undefined);
      itShows(it, cell, `of ${field} at ${provider.name} is reported if it fails (E22)`, async () => {
        const arrival = await runs.arrivalOf(provider, field);
        Object.assign(cell, arrivedCell(provider, field, arrival));
        if (arrival?.is === 'left out') expect(arrival.isReported, JSON.stringify(arrival)).to.equal(true);
      });
    }
});
