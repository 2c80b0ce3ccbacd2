import type { Case } from './measure.ts';
import { BARE, DIRECT, KOA, KOA_GOT, NGINX, PORTKEY } from './targets/others.ts';
import type { Ask, Route, Target } from './targets/target.ts';
import { tollgate } from './targets/tollgate.ts';
import { chatRequest } from './wires.ts';

export interface CaseOptions {
  readonly quick: boolean;
  /** URLs of stores that are running, by name. */
  readonly stores: Readonly<Record<string, string>>;
  /** Other Node programs to run Tollgate on, by version. */
  readonly nodes: Readonly<Record<string, string>>;
}

const TOLLGATE = tollgate('tollgate', 'Tollgate, everything on');

const KB = 1024;
const sizes = { '300 B': 300, '2 KB': 2 * KB, '32 KB': 32 * KB, '256 KB': 256 * KB } as const;

function json(bytes: number): Ask {
  return { wire: 'openai', kind: 'json', body: chatRequest(bytes, 'm-0-0', false) };
}

function stream(wire: Route, chunks: number, intervalMs: number): Ask {
  return { wire, kind: 'stream', body: chatRequest(500, `m-${chunks}-${intervalMs}`, true) };
}

/** Stands for "does not end while we look". */
const ENDLESS = 1_000_000;

function present(...targets: readonly (Target | undefined)[]): readonly Target[] {
  return targets.filter((target) => target !== undefined);
}

/** A target that asks something else than its case does, such as another wire. */
function asking(target: Target, name: string, label: string, ask: Ask): Target {
  return {
    name,
    label,
    async start(upstreams) {
      const running = await target.start(upstreams);
      return { ...running, request: () => running.request(ask) };
    },
  };
}

/** Everything that is measured, in order. */
export function benchCases({ quick, stores, nodes }: CaseOptions): readonly Case[] {
  const base = {
    reference: 'koa',
    connections: 32,
    rounds: quick ? 3 : 7,
    leastRounds: quick ? 2 : 5,
    windowMs: quick ? 800 : 2000,
    warmUp: quick ? 3000 : 15_000,
    measures: 'requests',
    ask: json(2 * KB),
  } as const;
  const others = present(BARE, KOA, KOA_GOT, NGINX, PORTKEY);

  const asked = Object.entries(sizes).filter(([label]) => !quick || label !== '32 KB');
  const requests: Case[] = asked.map(([label, bytes]) => ({
    ...base,
    id: `requests-${label.replace(' ', '').toLowerCase()}`,
    title: `Requests of ${label}, answers of 2 KB, 32 connections`,
    ask: json(bytes),
    targets: label === '2 KB' ? [TOLLGATE, ...others] : present(TOLLGATE, BARE, KOA, quick ? undefined : PORTKEY),
  }));
  const latency: Case = {
    ...base,
    id: 'latency-300rps',
    title: '300 requests a second, open loop, 2 KB',
    measures: 'latency',
    reference: 'direct',
    rate: 300,
    connections: 256,
    windowMs: quick ? 1500 : 4000,
    targets: quick ? present(DIRECT, TOLLGATE, KOA, PORTKEY) : [DIRECT, TOLLGATE, ...others],
  };

  // Without Portkey: 1.15.2 answers these streams with 500 ("immutable") and leaves each of them open at the upstream.
  const relay = { ...base, measures: 'chunks', reference: 'bare' } as const;
  const streaming = (id: string, title: string, chunks: number, intervalMs: number, connections: number): Case => {
    const ask = (wire: Route) => stream(wire, chunks, intervalMs);
    const as = (wire: Route, label: string) => asking(TOLLGATE, `tollgate-${wire}`, `Tollgate, ${label}`, ask(wire));
    return {
      ...relay,
      id,
      title,
      connections,
      ask: ask('openai'),
      targets: present(
        as('openai', 'identity stream'),
        as('parsed', 'parsed OpenAI stream'),
        as('gemini', 'Gemini translated'),
        as('anthropic', 'Anthropic translated'),
        BARE,
        KOA,
        NGINX,
      ),
    };
  };
  const streams = [
    streaming('stream-paced', '100 streams, a chunk every 20 ms', ENDLESS, 20, 100),
    streaming('stream-100', 'Streams of 100 chunks as fast as they go, 16 connections', 100, 0, 16),
    ...(quick
      ? []
      : [streaming('stream-1000', 'Streams of 1,000 chunks as fast as they go, 16 connections', 1000, 0, 16)]),
  ];

  const open = (count: number): Case => ({
    ...relay,
    id: `open-${count}`,
    title: `${count.toLocaleString('en')} open streams, a chunk every second`,
    measures: 'memory',
    rounds: quick ? 1 : 3,
    leastRounds: quick ? 1 : 2,
    windowMs: 3000,
    connections: count,
    ask: stream('openai', ENDLESS, 1000),
    targets: present(TOLLGATE, BARE, quick ? undefined : NGINX),
  });

  const variants = (id: string, title: string, targets: readonly Target[], reference: string): Case => ({
    ...base,
    id,
    title,
    targets,
    reference,
  });
  const plugins = (quick ? [0, 10] : [0, 5, 10]).map((count) =>
    tollgate(`plugins-${count}`, `${count} plugins hooked`, { plugins: count }),
  );
  const byStore = Object.entries({ memory: 'memory:', sqlite: 'sqlite:./data', ...stores }).map(([name, store]) =>
    tollgate(name, `store ${name}`, { store }),
  );
  const bare = tollgate('bare-bones', 'Tollgate: key, validation, pipeline only', { bareBones: true });
  const workers = [1, 2].map((count) =>
    tollgate(`workers-${count}`, `${count} worker${count > 1 ? 's' : ''}`, { workers: count }),
  );
  const byNode = Object.entries(nodes).map(([version, node]) =>
    tollgate(`node-${version}`, `Node ${version}`, { node }),
  );
  const chunkPlugins: Case = {
    ...relay,
    id: 'stream-plugins',
    title: 'Identity streams of 100 chunks with 0, 5 and 10 chunk hooks',
    reference: 'plugins-0',
    connections: 16,
    ask: stream('openai', 100, 0),
    targets: plugins,
  };
  return [
    ...requests,
    latency,
    ...streams,
    variants('stores', 'Requests of 2 KB by store', byStore, 'memory'),
    variants('plugins', 'Requests of 2 KB with plugins that hook every step', [bare, ...plugins], 'plugins-0'),
    ...(quick ? [] : [chunkPlugins]),
    {
      ...variants('workers', 'Requests of 2 KB by workers, both cores shared with the load', workers, 'workers-1'),
      connections: 64,
    },
    ...(byNode.length > 0 ? [variants('nodes', 'Requests of 2 KB by Node', [TOLLGATE, ...byNode], 'tollgate')] : []),
    ...(quick ? [] : [open(1000)]),
    open(5000),
    {
      ...base,
      id: 'boot',
      title: 'From start to listening',
      measures: 'boot',
      rounds: quick ? 3 : 7,
      leastRounds: quick ? 3 : 7,
      targets: present(TOLLGATE, KOA, PORTKEY),
    },
  ];
}
