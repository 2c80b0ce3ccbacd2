import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import type { PluginApi, Route, RoutingState, Schema, Sets } from '../../../contract/index.ts';
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
  /** Absent for nodes of an earlier build. */
  readonly facts?: NodeFacts;
  /** Identity of its configuration file; absent without a file and for nodes of an earlier build. */
  readonly fileId?: string | undefined;
}

/** State of one process: what the lists of targets and plugins sum over all nodes. */
export interface NodeFacts {
  readonly routing: RoutingState;
  readonly hooks: readonly NodeHook[];
}

/** Counts of a hook of a plugin since the start of a process. */
export interface NodeHook {
  readonly plugin: string;
  readonly hook: string;
  readonly calls: number;
  readonly failures: number;
  readonly skipped: number;
  readonly timedMs: number;
}

/** Facts of a node with its name. */
export interface NamedFacts extends NodeFacts {
  /** Host and process id. */
  readonly node: string;
  /** True for the processes of this gateway, which answer for themselves. */
  readonly isOwn: boolean;
}

/** Documents and set of the nodes; `tollgate store export` and `import` read them. */
const NODES = 'nodes';
const EVERY_MS = 10_000;
/** Time after which a killed process is dropped. */
const FORGOTTEN_MS = 30_000;
const MAX_NODES = 1000;
/** Maximum targets and hooks that a node reports, and maximum length of an error message. */
const MAX_TARGETS = 500;
const MAX_HOOKS = 500;
const MAX_MESSAGE = 256;

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

type Api = Pick<
  PluginApi,
  'keyv' | 'stores' | 'settings' | 'models' | 'keep' | 'onReady' | 'onClose' | 'route' | 'operators'
>;

/** Reads the facts of all nodes on the store, the oldest first. They are up to ten seconds old. */
export type ReadFacts = () => Promise<readonly NamedFacts[]>;

/** Other processes on the store. */
export interface OtherNodes {
  /** Names of those that read the configuration file of this gateway. */
  readonly sameFile: readonly string[];
  /** Names of those that have another file, or none. */
  readonly otherFile: readonly string[];
}

/** Processes on the store, as other parts of the plugin read them. */
export interface NodeReader {
  readonly readFacts: ReadFacts;
  /** Finds the processes of other gateways; they are up to ten seconds old. */
  findOthers(): Promise<OtherNodes>;
}

/** Reports to the store every ten seconds that this process runs on it, and shows operators all such processes. */
export function registerNodes(api: Api): NodeReader {
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
    const { fileId } = api.operators.gateway.configuration;
    const node = { ...own, version, fileId, targets: countStates(api), facts: readFacts(api), seenAt: Date.now() };
    await documents.set(own.id, node, FORGOTTEN_MS);
    await sets.add(NODES, own.id);
  };
  const gatherIds = api.operators.gather<string>('node', () => own.id);
  api.route(nodesRoute(() => listNodes(documents, sets)));
  api.onReady(async () => {
    own.generation += 1;
    await tell().catch(() => undefined);
    const timer = setInterval(() => void tell().catch(() => undefined), EVERY_MS);
    timer.unref();
    api.onClose(() => clearInterval(timer));
  });
  return {
    async readFacts() {
      const [ids, nodes] = await Promise.all([gatherIds(), listNodes(documents, sets)]);
      return nodes.flatMap(({ facts, ...node }) =>
        facts ? [{ ...facts, node: nameOf(node), isOwn: ids.includes(node.id) }] : [],
      );
    },
    async findOthers() {
      const [ids, nodes] = await Promise.all([gatherIds(), listNodes(documents, sets)]);
      const own = api.operators.gateway.configuration.fileId;
      const others = nodes.filter(({ id }) => !ids.includes(id));
      const isSame = ({ fileId }: Node): boolean => fileId !== undefined && fileId === own;
      return {
        sameFile: others.filter(isSame).map(nameOf),
        otherFile: others.filter((node) => !isSame(node)).map(nameOf),
      };
    },
  };
}

function nameOf({ host, pid }: Pick<Node, 'host' | 'pid'>): string {
  return `${host} ${pid}`;
}

/** State of this process, without what never happened. */
function readFacts({ models, operators }: Pick<Api, 'models' | 'operators'>): NodeFacts {
  const { targets, ...routing } = models.routing();
  const used = targets.filter(({ attempts, state }) => attempts > 0 || state !== 'closed').slice(0, MAX_TARGETS);
  const hooks = operators.gateway
    .plugins()
    .flatMap(({ name, counts }) =>
      counts.flatMap(({ hook, calls, failures, skipped, timedMs }) =>
        calls + skipped > 0 ? [{ plugin: name, hook, calls, failures, skipped, timedMs }] : [],
      ),
    );
  return {
    routing: {
      ...routing,
      targets: used.map(({ lastError, ...target }) => ({
        ...target,
        ...(lastError && { lastError: { ...lastError, message: lastError.message.slice(0, MAX_MESSAGE) } }),
      })),
    },
    hooks: hooks.slice(0, MAX_HOOKS),
  };
}

function countStates({ models }: Pick<Api, 'models'>): Node['targets'] {
  const counts: Record<string, number> = {};
  for (const { state } of models.routing().targets) counts[state] = (counts[state] ?? 0) + 1;
  return counts;
}

/** Processes of all gateways on the store, the oldest first. Drops those that ended without a report. */
async function listNodes(
  documents: { get(id: string): Promise<Node | undefined> },
  sets: Pick<Sets, 'list' | 'remove'>,
): Promise<readonly Node[]> {
  const ids = await sets.list(NODES, { limit: MAX_NODES });
  const found = await Promise.all(ids.map((id) => documents.get(id)));
  await Promise.all(ids.filter((_, at) => !found[at]).map((id) => sets.remove(NODES, id)));
  return found.filter((node) => node !== undefined).sort((a, b) => a.startedAt - b.startedAt);
}

function nodesRoute(list: () => Promise<readonly Node[]>): Route {
  return {
    ...FOR_OPERATORS,
    method: 'GET',
    path: '/api/core/admin/nodes',
    scope: 'targets:read',
    summary: 'List the processes on the store: version, start, generation, targets by state',
    description: 'A killed process is listed for 30 seconds.',
    responses: { 200: { description: 'Processes, oldest first.', schema: listOf(NODE) } },
    async handler(ctx) {
      const rows = (await list()).map(({ startedAt, seenAt, facts: _facts, fileId: _file, ...node }) => ({
        ...node,
        started_at: new Date(startedAt).toISOString(),
        seen_at: new Date(seenAt).toISOString(),
        uptime_seconds: Math.max(0, Math.floor((seenAt - startedAt) / 1000)),
      }));
      sendList(ctx, rows, undefined);
    },
  };
}
