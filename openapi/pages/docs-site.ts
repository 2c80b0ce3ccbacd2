/**
 * Renders the docs as HTML and Markdown with relative links. The gateway serves them at `/docs/pages`, and `npm run
 * docs:site` writes them as a site. Part of the build; the renderer is not in the package.
 */
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parse, Renderer } from 'marked';
import type { Files } from '../docs-bundle.ts';

/** Page of the repository, and its served path. */
interface Source {
  /** Path from the root of the repository, such as `docs/plugins/tts.md`. */
  readonly file: string;
  /** Path below `/docs/pages/`, such as `plugins/tts.html`. */
  readonly page: string;
  readonly text: string;
}

/** Content below one heading, for the search. */
interface Section {
  readonly page: string;
  readonly title: string;
  /** Empty for text above the first heading. */
  readonly heading: string;
  readonly anchor: string;
  readonly text: string;
  /** Factor of its score: how-to pages come first. */
  readonly weight: number;
}

/** Pages outside of `docs/`. */
const OTHERS: Readonly<Record<string, string>> = Object.freeze({
  'README.md': 'start.html',
  'CHANGELOG.md': 'changes.html',
});
const FIRST = 'docs/README.md';

/** Groups of the navigation: the chapters of docs/README.md, then folders that it does not list page by page. */
const KINDS = ['Start', 'How to', 'Reference', 'Explanation'] as const;
const FOLDERS: Readonly<Record<string, string>> = Object.freeze({ providers: 'Providers', decisions: 'Decisions' });

/** Pages excluded from the search: history and decisions. */
const NOT_SEARCHED = /^(?:CHANGELOG\.md|docs\/README\.md|docs\/decisions\/.*)$/;
const WEIGHTS: Readonly<Record<string, number>> = Object.freeze({ 'How to': 1.6, Start: 1.1, Reference: 1 });
const WEIGHT_OF_OTHERS = 0.7;

/** Additional files of the pages. */
const PARTS = ['pages.css', 'rank.js', 'search.js'] as const;

const SUMMARY =
  'A self-hosted gateway for language models: one API in front of many vendors, with keys, budgets, limits and fallbacks.';

export interface SiteOptions {
  /**
   * True for a standalone site: with pictures and decisions, and without links to the gateway. A page that is opened as
   * a file can load its index.
   */
  readonly isAlone?: boolean;
}

/** Pages about the code, which a gateway does not serve to operators. */
const CONTRIBUTORS = 'docs/decisions/';

/** Returns the pages, the index of their search and additional files, by name. */
export function renderDocsSite(root: string, { isAlone = false }: SiteOptions = {}): Files {
  const sources = readPages(root).filter(({ file }) => isAlone || !file.startsWith(CONTRIBUTORS));
  const sections: Section[] = [];
  const files = new Map<string, Buffer>();
  for (const source of sources) {
    const rendered = renderPage(source, sources, { isAlone });
    if (!NOT_SEARCHED.test(source.file)) sections.push(...rendered.sections);
    files.set(source.page, Buffer.from(rendered.html));
    files.set(markdownPage(source.page), Buffer.from(renderMarkdown(source, sources)));
  }
  files.set('search.json', Buffer.from(JSON.stringify(sections)));
  files.set('llms.txt', Buffer.from(renderList(sources)));
  for (const name of PARTS) files.set(name, readFileSync(path.join(import.meta.dirname, name)));
  files.set('icon.svg', readFileSync(path.join(root, 'plugins/console/app/icon.svg')));
  if (!isAlone) return files;
  files.set('search-index.js', Buffer.from(`globalThis.docsIndex = ${JSON.stringify(sections)};\n`));
  for (const name of readdirSync(path.join(root, 'docs/images')))
    files.set(`images/${name}`, readFileSync(path.join(root, 'docs/images', name)));
  return files;
}

