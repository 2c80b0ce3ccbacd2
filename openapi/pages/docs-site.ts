/**
 * The docs as pages of HTML, which the gateway serves at `/docs/pages`: links between them are relative, so that they work below any
 * path, and nothing of them comes from elsewhere. A step of the build; none of it is in the package.
 */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parse, Renderer } from 'marked';
import type { Files } from '../docs-bundle.ts';

/** A page of the repository, and where it is served. */
interface Source {
  /** From the root of the repository, such as `docs/plugins/tts.md`. */
  readonly file: string;
  /** Below `/docs/pages/`, such as `plugins/tts.html`. */
  readonly page: string;
  readonly text: string;
}

/** What stands below one heading, for the search. */
interface Section {
  readonly page: string;
  readonly title: string;
  /** Empty above the first heading. */
  readonly heading: string;
  readonly anchor: string;
  readonly text: string;
}

/** Pages that are not in `docs/`. */
const OTHERS: Readonly<Record<string, string>> = Object.freeze({
  'README.md': 'start.html',
  'CHANGELOG.md': 'changes.html',
});
const FIRST = 'docs/README.md';

const GROUPS: readonly (readonly [folder: string, title: string])[] = [
  ['plugins', 'Plugins'],
  ['dialects', 'Client formats'],
  ['providers', 'Providers'],
];

/** Pages about the code, which operators do not need: they are in the repository alone. */
const CONTRIBUTORS = 'decisions';

/** Files that pages need beside them. */
const PARTS = ['pages.css', 'search.mjs'] as const;

/** Returns the pages, the index of their search and what they need, by name. */
export function renderDocsSite(root: string): Files {
  const sources = readPages(root);
  const sections: Section[] = [];
  const files = new Map<string, Buffer>();
  for (const source of sources) {
    const rendered = renderPage(source, sources);
    sections.push(...rendered.sections);
    files.set(source.page, Buffer.from(rendered.html));
  }
  files.set('search.json', Buffer.from(JSON.stringify(sections)));
  for (const name of PARTS) files.set(name, readFileSync(path.join(import.meta.dirname, name)));
  files.set('icon.svg', readFileSync(path.join(root, 'plugins/console/app/icon.svg')));
  return files;
}

