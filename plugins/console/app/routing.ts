import { computed, signal } from '@preact/signals';

/** Page and parameters are in the `#` fragment, so that every view is a link. */
const hash = signal(location.hash);
addEventListener('hashchange', () => {
  hash.value = location.hash;
});

export const route = computed(() => {
  const [path = '', query = ''] = hash.value.replace(/^#\/?/, '').split('?', 2);
  return {
    page: path || 'home',
    query: Object.fromEntries(new URLSearchParams(query)) as Readonly<Record<string, string | undefined>>,
  };
});

/** Link to a page with parameters; empty ones are omitted. */
export function linkTo(page: string, query: Readonly<Record<string, string | undefined>> = {}): string {
  const words = Object.entries(query).flatMap(([name, value]) =>
    value === undefined || value === '' ? [] : [[name, value]],
  );
  return `#/${page === 'home' ? '' : page}${words.length > 0 ? `?${new URLSearchParams(words)}` : ''}`;
}

/** Changes parameters of the current page; `undefined` removes one. */
export function setWords(words: Readonly<Record<string, string | undefined>>): void {
  location.hash = linkTo(route.value.page, { ...route.value.query, ...words });
}