/** Lists the pages of the repository in reading order. */
export function readPages(root: string): readonly Source[] {
  const read = (file: string): string => readFileSync(path.join(root, file), 'utf8');
  const found = readdirSync(path.join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name.replaceAll(path.sep, '/')}`);
  const named = [...read(FIRST).matchAll(/\]\(([\w./-]+\.md)/g)].map(([, name = '']) => path.posix.join('docs', name));
  const order = [...new Set([FIRST, 'README.md', ...named, ...found.sort(), 'CHANGELOG.md'])];
  return order
    .filter((file) => found.includes(file) || file in OTHERS)
    .map((file) => ({ file, page: pageOf(file), text: read(file) }));
}

/** Chapters of docs/README.md by page, read once for all pages of a site. */
const chapters = new WeakMap<readonly Source[], ReadonlyMap<string, string>>();

function chaptersOf(sources: readonly Source[]): ReadonlyMap<string, string> {
  const known = chapters.get(sources);
  if (known) return known;
  const list = sources.find((source) => source.file === FIRST)?.text ?? '';
  const found = new Map<string, string>();
  for (const chapter of list.split(/^## /m).slice(1)) {
    const [title = ''] = chapter.split('\n');
    for (const [, name = ''] of chapter.matchAll(/\]\(([\w./-]+\.md)\)/g)) {
      const file = path.posix.join('docs', name);
      if (!found.has(file)) found.set(file, title);
    }
  }
  chapters.set(sources, found);
  return found;
}

/** Chapter of docs/README.md that lists a page, or the group of its folder. */
function kindOf({ file }: Pick<Source, 'file'>, sources: readonly Source[]): string {
  const folder = /^docs\/(\w+)\//.exec(file)?.[1] ?? '';
  return FOLDERS[folder] ?? chaptersOf(sources).get(file) ?? 'Reference';
}

const markdownPage = (page: string): string => page.replace(/\.html$/, '.md');

/** Markdown of a page with links to served files. Links to other files of the repository become text. */
function renderMarkdown(source: Source, sources: readonly Source[]): string {
  const from = path.posix.dirname(source.page);
  const served = (name: string): string | undefined => {
    const file = path.posix.join(path.posix.dirname(source.file), name);
    if (file.startsWith('docs/images/')) return file.replace(/^docs\//, '');
    return sources.some((each) => each.file === file) ? markdownPage(pageOf(file)) : undefined;
  };
  const relink = (text: string): string =>
    text.replaceAll(
      /(!?\[([^\]]*)\])\((?!https?:)([^)#\s]+)(#[^)\s]*)?\)/g,
      (_link, label: string, words: string, name: string, anchor = '') => {
        const target = served(name);
        return target === undefined ? words : `${label}(${path.posix.relative(from, target)}${anchor})`;
      },
    );
  // Code is unchanged.
  return source.text
    .split(/(^```[\s\S]*?^```$)/m)
    .map((part, at) => (at % 2 === 1 ? part : relink(part)))
    .join('');
}

/** `llms.txt`: all pages as Markdown, by kind. */
function renderList(sources: readonly Source[]): string {
  const groups = [...KINDS, ...Object.values(FOLDERS)].map((kind) => {
    const pages = sources.filter((source) => source.file !== FIRST && kindOf(source, sources) === kind);
    return `## ${kind}\n\n${pages.map((page) => `- [${titleOf(page)}](${markdownPage(page.page)})`).join('\n')}\n`;
  });
  return `# Tollgate\n\n> ${SUMMARY}\n\n${groups.join('\n')}`;
}

function pageOf(file: string): string {
  if (file === FIRST) return 'index.html';
  return OTHERS[file] ?? file.replace(/^docs\//, '').replace(/\.md$/, '.html');
}

/** Renders one page as HTML, and extracts its sections for the search. */
export function renderPage(
  source: Source,
  sources: readonly Source[],
  { isAlone = false }: SiteOptions = {},
): { readonly html: string; readonly sections: readonly Section[] } {
  const title = titleOf(source);
  const root = '../'.repeat(source.page.split('/').length - 1);
  const renderer = createRenderer(source, sources, isAlone);
  const body = parse(source.text, { renderer, mangle: false, headerIds: false });
  const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)} – Tollgate</title>