/** The pages of the repository, in reading order. */
export function readPages(root: string): readonly Source[] {
  const read = (file: string): string => readFileSync(path.join(root, file), 'utf8');
  const found = readdirSync(path.join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md') && !name.startsWith(CONTRIBUTORS))
    .map((name) => `docs/${name.replaceAll(path.sep, '/')}`);
  const named = [...read(FIRST).matchAll(/\]\(([\w./-]+\.md)/g)].map(([, name = '']) => path.posix.join('docs', name));
  const order = [...new Set([FIRST, 'README.md', ...named, ...found.sort(), 'CHANGELOG.md'])];
  return order
    .filter((file) => found.includes(file) || file in OTHERS)
    .map((file) => ({ file, page: pageOf(file), text: read(file) }));
}

function pageOf(file: string): string {
  if (file === FIRST) return 'index.html';
  return OTHERS[file] ?? file.replace(/^docs\//, '').replace(/\.md$/, '.html');
}

/** One page, and what of it can be found. */
export function renderPage(
  source: Source,
  sources: readonly Source[],
): { readonly html: string; readonly sections: readonly Section[] } {
  const title = titleOf(source);
  const root = '../'.repeat(source.page.split('/').length - 1);
  const renderer = createRenderer(source, sources);
  const body = parse(source.text, { renderer, mangle: false, headerIds: false });
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)} – Tollgate</title>
<link rel="icon" href="${root}icon.svg">
<link rel="stylesheet" href="${root}pages.css">
<script type="module" src="${root}search.mjs"></script>
</head>
<body>
<a class="skip" href="#page">Skip to the page</a>
<header>
<a class="brand" href="${root}index.html">Tollgate docs</a>
<search>
<label for="words">Search</label>
<input id="words" type="search" autocomplete="off" spellcheck="false">
<p id="found" role="status"></p>
<ol id="places" aria-label="Places found"></ol>
</search>
<p><a href="${root}../../docs">API</a> <a href="${root}../config">Keys of the configuration</a></p>
</header>
<div class="frame">
${renderNav(source, sources, root)}
<main id="page" tabindex="-1">
${body}</main>
</div>
</body>
</html>
`;
  return { html, sections: splitSections(source, title) };
}

function renderNav(current: Source, sources: readonly Source[], root: string): string {
  const folderOf = ({ file }: Source): string => /^docs\/(\w+)\//.exec(file)?.[1] ?? '';
  const list = (pages: readonly Source[]): string =>
    `<ul>\n${pages
      .map((page) => {
        const mark = page === current ? ' aria-current="page"' : '';
        return `<li><a href="${root}${page.page}"${mark}>${escapeHtml(titleOf(page))}</a></li>`;
      })
      .join('\n')}\n</ul>`;
  const groups = GROUPS.map(([folder, title]) => {
    const isOpen = folderOf(current) === folder ? ' open' : '';
    const pages = sources.filter((page) => folderOf(page) === folder);
    return `<details${isOpen}><summary>${title}</summary>${list(pages)}</details>`;
  });
  const top = sources.filter((page) => folderOf(page) === '');
  return `<nav aria-label="Pages">\n${list(top)}\n${groups.join('\n')}\n</nav>`;
}

function titleOf({ text, file }: Pick<Source, 'text' | 'file'>): string {
  return plain(/^# (.+)$/m.exec(text)?.[1] ?? file);
}

/** Our own pages are plain Markdown; what looks like HTML in one is text, and comments are left out. */
function createRenderer(source: Source, sources: readonly Source[]): Renderer {
  const renderer = new Renderer();
  const anchors = createAnchors();
  const isKnown = (file: string): boolean => sources.some((each) => each.file === file);
  const target = (href: string): { readonly file: string; readonly anchor: string } => {
    const [name = '', anchor = ''] = href.split('#', 2);
    const file = name === '' ? source.file : path.posix.join(path.posix.dirname(source.file), name);
    return { file, anchor: anchor === '' ? '' : `#${anchor}` };
  };
  const from = path.posix.dirname(source.page);
  renderer.html = (html) => (html.trimStart().startsWith('<!--') ? '' : escapeHtml(html));
  renderer.heading = (html, level, raw) => {
    const anchor = anchors(raw);
    return `<h${level} id="${anchor}"><a class="anchor" href="#${anchor}">${html}</a></h${level}>\n`;
  };
  renderer.link = (href, _title, html) => {
    if (/^https?:/.test(href)) return `<a href="${escapeHtml(href)}" rel="noreferrer">${html}</a>`;
    const { file, anchor } = target(href);
    // What is no page of the docs is in the repository alone.
    if (!isKnown(file)) return `<span title="${escapeHtml(file)} of the repository">${html}</span>`;
    if (file === source.file) return `<a href="${escapeHtml(anchor || '#page')}">${html}</a>`;
    return `<a href="${escapeHtml(path.posix.relative(from, pageOf(file)) + anchor)}">${html}</a>`;
  };
  // Screenshots of the console take more than all texts; a gateway that serves these pages has the console itself.
  renderer.image = (_href, _title, text) => `<em>${escapeHtml(text)}</em>`;
  // What scrolls has to be reached by the keyboard.
  renderer.code = (code) => `<pre tabindex="0"><code>${escapeHtml(code)}\n</code></pre>\n`;
  renderer.table = (head, body) =>
    `<div class="table" tabindex="0"><table>\n<thead>\n${head}</thead>\n<tbody>\n${body}</tbody>\n</table></div>\n`;
  // A head without words is no head.
  renderer.tablecell = (html, { header }) =>
    header && html !== '' ? `<th scope="col">${html}</th>\n` : `<td>${html}</td>\n`;
  return renderer;
}

/** Anchors of the headings of a page, as GitHub makes them. */
function createAnchors(): (heading: string) => string {
  const counts = new Map<string, number>();
  return (heading) => {
    const anchor = heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-');
    const count = counts.get(anchor) ?? 0;
    counts.set(anchor, count + 1);
    return count === 0 ? anchor : `${anchor}-${count}`;
  };
}

/** What the search looks through: a page in pieces, each with the heading that it stands below. */
function splitSections({ text, page }: Source, title: string): readonly Section[] {
  const anchors = createAnchors();
  const sections: { heading: string; anchor: string; lines: string[] }[] = [{ heading: '', anchor: '', lines: [] }];
  let isCode = false;
  for (const line of text.split('\n')) {
    if (line.startsWith('```')) isCode = !isCode;
    const [, heading] = (!isCode && /^#+ (.+)$/.exec(line)) || [];
    if (heading !== undefined)
      sections.push({ heading: plain(heading), anchor: anchors(unlinked(heading)), lines: [] });
    else if (!line.startsWith('```') && !/^(<!--|\|[ |:-]+\|$)/.test(line)) sections.at(-1)?.lines.push(line);
  }
  return sections
    .map(({ heading, anchor, lines }) => ({ ...{ page, title, heading, anchor }, text: plain(lines.join(' ')) }))
    .filter((section) => section.heading !== '' || section.text !== '');
}

/** Text without the signs of Markdown. */
function plain(text: string): string {
  return unlinked(text)
    .replaceAll(/[`|]|\*\*/g, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim();
}

function unlinked(text: string): string {
  return text.replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, '$1');
}

function escapeHtml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
