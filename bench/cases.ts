import type { Case } from './measure.ts';
import { BARE, DIRECT, KOA, NGINX, PLAIN, PORTKEY, plain } from './targets/others.ts';
import type { BenchRequest, Target } from './targets/target.ts';
import { tollgate } from './targets/tollgate.ts';
import { chatRequest, requestOf, type WireName } from './wires.ts';

export interface CaseOptions {
  readonly quick: boolean;
  /** URLs of running stores, by name. */
  readonly stores: Readonly<Record<string, string>>;
}

const TOLLGATE = tollgate('tollgate', 'Tollgate, everything on');
const BONES = tollgate('bare-bones', 'Tollgate: key, validation, the way of a call', { bareBones: true });

/** Size of Node's young generation, as measured in docs/measurements.md. */
const YOUNG = ['--max-semi-space-size=64'];

function json(bytes: number): BenchRequest {
  return { wire: 'openai', kind: 'json', body: chatRequest(bytes, 'm-0-0', false) };
}

function stream(wire: WireName, chunks: number, intervalMs: number): BenchRequest {
  return { wire, kind: 'stream', body: chatRequest(500, `m-${chunks}-${intervalMs}`, true) };
}

/** Number of chunks for streams that do not end during a measurement. */
const ENDLESS = 1_000_000;

function present(...targets: readonly (Target | undefined)[]): readonly Target[] {
  return targets.filter((target) => target !== undefined);
}

/** Tollgate with a different request: another client format, or an upstream of another one. */
function sending(name: string, label: string, request: BenchRequest): Target {
  return {
    name: `tollgate-${name}`,
    label: `Tollgate, ${label}`,
    async start(upstreams) {
      const running = await TOLLGATE.start(upstreams);
      return { ...running, request: () => running.request(request) };
    },
  };
}

/** Client formats other than chat, each with its upstream format; the model name selects the upstream's response. */
function formats(kind: BenchRequest['kind'], bytes: number, model: string): readonly Target[] {
  const of = (format: 'messages' | 'responses', wire: WireName, label: string): Target => {
    const provider = wire === 'openai' ? kind : wire;
    const body = requestOf(format, bytes, `${provider}/${model}`, kind === 'stream');
    return sending(`${format}-${wire}`, label, { wire, kind, body, path: `/v1/${format}` });
  };
  return [
    of('messages', 'anthropic', 'Messages to Anthropic, native'),
    of('messages', 'openai', 'Messages to OpenAI’s wire'),
    of('responses', 'openai', 'Responses to OpenAI’s wire'),
  ];
}