<link rel="icon" href="${root}icon.svg">
<link rel="stylesheet" href="${root}pages.css">
<link rel="alternate" type="text/markdown" href="${root}${markdownPage(source.page)}">
<script defer src="${root}rank.js"></script>
<script defer src="${root}search.js"></script>
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
<p>${isAlone ? '' : `<a href="${root}../../docs">API</a> <a href="${root}../config">All options</a> `}<a href="${root}${markdownPage(source.page)}">Markdown</a></p>
</header>
<div class="frame">
${renderNav(source, sources, root)}
<main id="page" tabindex="-1">
${body}</main>
</div>
</body>
</html>
`;
  const weight = WEIGHTS[kindOf(source, sources)] ?? WEIGHT_OF_OTHERS;
  return { html, sections: splitSections(source, title, weight) };
}

function renderNav(current: Source, sources: readonly Source[], root: string): string {
  const own = kindOf(current, sources);
  const groups = [...KINDS, ...Object.values(FOLDERS)].map((kind) => {
    const pages = sources.filter((page) => page.file !== FIRST && kindOf(page, sources) === kind);
    const items = pages.map((page) => {
      const mark = page === current ? ' aria-current="page"' : '';
      return `<li><a href="${root}${page.page}"${mark}>${escapeHtml(titleOf(page))}</a></li>`;
    });
    const isOpen = current.file === FIRST ? kind === 'Start' || kind === 'How to' : kind === own;
    return `<details${isOpen ? ' open' : ''}><summary>${kind}</summary><ul>\n${items.join('\n')}\n</ul></details>`;
  });
  return `<nav aria-label="Pages">\n${groups.join('\n')}\n</nav>`;
}

function titleOf({ text, file }: Pick<Source, 'text' | 'file'>): string {
  return plain(/^# (.+)$/m.exec(text)?.[1] ?? file);
}

/** HTML of pictures with a dark version. */
const PICTURE = /^\s*(?:<\/?picture>|<source media="[^"]*" srcset="[^"]*">|<img alt="[^"]*" src="[^"]*">)+\s*$/;

/** Our pages are plain Markdown: other HTML is shown as text, and comments are omitted. */
function createRenderer(source: Source, sources: readonly Source[], isAlone: boolean): Renderer {
  const renderer = new Renderer();
  const anchors = createAnchors();
  const isKnown = (file: string): boolean => sources.some((each) => each.file === file);
  const target = (href: string): { readonly file: string; readonly anchor: string } => {
    const [name = '', anchor = ''] = href.split('#', 2);
    const file = name === '' ? source.file : path.posix.join(path.posix.dirname(source.file), name);
    return { file, anchor: anchor === '' ? '' : `#${anchor}` };
  };
  const from = path.posix.dirname(source.page);
  const imageOf = (href: string): string =>
    escapeHtml(path.posix.relative(from, target(href).file.replace(/^docs\//, '')));
  renderer.html = (html) => {
    if (html.trimStart().startsWith('<!--')) return '';
    if (!PICTURE.test(html)) return escapeHtml(html);
    const rewritten = html.replaceAll(
      /(src|srcset)="([^"]+)"/g,
      (_, name: string, href: string) => `${name}="${imageOf(href)}"`,
    );
    if (isAlone) return rewritten;
    const text = /alt="([^"]*)"/.exec(html)?.[1];
    return text === undefined ? '' : `<em>${text}</em>`;
  };
  renderer.heading = (html, level, raw) => {
    const anchor = anchors(raw);
    return `<h${level} id="${anchor}"><a class="anchor" href="#${anchor}">${html}</a></h${level}>\n`;
  };
  renderer.link = (href, _title, html) => {
    if (/^https?:/.test(href)) return `<a href="${escapeHtml(href)}" rel="noreferrer">${html}</a>`;
    const { file, anchor } = target(href);
    // Other files exist in the repository alone.
    if (!isKnown(file)) return `<span title="${escapeHtml(file)} of the repository">${html}</span>`;
    if (file === source.file) return `<a href="${escapeHtml(anchor || '#page')}">${html}</a>`;
    return `<a href="${escapeHtml(path.posix.relative(from, pageOf(file)) + anchor)}">${html}</a>`;
  };
  renderer.image = (href, _title, text) => {
    // Omit screenshots: they are larger than all texts together, and a gateway that serves these pages has the console
    // itself.
    if (!isAlone) return `<em>${escapeHtml(text)}</em>`;
    return `<img src="${imageOf(href)}" alt="${escapeHtml(text)}">`;
  };
  // Scrollable elements must be reachable by keyboard.
  renderer.code = (code) => `<pre tabindex="0"><code>${escapeHtml(code)}\n</code></pre>\n`;
  renderer.table = (head, body) =>
    `<div class="table" tabindex="0"><table>\n<thead>\n${head}</thead>\n<tbody>\n${body}</tbody>\n</table></div>\n`;
  // A table header without words is omitted.
  renderer.tablecell = (html, { header }) =>
    header && html !== '' ? `<th scope="col">${html}</th>\n` : `<td>${html}</td>\n`;
  return renderer;
}

/** Generates anchors of headings like GitHub. */
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

/** Splits a page into sections, each with its heading. */
function splitSections({ text, page }: Source, title: string, weight: number): readonly Section[] {
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
    .map(({ heading, anchor, lines }) => ({ page, title, heading, anchor, text: plain(lines.join(' ')), weight }))
    .filter((section) => section.heading !== '' || section.text !== '');
}

/** Removes the syntax of Markdown and of pictures. */
function plain(text: string): string {
  return unlinked(text)
    .replaceAll(/<\/?picture>|<source media="[^>]*>/g, ' ')
    .replaceAll(/<img alt="([^"]*)"[^>]*>/g, '$1')
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
