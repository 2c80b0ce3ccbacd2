import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { PluginApi, Route, Schema, Sets } from '../../../contract/index.ts';
import { FOR_OPERATORS, listOf, sendList } from '../kit/index.ts';

/** Process that runs a gateway on the store, as it recently reported. */
interface Node {
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  /** Unix milliseconds. */
  readonly startedAt: number;
  readonly seenAt: number;
  readonly generation: number;
  readonly targets: Readonly<Record<string, number>>;
}

/** Documents and set of the nodes; `tollgate store export` and `import` read them. */
const NODES = 'nodes';
const EVERY_MS = 10_000;
/** Time after which a killed process is dropped. */
const FORGOTTEN_MS = 30_000;
const MAX_NODES = 1000;

const COUNT: Schema = { type: 'integer', minimum: 0 };
const NODE: Schema = {
  type: 'object',
  required: ['id', 'host', 'pid', 'version', 'started_at', 'uptime_seconds', 'seen_at', 'generation', 'targets'],
  properties: {
    id: { type: 'string', description: 'Changes with each start.' },
    host: { type: 'string' },
    pid: { type: 'integer' },
    version: { type: 'string' },
    started_at: { type: 'string' },
    uptime_seconds: COUNT,
    seen_at: { type: 'string', description: 'Time of the last status report; one is sent every ten seconds.' },
    generation: { ...COUNT, description: 'Number of loaded configurations; each reload adds one.' },
    targets: { type: 'object', additionalProperties: COUNT, description: 'Used targets by state.' },
  },
};

type Api = Pick<PluginApi, 'keyv' | 'stores' | 'settings' | 'models' | 'keep' | 'onReady' | 'onClose' | 'route'>;

/** Reports to the store every ten seconds that this process runs on it, and shows operators all such processes. */
export function registerNodes(api: Api): void {
  const { sets } = api.stores;
  const documents = api.keyv<Node>(NODES);
  const own = api.keep(
    'node',
    () => ({ id: randomUUID(), host: hostname(), pid: process.pid, startedAt: Date.now(), generation: 0 }),
    async ({ id }) => {
      await Promise.all([documents.delete(id), sets.remove(NODES, id)]).catch(() => undefined);
    },
  );
  // If the store is unavailable, the next report follows.
  const tell = async (): Promise<void> => {
    const { version } = api.settings;
    const node = { ...own, version, targets: countStates(api), seenAt: Date.now() };
    await documents.set(own.id, node, FORGOTTEN_MS);
    await sets.add(NODES, own.id);
  };
  api.route(nodesRoute(documents, sets));
  api.onReady(async () => {
    own.generation += 1;
    await tell().catch(() => undefined);
    const timer = setInterval(() => void tell().catch(() => undefined), EVERY_MS);
    timer.unref();
    api.onClose(() => clearInterval(timer));
  });
}

function countStates({ models }: Pick<Api, 'models'>): Node['targets'] {
  const counts: Record<string, number> = {};
  for (const { state } of models.routing().targets) counts[state] = (counts[state] ?? 0) + 1;
  return counts;
}

/** Processes of all gateways on the store, the oldest first. Drops those that ended without a report. */
function nodesRoute(
  documents: { get(id: string): Promise<Node | undefined> },
  sets: Pick<Sets, 'list' | 'remove'>,
): Route {
  return {
    ...FOR_OPERATORS,
    method: 'GET',
    path: '/api/core/admin/nodes',
    scope: 'targets:read',
    summary: 'List the processes on the store: version, start, generation, targets by state',
    description: 'A killed process is listed for 30 seconds.',
    responses: { 200: { description: 'Processes, oldest first.', schema: listOf(NODE) } },
    async handler(ctx) {
      const ids = await sets.list(NODES, { limit: MAX_NODES });
      const found = await Promise.all(ids.map((id) => documents.get(id)));
      await Promise.all(ids.filter((_, at) => !found[at]).map((id) => sets.remove(NODES, id)));
      const nodes = found.filter((node) => node !== undefined).sort((a, b) => a.startedAt - b.startedAt);
      const rows = nodes.map(({ startedAt, seenAt, ...node }) => ({
        ...node,
        started_at: new Date(startedAt).toISOString(),
        seen_at: new Date(seenAt).toISOString(),
        uptime_seconds: Math.max(0, Math.floor((seenAt - startedAt) / 1000)),
      }));
      sendList(ctx, rows, undefined);
    },
  };
}