/** All cases, in order. */
export function benchCases({ quick, stores }: CaseOptions): readonly Case[] {
  const base = {
    measures: 'requests',
    reference: 'plain',
    request: json(2048),
    connections: 32,
    rounds: quick ? 3 : 7,
    leastRounds: quick ? 3 : 5,
    windowMs: quick ? 1000 : 2000,
    // The compiler needs 7,000 calls.
    warmUp: quick ? 10_000 : 15_000,
  } as const;
  const paced = { measures: 'latency', rate: 300, connections: 256, windowMs: quick ? 2000 : 4000 } as const;
  // Without Portkey: 1.15.2 responds to these streams with 500 ("immutable") and never closes them at the upstream.
  const relay = { ...base, measures: 'chunks', reference: 'bare' } as const;
  const streaming = (chunks: number, intervalMs: number) => ({
    request: stream('openai', chunks, intervalMs),
    targets: present(
      TOLLGATE,
      sending('gemini', 'Gemini translated', stream('gemini', chunks, intervalMs)),
      sending('anthropic', 'Anthropic translated', stream('anthropic', chunks, intervalMs)),
      PLAIN,
      BARE,
      KOA,
      NGINX,
    ),
  });
  const young = [
    tollgate('default', 'Tollgate, as Node starts'),
    tollgate('young', 'Tollgate, with the flag', { nodeFlags: YOUNG }),
    plain('plain-default', 'the yardstick, as Node starts'),
    plain('plain-young', 'the yardstick, with the flag', YOUNG),
  ];
  const byStore = Object.entries({ memory: 'memory:', sqlite: 'sqlite:./data', ...stores }).map(([name, store]) =>
    tollgate(name, `store ${name}`, { store }),
  );
  return [
    {
      ...base,
      id: 'requests',
      title: 'Requests and responses of 2 KB, 32 connections',
      targets: present(TOLLGATE, BONES, PLAIN, BARE, KOA, NGINX, PORTKEY),
    },
    {
      ...base,
      id: 'one-caller',
      title: 'Requests and responses of 2 KB, one caller',
      connections: 1,
      targets: present(TOLLGATE, PLAIN, BARE, KOA, PORTKEY),
    },
    {
      ...base,
      id: 'after-rest',
      title: 'Requests of 2 KB after 60 s without any, 4 connections (the first round: without a rest)',
      connections: 4,
      windowMs: 500,
      restMs: 60_000,
      targets: present(TOLLGATE, PLAIN, KOA, PORTKEY),
    },
    {
      ...base,
      id: 'requests-32kb',
      title: 'Requests of 32 KB, responses of 2 KB, 32 connections',
      request: json(32 * 1024),
      targets: present(TOLLGATE, PLAIN, BARE, KOA, PORTKEY),
    },
    {
      ...base,
      ...paced,
      id: 'latency',
      title: '300 requests a second, open loop, 2 KB',
      targets: present(DIRECT, TOLLGATE, PLAIN, BARE, KOA, NGINX, PORTKEY),
    },
    {
      ...relay,
      ...streaming(ENDLESS, 20),
      id: 'stream-paced',
      title: '100 streams, a chunk every 20 ms',
      connections: 100,
    },
    {
      ...relay,
      ...streaming(100, 0),
      id: 'stream-burst',
      title: 'Streams of 100 chunks as fast as they go, 16 connections',
      connections: 16,
    },
    {
      ...relay,
      measures: 'memory',
      id: 'open',
      title: '1,000 open streams, a chunk every second',
      request: stream('openai', ENDLESS, 1000),
      connections: 1000,
      rounds: quick ? 1 : 3,
      leastRounds: quick ? 1 : 3,
      windowMs: 3000,
      targets: present(TOLLGATE, PLAIN, BARE, NGINX),
    },
    {
      ...base,
      id: 'formats',
      title: 'Requests and responses of 2 KB in client formats other than chat',
      reference: 'tollgate',
      targets: [TOLLGATE, ...formats('json', 2048, 'm-0-0')],
    },
    {
      ...relay,
      id: 'formats-stream',
      title: '100 streams, a chunk every 20 ms, in client formats other than chat',
      reference: 'tollgate',
      request: stream('openai', ENDLESS, 20),
      targets: [TOLLGATE, ...formats('stream', 500, `m-${ENDLESS}-20`)],
      connections: 100,
    },
    { ...base, id: 'stores', title: 'Requests of 2 KB by store', reference: 'memory', targets: byStore },
    {
      ...base,
      id: 'plugins',
      title: 'Requests of 2 KB with plugins that hook every step',
      reference: 'tollgate',
      targets: [TOLLGATE, tollgate('plugins-10', '10 plugins hooked', { plugins: 10 })],
    },
    {
      ...base,
      id: 'young',
      title: `Requests of 2 KB with \`${YOUNG.join(' ')}\``,
      reference: 'default',
      targets: young,
    },
    {
      ...base,
      ...paced,
      id: 'young-latency',
      title: `300 requests a second with \`${YOUNG.join(' ')}\``,
      reference: 'default',
      targets: young,
    },
    {
      ...base,
      measures: 'boot',
      id: 'boot',
      title: 'From start to listening',
      rounds: quick ? 3 : 7,
      targets: present(TOLLGATE, PLAIN, KOA, PORTKEY),
    },
  ];
}
