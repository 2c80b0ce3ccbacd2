import type { Installation } from './installation.ts';
import type { Deed } from './plan.ts';
import type { Random } from './random.ts';

/** Actions performed on the gateways. */
export interface Done {
  readonly reloads: number;
  readonly spoiled: number;
  readonly clocks: number;
  readonly kills: readonly { readonly node: number; readonly atMs: number }[];
  /** Output of failed commands. */
  readonly failed: readonly string[];
}

/** Performs the plan's actions on the gateways at their times. */
export function runDeeds(deeds: readonly Deed[], installation: Installation, clock: () => number, random: Random) {
  const done = {
    reloads: 0,
    spoiled: 0,
    clocks: 0,
    kills: [] as { node: number; atMs: number }[],
    failed: [] as string[],
  };
  const running = new Set<Promise<void>>();
  /** Serializes reloads, because a gateway reads one file at a time. */
  const turns = new Map<number, Promise<unknown>>();
  const inTurn = (node: number, work: () => Promise<void>): Promise<void> => {
    const mine = (turns.get(node) ?? Promise.resolve()).then(work).catch((error: unknown) => {
      done.failed.push(String(error));
    });
    turns.set(node, mine);
    return mine;
  };
  const run = async (deed: Deed): Promise<void> => {
    const node = installation.nodes[deed.node];
    if (!node) return;
    if (deed.do === 'reload') {
      done.reloads += 1;
      await inTurn(deed.node, () => installation.reload(deed.node, deed.by));
    } else if (deed.do === 'spoil the file') {
      done.spoiled += 1;
      await inTurn(deed.node, () => node.spoil());
    } else if (deed.do === 'kill a worker') {
      done.kills.push({ node: deed.node, atMs: clock() });
      node.killWorker(random);
    } else {
      done.clocks += deed.byMs === 0 ? 0 : 1;
      await node.setClock(deed.byMs);
    }
  };
  const timers = deeds.map((deed) =>
    setTimeout(() => {
      const work = run(deed).finally(() => running.delete(work));
      running.add(work);
    }, deed.atMs - clock()),
  );
  return {
    line: () => `${done.reloads} reloads, ${done.kills.length} kills, ${done.clocks} clocks`,
    async end(): Promise<Done> {
      for (const timer of timers) clearTimeout(timer);
      await Promise.all([...running, ...installation.nodes.map((node) => node.setClock(0))]);
      return done;
    },
  };
}
