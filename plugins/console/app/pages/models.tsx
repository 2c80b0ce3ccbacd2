import { Aliases } from '../alias-picture.tsx';
import { get, type Page } from '../api.ts';
import { count } from '../format.ts';
import { ModelState } from '../model-state.tsx';
import { linkTo, route, setWords } from '../routing.ts';
import type { Model } from '../shapes.ts';
import { Name, PageHead, Problem, Search, Spinner, Table, useLoad } from '../ui.tsx';

/** Callable models with prices. */
export function Models() {
  const word = route.value.query['name'] ?? '';
  const models = useLoad('models', () => get<Page<Model>>('/catalog', { limit: 1000 }));
  const found = (models.data?.data ?? []).filter(({ id }) => id.includes(word));
  const rows = found.filter(({ targets }) => targets === null);
  const aliases = found.filter(({ targets }) => targets !== null);
  return (
    <>
      <PageHead
        title="Models"
        note="Prices in US dollars per million tokens. Providers without a key cannot be called."
      />
      <search class="filters" aria-label="Which models">
        <Search label="Name contains" value={word} onPick={(name) => setWords({ name })} />
      </search>
      <Problem error={models.error} retry={models.reload} />
      <Spinner of={models} />
      {aliases.length > 0 && <Aliases aliases={aliases} />}
      {models.data && (
        <Table
          label="Models"
          rows={rows}
          keyOf={({ id }) => id}
          empty={aliases.length > 0 ? 'No other model name contains this.' : 'No model name contains this.'}
          columns={[
            { name: 'Model', cell: ({ id }) => <Name text={id} /> },
            {
              name: 'Now',
              cell: (model) => <ModelState model={model} />,
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
