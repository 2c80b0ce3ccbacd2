import { between, createRandom, pick, type Random } from './random.ts';

/** What a vendor does with the requests that it gets. */
export const BAD_MOODS = ['dead', 'hangs', 'limits', 'fails', 'lies', 'cuts'] as const;
export type Mood = 'live' | (typeof BAD_MOODS)[number];

/** From when until when a vendor is in a mood, in milliseconds since the start. */
export interface Spell {
  readonly mood: Mood;
  readonly fromMs: number;
  readonly toMs: number;
}

/** What is done to a gateway, at a moment. */
export type Deed = { readonly atMs: number; readonly node: number } & (
  | { readonly do: 'reload'; readonly by: 'signal' | 'command' }
  | { readonly do: 'spoil the file' }
  | { readonly do: 'kill a worker' }
  | { readonly do: 'set the clock'; readonly byMs: number }
);

export interface Plan {
  /** Of each vendor, in order of time and without a gap. */
  readonly spells: readonly (readonly Spell[])[];
  readonly deeds: readonly Deed[];
}

export const VENDORS = 6;
export const NODES = 2;

/** One vendor after the other is live for certain: for so long, and so long before and after it. */
const ANCHOR_MS = 15_000;
const OVERLAP_MS = 10_000;

/** How long a vendor is well, and how long it is not, where it may be as it likes. */
const LIVE_MS = [3_000, 15_000] as const;
const BAD_MS = [3_000, 20_000] as const;

/** How long after a bad time a vendor counts as live: what it told callers to wait is over by then. */
const COMES_BACK_MS = 1_000;

/** How often each thing happens to one gateway or the other. */
const EVERY_MS = Object.freeze({ reload: 17_000, spoil: 53_000, kill: 60_000, clock: 43_000 });

/** Clocks go wrong by so much, and come back. */
const JUMPS_MS = [600_000, -600_000, 86_400_000, -3_600_000] as const;
const WRONG_FOR_MS = 9_000;

/** A script of so many milliseconds, the same for the same seed, in which some vendor is live at every moment. */
export function makePlan(seed: number, lengthMs: number): Plan {
  const random = createRandom(seed);
  const sure = anchors(random, lengthMs);
  const spells = Array.from({ length: VENDORS }, (_, vendor) => {
    const own = sure.filter((each) => each.vendor === vendor);
    return mend(wander(random, lengthMs), own);
  });
  return { spells, deeds: makeDeeds(random, lengthMs) };
}

interface Anchor {
  readonly vendor: number;
  readonly fromMs: number;
  readonly toMs: number;
}

function anchors(random: Random, lengthMs: number): readonly Anchor[] {
  const found: Anchor[] = [];
  let last = -1;
  for (let at = 0; at < lengthMs + ANCHOR_MS; at += ANCHOR_MS) {
    const others = Array.from({ length: VENDORS }, (_, vendor) => vendor).filter((vendor) => vendor !== last);
    last = pick(random, others);
    found.push({ vendor: last, fromMs: at - OVERLAP_MS, toMs: at + ANCHOR_MS + OVERLAP_MS });
  }
  return found;
}

/** Good and bad times in turn, of any length. */
function wander(random: Random, lengthMs: number): readonly Spell[] {
  const spells: Spell[] = [];
  let isLive = random() < 0.5;
  for (let at = 0; at < lengthMs; ) {
    const [least, most] = isLive ? LIVE_MS : BAD_MS;
    const toMs = at + between(random, least, most);
    spells.push({ mood: isLive ? 'live' : pick(random, BAD_MOODS), fromMs: at, toMs });
    at = toMs;
    isLive = !isLive;
  }
  return spells;
}

/** Makes a vendor live where it must be. */
function mend(spells: readonly Spell[], sure: readonly Anchor[]): readonly Spell[] {
  let mended = spells;
  for (const { fromMs, toMs } of sure) {
    const outside = mended.flatMap((spell) => [
      { ...spell, toMs: Math.min(spell.toMs, fromMs) },
      { ...spell, fromMs: Math.max(spell.fromMs, toMs) },
    ]);
    mended = [...outside.filter((spell) => spell.fromMs < spell.toMs), { mood: 'live' as const, fromMs, toMs }];
  }
  return [...mended].sort((a, b) => a.fromMs - b.fromMs);
}

function makeDeeds(random: Random, lengthMs: number): readonly Deed[] {
  const deeds: Deed[] = [];
  const node = (): number => Math.floor(random() * NODES);
  const each = (everyMs: number, add: (atMs: number) => void): void => {
    // Once at least, however short the run is.
    const first = Math.min(everyMs, lengthMs) * between(random, 0.2, 0.7);
    for (let at = first; at < lengthMs; at += everyMs * between(random, 0.7, 1.3)) add(at);
  };
  each(EVERY_MS.reload, (atMs) =>
    deeds.push({ atMs, node: node(), do: 'reload', by: pick(random, ['signal', 'command'] as const) }),
  );
  each(EVERY_MS.spoil, (atMs) => deeds.push({ atMs, node: node(), do: 'spoil the file' }));
  each(EVERY_MS.kill, (atMs) => deeds.push({ atMs, node: node(), do: 'kill a worker' }));
  each(EVERY_MS.clock, (atMs) => {
    const which = node();
    deeds.push({ atMs, node: which, do: 'set the clock', byMs: pick(random, JUMPS_MS) });
    deeds.push({ atMs: atMs + WRONG_FOR_MS, node: which, do: 'set the clock', byMs: 0 });
  });
  return deeds.sort((a, b) => a.atMs - b.atMs);
}

/** What a vendor does at a moment, and for how much longer. After the script's end all are live. */
export function spellAt(spells: readonly Spell[], atMs: number): Spell {
  return (
    spells.find(({ fromMs, toMs }) => atMs >= fromMs && atMs < toMs) ?? {
      ...{ mood: 'live', fromMs: atMs, toMs: Number.POSITIVE_INFINITY },
    }
  );
}

/** How long a gateway has to give a vendor up whose streams die. */
const GIVES_UP_MS = 10_000;

/** Whether some vendor cuts its streams at a moment, and has done so for ten seconds. */
export function isCutLately({ spells }: Plan, atMs: number): boolean {
  return spells.some((own) =>
    own.some(({ mood, fromMs, toMs }) => mood === 'cuts' && atMs >= fromMs + GIVES_UP_MS && atMs < toMs),
  );
}

/** Whether one vendor was live from a call's beginning to its end. */
export function hadLiveTarget({ spells }: Plan, fromMs: number, toMs: number): boolean {
  return spells.some((own) => liveTimes(own).some((time) => time.fromMs <= fromMs && toMs <= time.toMs));
}

/** The good times of a vendor; those that follow on each other are one. */
function liveTimes(spells: readonly Spell[]): readonly Pick<Spell, 'fromMs' | 'toMs'>[] {
  const times: { fromMs: number; toMs: number }[] = [];
  for (const [at, { mood, fromMs, toMs }] of spells.entries()) {
    if (mood !== 'live') continue;
    const last = times.at(-1);
    const isLast = at === spells.length - 1;
    const until = isLast ? Number.POSITIVE_INFINITY : toMs;
    if (last && last.toMs >= fromMs) last.toMs = until;
    else times.push({ fromMs: at === 0 ? fromMs : fromMs + COMES_BACK_MS, toMs: until });
  }
  return times;
}
