/** The search of the docs: in the browser, over one file that the build made. Nothing leaves this page. */

const MOST = 20;
const AROUND = 70;

const input = document.querySelector('#words');
const status = document.querySelector('#found');
const places = document.querySelector('#places');
const root = new URL('.', import.meta.url);

let index;

/** The sections of all pages; loaded at the first word. */
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
  // A failure is not kept.
  index.catch(() => {
    index = undefined;
  });
  return index;
}

/** How well a section fits; 0 where a word is missing. */
function scoreOf({ low, head }, words, phrase) {
  let score = 0;
  for (const word of words) {
    const at = low.indexOf(word);
    if (at < 0) return 0;
    const isWhole = at === 0 || !/[\p{L}\p{N}]/u.test(low[at - 1] ?? '');
    score += head.includes(word) ? 12 : isWhole ? 3 : 1;
  }
  if (words.length > 1 && low.includes(phrase)) score += 10;
  return score;
}

/** The text around the first word, with the words marked; built of nodes, so that no text becomes anything else. */
function excerptOf(text, words) {
  const low = text.toLowerCase();
  const first = Math.min(...words.map((word) => low.indexOf(word)).filter((at) => at >= 0), text.length);
  const from = first === text.length ? 0 : Math.max(0, first - AROUND);
  const shown = text.slice(from, from + 3 * AROUND);
  const parts = [from > 0 ? '… ' : ''];
  const pattern = new RegExp(words.map((word) => word.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|'), 'gi');
  let end = 0;
  for (const match of shown.matchAll(pattern)) {
    const mark = document.createElement('mark');
    mark.textContent = match[0];
    parts.push(shown.slice(end, match.index), mark);
    end = match.index + match[0].length;
  }
  return [...parts, shown.slice(end), from + shown.length < text.length ? ' …' : ''];
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
  const words = phrase.split(/\s+/).filter(Boolean);
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
  // Meanwhile something else may have been typed.
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
// As in many docs: a slash begins a search.
document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.target !== document.body) return;
  event.preventDefault();
  input.focus();
});
