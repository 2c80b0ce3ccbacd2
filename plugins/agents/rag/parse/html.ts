import { type DefaultTreeAdapterTypes, parse } from 'parse5';
import type { Parsed, Section } from '../section.ts';

type Node = DefaultTreeAdapterTypes.Node;

const HIDDEN: ReadonlySet<string> = new Set([
  'script',
  'style',
  'template',
  'noscript',
  'svg',
  'head',
  'nav',
  'iframe',
  'object',
]);
const BLOCK: ReadonlySet<string> = new Set([
  'p',
  'div',
  'li',
  'tr',
  'br',
  'pre',
  'blockquote',
  'section',
  'article',
  'table',
  'ul',
  'ol',
  'dd',
  'dt',
  'figure',
]);

/** Deeper nesting is not walked: a hostile page must not overflow the stack. */
const MAX_DEPTH = 500;

/** HTML by its headings; scripts, styles and navigation are left out. */
export function parseHtml(source: string): Parsed {
  const document = parse(source);
  const sections: Section[] = [];
  const path: string[] = [];
  let text = '';
  const close = (nextLevel = 1): void => {
    const headings = path.filter(Boolean);
    // A heading with nothing below it says something itself, unless it only holds others.
    const own = nextLevel <= path.length ? (path.at(-1) ?? '') : '';
    const body =
      text
        .replace(/[ \t]+/g, ' ')
        .replace(/ ?\n ?/g, '\n')
        .replace(/\n{3,}/g, '\n\n')
        .trim() || own;
    if (body !== '') sections.push({ text: body, location: headings.length > 0 ? { headings } : {} });
    text = '';
  };
  const walk = (node: Node, depth: number): void => {
    if (depth > MAX_DEPTH) return;
    if (node.nodeName === '#text') {
      text += (node as DefaultTreeAdapterTypes.TextNode).value.replace(/\s+/g, ' ');
      return;
    }
    if (HIDDEN.has(node.nodeName) || ('attrs' in node && node.attrs.some(({ name }) => name === 'hidden'))) return;
    const level = /^h([1-6])$/.exec(node.nodeName)?.[1];
    if (level !== undefined) {
      close(Number(level));
      path.length = Number(level) - 1;
      path[Number(level) - 1] = textOf(node, depth).replace(/\s+/g, ' ').trim();
      return;
    }
    const isBlock = BLOCK.has(node.nodeName);
    if (isBlock) text += '\n';
    for (const child of childrenOf(node)) walk(child, depth + 1);
    if (isBlock) text += '\n';
  };
  walk(document, 0);
  close();
  return { title: titleOf(document) ?? sections[0]?.location.headings?.[0], sections };
}

function childrenOf(node: Node): readonly Node[] {
  return 'childNodes' in node ? node.childNodes : [];
}

function textOf(node: Node, depth: number): string {
  if (depth > MAX_DEPTH) return '';
  if (node.nodeName === '#text') return (node as DefaultTreeAdapterTypes.TextNode).value;
  return childrenOf(node)
    .map((child) => textOf(child, depth + 1))
    .join('');
}

function titleOf(document: Node): string | undefined {
  const html = childrenOf(document).find(({ nodeName }) => nodeName === 'html');
  const head = html && childrenOf(html).find(({ nodeName }) => nodeName === 'head');
  const title = head && childrenOf(head).find(({ nodeName }) => nodeName === 'title');
  const text = title && textOf(title, 0).replace(/\s+/g, ' ').trim();
  return text || undefined;
}
