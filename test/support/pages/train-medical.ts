import { readFileSync, writeFileSync } from 'node:fs';
import { callsForHelp } from '../../../plugins/agents/medical/engine/weighing.ts';
import { findSigns, LEAST_WEIGHT } from '../../../plugins/agents/medical/index.ts';
import { RULES } from '../../../plugins/agents/medical/rules/index.ts';
import { DEVELOPED, fillContexts, type Part, readFound, readPart } from './measure-medical.ts';

const FILE = new URL('../../../plugins/agents/medical/engine/weights.json', import.meta.url);

/** Labelled text. */
interface Sample {
  readonly features: readonly string[];
  readonly isEmergency: boolean;
  /** Weight of the sample in the training. */
  readonly share: number;
  /** Set if the sample must be found: the features of each reading, and whether a rule of emergencies matches. */
  readonly must?: { readonly readings: readonly (readonly string[])[]; readonly hasRule: boolean };
}

/** Minimum number of texts of a feature, which prevents overfitting. Pairs of concepts need more. */
const FEWEST_TEXTS = 2;
const FEWEST_OF_PAIRS = 5;
/** Minimum absolute weight of a pair of concepts. */
const LEAST_OF_PAIRS = 0.06;
/** Strength of the regularization. */
const HOLD = 4;
const STEPS = 120;
/**
 * Shares of a phrasing relative to one that the rules were written with. They apply to phrasings written without the
 * rules, never used for a fix, or one of many with the same frame.
 */
const UNREAD_SHARE = 4;
const STRANGE_SHARE = 10;
const FRAMED_SHARE = 0.3;
const STRANGE: ReadonlySet<Part> = new Set<Part>(['strangers-dev', 'fresh-dev', 'later-dev']);
const DECIMALS = 2;
/** Factor for the share of an emergency that would no longer be found, and the maximum number of rounds. */
const MISSED_FACTOR = 3;
const ROUNDS = 8;

/**
 * Finds the weights by logistic regression with L2, by accelerated gradient descent from zero, so that the result is
 * deterministic. The samples are the {@link DEVELOPED} parts of the set, `contexts.json` and the examples of the rules.
 * Currently found emergencies, examples and contexts get a larger share until they are found.
 */
export function trainWeights(): Found {
  let samples = readSamples();
  for (let round = 0; ; round += 1) {
    const found = findWeights(samples);
    const missed = new Set(samples.filter((sample) => isMissed(sample, found)));
    if (missed.size === 0 || round === ROUNDS) return found;
    samples = samples.map((one) => (missed.has(one) ? { ...one, share: one.share * MISSED_FACTOR } : one));
  }
}

interface Found {
  readonly base: number;
  readonly weights: Readonly<Record<string, number>>;
}

function isMissed({ must }: Sample, { base, weights }: Found): boolean {
  if (!must) return false;
  const sums = must.readings.map((list) => list.reduce((sum, one) => sum + (weights[one] ?? 0), base));
  const weight = Math.max(...sums);
  return must.hasRule ? weight <= 0 && !must.readings.some(callsForHelp) : weight < LEAST_WEIGHT;
}

const isPair = (name: string): boolean => name.lastIndexOf('+') > 0;

function findWeights(all: readonly Sample[]): Found {
  const mean = all.reduce((sum, { share }) => sum + share, 0) / all.length;
  const samples = all.map((sample) => ({ ...sample, share: sample.share / mean }));
  const counts = new Map<string, number>();
  for (const { features } of samples) for (const one of features) counts.set(one, (counts.get(one) ?? 0) + 1);
  const fewest = (name: string): number => (isPair(name) ? FEWEST_OF_PAIRS : FEWEST_TEXTS);
  const names = [...counts.keys()].filter((name) => (counts.get(name) ?? 0) >= fewest(name)).toSorted();
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
    return weight === 0 || (isPair(name) && Math.abs(weight) < LEAST_OF_PAIRS) ? [] : [[name, weight] as const];
  });
  return { base: round(found[names.length] ?? 0), weights: Object.fromEntries(weights) };
}

export function writeWeights(): void {
  const about = `Found by npm run medical -- --train on ${DEVELOPED.join(', ')}, contexts.json of test/fixtures/medical and the examples of the rules.`;
  writeFileSync(FILE, `${JSON.stringify({ about, ...trainWeights() }, null, 2)}\n`);
}

/** Weights in the file. */
export function readWeights(): unknown {
  const { about: _about, ...weights } = JSON.parse(readFileSync(FILE, 'utf8')) as Record<string, unknown>;
  return weights;
}

const shareOf = (part: Part): number => (part === 'authoring' ? 1 : STRANGE.has(part) ? STRANGE_SHARE : UNREAD_SHARE);

function readSamples(): readonly Sample[] {
  const foundToday = readFound();
  const phrasings = DEVELOPED.flatMap((part) =>
    readPart(part).map(({ id, text, kind }) => ({ text, kind, share: shareOf(part), must: foundToday(part, id) })),
  ).filter(({ kind }) => kind === 'emergency' || kind === 'harmless');
  const examples = RULES.flatMap(({ examples: { positive, negative } }) => [
    ...positive.map((text) => ({ text, kind: 'emergency', share: 1, must: true })),
    ...negative.map((text) => ({ text, kind: 'harmless', share: 1, must: false })),
  ]);
  const framed = fillContexts().flatMap(({ harmless, danger }) => [
    ...harmless.map((text) => ({ text, kind: 'harmless', share: FRAMED_SHARE, must: false })),
    ...danger.map((text) => ({ text, kind: 'emergency', share: FRAMED_SHARE, must: true })),
  ]);
  return [...phrasings, ...examples, ...framed].flatMap(({ text, kind, share, must }) => {
    const { found, features: readings } = findSigns(text);
    const [features] = readings;
    const hasRule = found.some(({ rule }) => rule.urgency === 'emergency');
    const sample = { isEmergency: kind === 'emergency', share, ...(must ? { must: { readings, hasRule } } : {}) };
    return features ? [{ features, ...sample }] : [];
  });
}

interface Row {
  readonly at: readonly number[];
  readonly target: number;
  readonly share: number;
}

/** The last weight is the base, which is not regularized. */
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
