import { readFileSync } from 'node:fs';
import { KIND_NAMES, type Kind, searchFor } from '../../../plugins/guardrails/pii/forms.ts';

/** Text with the expected findings. */
interface Marked {
  readonly text: string;
  readonly spans: readonly { readonly kind: string; readonly text: string }[];
}

const MARK = /«(\w+):([^»]+)»/g;

/** Texts of the set, without their marks. */
export function readMarked(): readonly Marked[] {
  const lines = readFileSync(new URL('../../fixtures/guardrails/pii.txt', import.meta.url), 'utf8').split('\n');
  return lines
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => {
      const plain = line.replaceAll('~', '');
      return {
        text: plain.replaceAll(MARK, '$2'),
        spans: [...plain.matchAll(MARK)].map(([, kind = '', text = '']) => ({ kind, text })),
      };
    });
}

/** Findings in a text. */
export function findIn(text: string, kinds: readonly Kind[] = KIND_NAMES): readonly { kind: string; text: string }[] {
  const { find } = searchFor(kinds, () => false);
  const found: { kind: string; text: string }[] = [];
  if (find instanceof RegExp) return found;
  for (let match = find(text, 0); match; match = find(text, match.end))
    found.push({ kind: match.kind, text: text.slice(match.start, match.end) });
  return found;
}

/** Figures of a kind: its expected findings, the correct ones, and the wrong ones. */
export interface Figures {
  expected: number;
  right: number;
  wrong: number;
}

/** Results of the detection on the set, by kind. */
export function measure(): Readonly<Record<Kind, Figures>> {
  const figures = Object.fromEntries(KIND_NAMES.map((kind) => [kind, { expected: 0, right: 0, wrong: 0 }])) as Record<
    Kind,
    Figures
  >;
  for (const { text, spans } of readMarked()) {
    const left = spans.map(({ kind, text: span }) => `${kind} ${span}`);
    for (const { kind } of spans) figures[kind as Kind].expected += 1;
    for (const { kind, text: span } of findIn(text)) {
      const at = left.indexOf(`${kind} ${span}`);
      figures[kind as Kind][at < 0 ? 'wrong' : 'right'] += 1;
      if (at >= 0) left.splice(at, 1);
    }
  }
  return figures;
}
