import { useState } from 'preact/hooks';
import { get, type Page } from '../api.ts';
import { count } from '../format.ts';
import { linkTo } from '../routing.ts';
import type { Model } from '../shapes.ts';
import { Badge, PageHead, Problem, Search, Spinner, Table, useLoad } from '../ui.tsx';

/** What can be called now, and what it costs. */
export function Models() {
  const [word, setWord] = useState('');
  const models = useLoad('models', () => get<Page<Model>>('/catalog', { limit: 1000 }));
  const rows = (models.data?.data ?? []).filter(({ id }) => id.includes(word));
  return (
    <>
      <PageHead
        title="Models"
        note="Prices are US dollars for a million tokens. A provider without a key cannot be called."
      />
      <search class="filters" aria-label="Which models">
        <Search label="Name has" value={word} onPick={setWord} />
      </search>
      <Problem error={models.error} retry={models.reload} />
      <Spinner of={models} />
      {models.data && (
        <Table
          label="Models"
          rows={rows}
          keyOf={({ id }) => id}
          empty="No model has this in its name."
          columns={[
            { name: 'Model', cell: ({ id }) => <b>{id}</b> },
            {
              name: 'Now',
              cell: ({ is_callable, targets }) => (
                <>
                  <Badge tone={is_callable ? 'good' : 'dim'}>{is_callable ? 'callable' : 'no key'}</Badge>{' '}
                  {targets && <span class="muted">alias of {targets.join(', then ')}</span>}
                </>
              ),
            },
            { name: 'Context', isNumber: true, isExtra: true, cell: ({ context_window }) => count(context_window) },
            { name: 'Ends', isExtra: true, cell: ({ shutdown }) => shutdown ?? '' },
            { name: 'Input', isNumber: true, cell: ({ price }) => dollars(price?.input) },
            { name: 'Cached', isNumber: true, isExtra: true, cell: ({ price }) => dollars(price?.cached_input) },
            { name: 'Output', isNumber: true, cell: ({ price }) => dollars(price?.output) },
            {
              name: 'Try it',
              isQuiet: true,
              cell: ({ id, is_callable }) =>
                is_callable && (
                  <a href={linkTo('playground', { model: id })} aria-label={`Try it: ${id}`}>
                    Try it
                  </a>
                ),
            },
          ]}
        />
      )}
      {models.data?.has_more && (
        <p class="muted">These are the first {models.data.data.length}; the API has them all.</p>
      )}
    </>
  );
}

function dollars(price: number | undefined): string {
  return price === undefined ? '–' : `$${price}`;
}
