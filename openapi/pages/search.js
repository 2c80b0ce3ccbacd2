/** Search of the docs: runs in the browser on one index file from the build. Sends nothing over the network. */
(() => {
const MOST = 20;
const AROUND = 70;

const { prepare, rank, readWords } = globalThis.docsSearch;
const input = document.querySelector('#words');
const status = document.querySelector('#found');
const places = document.querySelector('#places');
const root = new URL('.', document.currentScript.src);

let index;

/** A page opened as a file cannot fetch, so its index is a script. */
function loadScript() {
  return new Promise((resolve, reject) => {
    const script = document.createElement('script');
    script.src = new URL('search-index.js', root).href;
    script.addEventListener('load', () => resolve(globalThis.docsIndex));
    script.addEventListener('error', () => reject(new Error('search-index.js is missing')));
    document.head.append(script);
  });
}

async function fetchIndex() {
  const response = await fetch(new URL('search.json', root));
  if (!response.ok) throw new Error(`status ${response.status}`);
  return response.json();
}

/** Loads the sections of all pages, at the first word typed. Failures are not cached. */
function loadIndex() {
  index ??= (location.protocol === 'file:' ? loadScript() : fetchIndex()).then(prepare);
  index.catch(() => {
    index = undefined;
  });
  return index;
}

/**
 * Excerpt around the most matches, with matches marked. It is built of DOM nodes, so that text is never parsed as HTML.
 */
function excerptOf(text, words) {
  const low = text.toLowerCase();
  const places = words.flatMap(({ word, pattern }) =>
    [...low.matchAll(pattern)].slice(0, 50).map(({ index: at, 0: { length } }) => ({ at, word, end: at + length })),
  );
  places.sort((a, b) => a.at - b.at);
  const near = (from) =>
    new Set(places.filter(({ at }) => at >= from && at < from + 2 * AROUND).map(({ word }) => word)).size;
  const best = places.reduce((known, { at }) => (near(at) > near(known) ? at : known), places[0]?.at ?? 0);
  // Start at a whole word.
  const from = best <= AROUND ? 0 : low.indexOf(' ', best - AROUND) + 1;
  const until = Math.min(from + 3 * AROUND, text.length);
  const parts = [from > 0 ? '… ' : ''];
  let done = from;
  for (const { at, end } of places) {
    if (at < done || end > until) continue;
    const mark = document.createElement('mark');
    mark.textContent = text.slice(at, end);
    parts.push(text.slice(done, at), mark);
    done = end;
  }
  return [...parts, text.slice(done, until), until < text.length ? ' …' : ''];
}

function placeOf({ page, title, heading, anchor, text }, words) {
  const item = document.createElement('li');
  const link = document.createElement('a');
  const target = new URL(page, root);
  target.hash = anchor;
  link.href = target.href;
  link.textContent = heading === '' || heading === title ? title : `${title}: ${heading}`;
  link.addEventListener('click', clear);
  const excerpt = document.createElement('p');
  excerpt.append(...excerptOf(text, words));
  item.append(link, excerpt);
  return item;
}

function clear() {
  input.value = '';
  status.textContent = '';
  places.replaceChildren();
}

async function search() {
  const phrase = input.value.trim().toLowerCase();
  const words = readWords(phrase);
  if (words.length === 0) {
    clear();
    return;
  }
  let pages;
  try {
    pages = await loadIndex();
  } catch (error) {
    status.textContent = `The search could not be loaded: ${error.message}. Reload the page.`;
    return;
  }
  // Skip outdated results: the query may have changed.
  if (input.value.trim().toLowerCase() !== phrase) return;
  const found = rank(pages, phrase);
  const shown = found.slice(0, MOST);
  status.textContent =
    found.length === 0
      ? 'Nothing was found. Try fewer words, or a part of one.'
      : found.length > MOST
        ? `${found.length} places; the first ${MOST}:`
        : `${found.length} ${found.length === 1 ? 'place' : 'places'}:`;
  places.replaceChildren(...shown.map((section) => placeOf(section, words)));
}

input.addEventListener('input', () => void search());
input.addEventListener('keydown', (event) => {
  if (event.key === 'Escape') clear();
  if (event.key === 'ArrowDown' || event.key === 'Enter') {
    event.preventDefault();
    places.querySelector('a')?.focus();
  }
});
places.addEventListener('keydown', (event) => {
  if (event.key === 'Escape') input.focus();
  if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return;
  event.preventDefault();
  const item = event.target.closest('li');
  const next = event.key === 'ArrowDown' ? item?.nextElementSibling : item?.previousElementSibling;
  (next?.querySelector('a') ?? (event.key === 'ArrowUp' ? input : undefined))?.focus();
});
// A slash focuses the search, as in many docs.
document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.target !== document.body) return;
  event.preventDefault();
  input.focus();
});
})();
