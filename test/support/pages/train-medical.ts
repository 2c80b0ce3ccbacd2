import { readFileSync, writeFileSync } from 'node:fs';
import { findSigns } from '../../../plugins/agents/medical/index.ts';
import { RULES } from '../../../plugins/agents/medical/rules/index.ts';
import { DEVELOPED, fillContexts, readPart } from './measure-medical.ts';

const FILE = new URL('../../../plugins/agents/medical/engine/weights.json', import.meta.url);

/** A text that says what it is. */
interface Sample {
  readonly features: readonly string[];
  readonly isEmergency: boolean;
  /** How much it counts. */
  readonly share: number;
}

/** Features that fewer texts have are left out: they would be learned by heart. */
const FEWEST_TEXTS = 5;
/** How strongly weights are held near zero. */
const HOLD = 2;
const STEPS = 120;
/** What a phrasing counts that was written without the rules, against one that they were written with; and one of many with the same frame. */
const UNREAD_SHARE = 3;
const FRAMED_SHARE = 0.3;
const DECIMALS = 2;

/**
 * Finds the weights by logistic regression with L2 over what {@link DEVELOPED} parts of the set, `contexts.json` and the examples of the rules have, by
 * accelerated gradient descent from zero: the same every time.
 */
export function trainWeights(): { readonly base: number; readonly weights: Readonly<Record<string, number>> } {
  const samples = readSamples();
  const counts = new Map<string, number>();
  for (const { features } of samples) for (const one of features) counts.set(one, (counts.get(one) ?? 0) + 1);
  const names = [...counts.keys()].filter((name) => (counts.get(name) ?? 0) >= FEWEST_TEXTS).toSorted();
  const place = new Map(names.map((name, at) => [name, at]));
  const rows = samples.map(({ features, isEmergency, share }) => ({
    at: [...features.flatMap((name) => place.get(name) ?? []), names.length],
    target: isEmergency ? 1 : 0,
    share,
  }));
  const found = descend(rows, names.length);
  const round = (value: number): number => Number(value.toFixed(DECIMALS));
  const weights = names.flatMap((name, at) => {
    const weight = round(found[at] ?? 0);
    return weight === 0 ? [] : [[name, weight] as const];
  });
  return { base: round(found[names.length] ?? 0), weights: Object.fromEntries(weights) };
}

export function writeWeights(): void {
  const about = `Found by npm run medical -- --train on ${DEVELOPED.join(', ')}, contexts.json of test/fixtures/medical and the examples of the rules.`;
  writeFileSync(FILE, `${JSON.stringify({ about, ...trainWeights() }, null, 2)}\n`);
}

/** The weights as the file has them. */
export function readWeights(): unknown {
  const { about: _about, ...weights } = JSON.parse(readFileSync(FILE, 'utf8')) as Record<string, unknown>;
  return weights;
}

function readSamples(): readonly Sample[] {
  const phrasings = DEVELOPED.flatMap((part) =>
    readPart(part).map(({ text, kind }) => ({ text, kind, share: part === 'authoring' ? 1 : UNREAD_SHARE })),
  ).filter(({ kind }) => kind === 'emergency' || kind === 'harmless');
  const examples = RULES.flatMap(({ examples: { positive, negative } }) => [
    ...positive.map((text) => ({ text, kind: 'emergency', share: 1 })),
    ...negative.map((text) => ({ text, kind: 'harmless', share: 1 })),
  ]);
  const framed = fillContexts().flatMap(({ harmless, danger }) => [
    ...harmless.map((text) => ({ text, kind: 'harmless', share: FRAMED_SHARE })),
    ...danger.map((text) => ({ text, kind: 'emergency', share: FRAMED_SHARE })),
  ]);
  const samples = [...phrasings, ...examples, ...framed].flatMap(({ text, kind, share }) => {
    const [features] = findSigns(text).features;
    return features ? [{ features, isEmergency: kind === 'emergency', share }] : [];
  });
  const mean = samples.reduce((sum, { share }) => sum + share, 0) / samples.length;
  return samples.map((sample) => ({ ...sample, share: sample.share / mean }));
}

interface Row {
  readonly at: readonly number[];
  readonly target: number;
  readonly share: number;
}

/** The last weight is the base, which nothing holds near zero. */
function descend(rows: readonly Row[], base: number): Float64Array {
  const counts = new Float64Array(base + 1);
  for (const { at } of rows) for (const one of at) counts[one] = (counts[one] ?? 0) + 1;
  const longest = Math.max(...rows.map(({ at }) => at.length));
  const largest = Math.max(...rows.map(({ share }) => share));
  const steps = counts.map((count) => 1 / (0.125 * longest * count * largest + HOLD));
  let [weights, ahead] = [new Float64Array(base + 1), new Float64Array(base + 1)];
  let momentum = 1;
  for (let step = 0; step < STEPS; step += 1) {
    const slope = ahead.map((weight, at) => (at === base ? 0 : HOLD * weight));
    for (const { at, target, share } of rows) {
      const sum = at.reduce((total, one) => total + (ahead[one] ?? 0), 0);
      const error = share * (1 / (1 + Math.exp(-sum)) - target);
      for (const one of at) slope[one] = (slope[one] ?? 0) + error;
    }
    const next = ahead.map((weight, at) => weight - (steps[at] ?? 0) * (slope[at] ?? 0));
    const faster = (1 + Math.sqrt(1 + 4 * momentum * momentum)) / 2;
    const before = weights;
    ahead = next.map((weight, at) => weight + ((momentum - 1) / faster) * (weight - (before[at] ?? 0)));
    [weights, momentum] = [next, faster];
  }
  return weights;
}
