/** Search of the docs: runs in the browser on one index file from the build. Sends nothing over the network. */

const MOST = 20;
const AROUND = 70;

/** Stop words; used only if the query has no other word. */
const SMALL = new Set(
  'a an and are as at be by can do does for from how i if in is it its my no not of on or out that the their there they this to up was what when where which who why with you'.split(
    ' ',
  ),
);

const input = document.querySelector('#words');
const status = document.querySelector('#found');
const places = document.querySelector('#places');
const root = new URL('.', import.meta.url);

let index;

/** Loads the sections of all pages, at the first word typed. */
function loadIndex() {
  index ??= fetch(new URL('search.json', root))
    .then((response) => {
      if (!response.ok) throw new Error(`the gateway answered ${response.status}`);
      return response.json();
    })
    .then((sections) =>
      sections.map((section) => ({
        ...section,
        low: `${section.title} ${section.heading} ${section.text}`.toLowerCase(),
        head: `${section.title} ${section.heading}`.toLowerCase(),
      })),
    );
  // Failures are not cached.
  index.catch(() => {
    index = undefined;
  });
  return index;
}

/** Parses the query: each word must be the prefix of a word in the text. */
function readWords(phrase) {
  const all = phrase.split(/\s+/).filter(Boolean);
  const large = all.filter((word) => !SMALL.has(word));
  return (large.length > 0 ? large : all).map((word) => ({
    word,
    // Words that begin with a symbol, such as --json, match anywhere.
    pattern: new RegExp(
      `${/^[\p{L}\p{N}]/u.test(word) ? '(?<![\\p{L}\\p{N}])' : ''}${word.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')}`,
      'gu',
    ),
  }));
}

/** Relevance of a section; 0 if a word is missing. */
function scoreOf({ low, head }, words, phrase) {
  let score = 0;
  for (const { pattern } of words) {
    const times = low.match(pattern)?.length ?? 0;
    if (times === 0) return 0;
    score += Math.min(times, 4) + (head.search(pattern) >= 0 ? 12 : 0);
  }
  if (words.length > 1 && low.includes(phrase)) score += 10;
  return score;
}

/**
 * Excerpt around the most matches, with matches marked. It is built of DOM nodes, so that text is never parsed as HTML.
 */
function excerptOf(text, words) {
  const low = text.toLowerCase();
  const places = words.flatMap(({ word, pattern }) =>
    [...low.matchAll(pattern)].slice(0, 50).map(({ index: at }) => ({ at, word, end: at + word.length })),
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
  let sections;
  try {
    sections = await loadIndex();
  } catch (error) {
    status.textContent = `The search could not be loaded: ${error.message}. Load the page anew.`;
    return;
  }
  // Skip outdated results: the query may have changed.
  if (input.value.trim().toLowerCase() !== phrase) return;
  const found = sections
    .map((section) => ({ section, score: scoreOf(section, words, phrase) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score);
  const shown = found.slice(0, MOST);
  status.textContent =
    found.length === 0
      ? 'Nothing was found. Try fewer words, or a part of one.'
      : found.length > MOST
        ? `${found.length} places; the first ${MOST}:`
        : `${found.length} ${found.length === 1 ? 'place' : 'places'}:`;
  places.replaceChildren(...shown.map(({ section }) => placeOf(section, words)));
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
