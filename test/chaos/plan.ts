import { between, createRandom, pick, type Random } from './random.ts';

/** Failure modes of a vendor. */
export const BAD_MOODS = ['dead', 'hangs', 'limits', 'fails', 'lies', 'cuts'] as const;
export type Mood = 'live' | (typeof BAD_MOODS)[number];

/** Time in which a vendor has one mode, in milliseconds since the start. */
export interface Spell {
  readonly mood: Mood;
  readonly fromMs: number;
  readonly toMs: number;
}

/** Action on a gateway, and its time. */
export type Deed = { readonly atMs: number; readonly node: number } & (
  | { readonly do: 'reload'; readonly by: 'signal' | 'command' }
  | { readonly do: 'spoil the file' }
  | { readonly do: 'kill a worker' }
  | { readonly do: 'set the clock'; readonly byMs: number }
);

export interface Plan {
  /** Spells of each vendor, in order of time and without gaps. */
  readonly spells: readonly (readonly Spell[])[];
  readonly deeds: readonly Deed[];
}

export const VENDORS = 6;
export const NODES = 2;

/** Each vendor in turn is live for certain: for this time, plus the overlap before and after it. */
const ANCHOR_MS = 15_000;
const OVERLAP_MS = 10_000;

/** Range of live times and of failure times, outside the certain times. */
const LIVE_MS = [3_000, 15_000] as const;
const BAD_MS = [3_000, 20_000] as const;

/** Time after a failure until a vendor counts as live: a `retry-after` that it sent is over by then. */
const COMES_BACK_MS = 1_000;

/** Average interval of each action on either gateway. */
const EVERY_MS = Object.freeze({ reload: 17_000, spoil: 53_000, kill: 60_000, clock: 43_000 });

/** Jumps of a clock, which last for `WRONG_FOR_MS`. */
const JUMPS_MS = [600_000, -600_000, 86_400_000, -3_600_000] as const;
const WRONG_FOR_MS = 9_000;

/** Creates a plan of this length, deterministic for a seed, in which at least one vendor is live at every moment. */
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

/** Alternating live and failure times of random lengths. */
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

/** Makes a vendor live in its certain times. */
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
    // At least once, however short the run is.
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

/** Mode of a vendor at a time, with its end. After the plan's end all are live. */
export function spellAt(spells: readonly Spell[], atMs: number): Spell {
  return (
    spells.find(({ fromMs, toMs }) => atMs >= fromMs && atMs < toMs) ?? {
      ...{ mood: 'live', fromMs: atMs, toMs: Number.POSITIVE_INFINITY },
    }
  );
}

/** Time in which a gateway must mark a vendor with interrupted streams as unhealthy. */
const GIVES_UP_MS = 10_000;

/** Returns true if a vendor interrupts its streams at this time, and has done so for ten seconds. */
export function isCutLately({ spells }: Plan, atMs: number): boolean {
  return spells.some((own) =>
    own.some(({ mood, fromMs, toMs }) => mood === 'cuts' && atMs >= fromMs + GIVES_UP_MS && atMs < toMs),
  );
}

/** Returns true if one vendor was live from a call's beginning to its end. */
export function hadLiveTarget({ spells }: Plan, fromMs: number, toMs: number): boolean {
  return spells.some((own) => liveTimes(own).some((time) => time.fromMs <= fromMs && toMs <= time.toMs));
}

/** Live times of a vendor; adjacent ones are merged. */
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
