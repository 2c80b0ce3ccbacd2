import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { screen } from '../../../plugins/agents/medical/index.ts';
import { findReleaseRules } from '../../../plugins/agents/medical/run-medical.ts';

/** Phrasing with the label that the rules should give it (see the README of the set in `docs/plugins/medical.md`). */
export interface Phrasing {
  readonly id: string;
  readonly text: string;
  readonly kind: 'emergency' | 'harmless' | 'dose' | 'dose_harmless';
  readonly group: string;
  readonly style: string;
}

export interface Measured extends Phrasing {
  readonly language: string;
  /**
   * True if a rule of emergencies matched an emergency, or a release rule stopped a dose. For harmless phrasings, true
   * if any rule matched.
   */
  readonly found: boolean;
  readonly rules: readonly string[];
}

const FOLDER = new URL('../../fixtures/medical/', import.meta.url);

/**
 * Parts of the set: some were used to write or fix the rules, and the failures of the others were never read
 * individually.
 */
export const PARTS = Object.freeze([
  ...['authoring', 'held', 'blind', 'blind-2', 'blind-3-mended', 'blind-3-held', 'strangers-dev', 'strangers-held'],
  ...['fresh-dev', 'fresh-held', 'later-dev', 'later-held', 'others-held'],
] as const);
export type Part = (typeof PARTS)[number];

/**
 * Parts for which only the number of failures is known. Once the failures of a part are read, it no longer proves
 * anything.
 */
export const HELD_PARTS: ReadonlySet<Part> = new Set<Part>([
  ...(['blind-3-held', 'strangers-held', 'fresh-held', 'later-held', 'others-held'] as const),
]);

/** Parts that may be used to write the rules, the lexicons and the weights. */
export const DEVELOPED: readonly Part[] = Object.freeze(PARTS.filter((part) => !HELD_PARTS.has(part)));

const measured = new Map<Part, readonly Measured[]>();

/** All phrasings of one part with the results of the rules, cached per process; empty for a missing part. */
export function measurePart(part: Part): readonly Measured[] {
  const known = measured.get(part) ?? remeasure(part);
  measured.set(part, known);
  return known;
}

function remeasure(part: Part): readonly Measured[] {
  return readPart(part).map((item) => ({ ...item, ...judge(item) }));
}

/** All phrasings of one part; empty for a missing part. */
export function readPart(part: Part): readonly (Phrasing & { readonly language: string })[] {
  const folder = new URL(`${part}/`, FOLDER);
  if (!existsSync(folder)) return [];
  const files = readdirSync(folder).filter((name) => name.endsWith('.json'));
  return files.toSorted().flatMap((name) => {
    const { language, items }: { language: string; items: readonly Phrasing[] } = JSON.parse(
      readFileSync(new URL(name, folder), 'utf8'),
    );
    return items.map((item) => ({ ...item, language }));
  });
}

/** Emergencies that were found when `found.json` was written, on 2026-11-27. They must always be found. */
export function readFound(): (part: Part, id: string) => boolean {
  const found: Partial<Record<Part, readonly string[]>> = JSON.parse(
    readFileSync(new URL('found.json', FOLDER), 'utf8'),
  );
  const known = new Map(Object.entries(found).map(([part, ids]) => [part, new Set(ids)]));
  return (part, id) => known.get(part)?.has(id) ?? false;
}

/** Illnesses or events in frames of `contexts.json`: harmless sentences, and sentences about a present emergency. */
interface Contexts {
  readonly of: readonly string[];
  readonly harmless: readonly string[];
  readonly danger: readonly string[];
}

export function fillContexts(): readonly (Omit<Contexts, 'of'> & { readonly language: string })[] {
  const all: Readonly<Record<string, readonly Contexts[]>> = JSON.parse(
    readFileSync(new URL('contexts.json', FOLDER), 'utf8'),
  );
  return Object.entries(all).map(([language, groups]) => {
    const fill = (which: 'harmless' | 'danger') =>
      groups.flatMap((group) => group[which].flatMap((frame) => group.of.map((one) => frame.replaceAll('{N}', one))));
    return { language, harmless: fill('harmless'), danger: fill('danger') };
  });
}

function judge({ kind, text }: Phrasing): Pick<Measured, 'found' | 'rules'> {
  if (kind === 'dose' || kind === 'dose_harmless') {
    const rules = findReleaseRules(text, false).map(({ id }) => id);
    return { found: rules.length > 0, rules };
  }
  const { flags } = screen(text);
  const counting = kind === 'emergency' ? flags.filter(({ urgency }) => urgency === 'emergency') : flags;
  return { found: counting.length > 0, rules: flags.map(({ id }) => id) };
}

/** Share of phrasings that were found, from 0 to 1; undefined if there are none. */
export function shareFound(phrasings: readonly Measured[]): number | undefined {
  return phrasings.length === 0 ? undefined : phrasings.filter(({ found }) => found).length / phrasings.length;
}
