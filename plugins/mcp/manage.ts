import { GatewayError, type PluginApi, type Records, type Schema } from '../../contract/index.ts';
import { printable } from '../policies/kit/printable.ts';
import { type Resource, resource, WITHIN } from '../policies/kit/resource.ts';
import type { ServersByName } from './operation.ts';
import { acceptWaiting, type ServerPins } from './pins.ts';
import type { ServerState } from './tool-server.ts';

const TOOL: Schema = {
  type: 'object',
  required: ['name', 'state'],
  properties: {
    name: { type: 'string' },
    state: { enum: ['approved', 'new', 'changed'], description: 'New and changed tools are withheld until approval.' },
    since: { type: 'string', description: 'Time at which the withheld definition was first seen.' },
    definition: { type: 'string', description: 'Beginning of the withheld definition, as JSON.' },
    approved_definition: { type: 'string', description: 'Beginning of the approved definition, as JSON.' },
  },
};

const STATE: Schema = {
  type: 'object',
  required: ['state', 'starts'],
  properties: {
    state: { enum: ['starting', 'ready', 'failed', 'stopped'] },
    problem: { type: 'string', description: 'Reason of the failure.' },
    pid: { type: 'integer' },
    protocol: { type: 'string' },
    tools: { type: 'integer' },
    starts: { type: 'integer', description: 'Starts and connections since the gateway started.' },
  },
};

const SERVER: Schema = {
  type: 'object',
  required: ['name', 'approved', 'waiting', 'has_accounts', 'processes', 'tools'],
  properties: {
    name: { type: 'string' },
    has_accounts: { type: 'boolean', description: 'True if each user connects an account.' },
    approved: { type: 'integer' },
    waiting: { type: 'integer', description: 'Tools that are withheld until approval.' },
    processes: { type: 'array', items: STATE, description: 'State in each process of this gateway.' },
    tools: { type: 'array', items: TOOL },
  },
};

const APPROVE_BODY = {
  type: 'object',
  additionalProperties: false,
  properties: {
    tools: {
      type: 'array',
      maxItems: 500,
      items: { type: 'string', minLength: 1, maxLength: 128 },
      description: 'Tools to approve; without it all that are withheld.',
    },
  },
  examples: [{ tools: ['create_issue'] }],
} as const;

interface ShownTool {
  readonly name: string;
  readonly state: 'approved' | 'new' | 'changed';
  readonly since?: string;
  readonly definition?: string;
  readonly approved_definition?: string;
}

interface ShownServer {
  readonly name: string;
  readonly approved: number;
  readonly waiting: number;
  readonly has_accounts: boolean;
  readonly processes: readonly Omit<ServerState, 'name'>[];
  readonly tools: readonly ShownTool[];
}

/** Registers `/api/core/admin/mcp` and `tollgate models tools`: servers, their tools, and the approval of changed ones. */
export function registerManagement(api: PluginApi, servers: ServersByName, records: Records<ServerPins>): void {
  const gatherStates = api.operators.gather('servers', () => [...servers.values()].map(({ state }) => state));
  const show = async (name: string, pins: ServerPins): Promise<ShownServer> => {
    const states = (await gatherStates())
      // oxlint-disable-next-line typescript/no-unnecessary-condition -- a command runs in no process of a gateway
      .flatMap((each) => each ?? [])
      .filter((state) => state.name === name && state.starts > 0);
    return showServer(name, pins, states, servers.get(name)?.options.oauth !== undefined);
  };
  const read = async (name: string): Promise<{ readonly version: number; readonly value: ShownServer | undefined }> => {
    if (!servers.has(name)) return { version: 0, value: undefined };
    const { version, value = NO_PINS } = await records.find(name);
    return { version, value: await show(name, value) };
  };
  const table: Resource<ShownServer | undefined, number> = {
    name: 'mcp_server',
    path: '/api/core/admin/mcp',
    id: 'name',
    schema: SERVER,
    scopes: { read: 'mcp:read', write: 'mcp:write' },
    response: 'MCP server with its tools, and its version as ETag.',
    command: {
      name: 'tools',
      summary: 'List and approve tools of MCP servers',
      id: { name: '<server>', summary: 'name of the server in the configuration' },
    },
    find: read,
    notFound: (name) =>
      new GatewayError('not_found', `The MCP server "${printable(name.slice(0, 63))}" is not in the configuration.`),
  };
  resource(api, table, (make) => [
    make.list({
      http: { summary: 'List MCP servers with their tools', response: 'All servers.', schema: SERVER, isWhole: true },
      read: async () => ({
        rows: (await Promise.all([...servers.keys()].map(read))).flatMap(({ value }) => value ?? []),
      }),
      cli: {
        columns: [
          ['SERVER', ({ name }) => name],
          ['APPROVED', ({ approved }) => `${approved}`],
          ['WITHHELD', ({ waiting }) => `${waiting}`],
        ],
      },
    }),
    make.show({
      http: { summary: 'Show an MCP server: state, tools, withheld definitions' },
      show: (server) => server,
      cli: { summary: 'Show the tools of a server, and what withheld ones say', text: describe },
    }),
    make.change({
      word: 'approve',
      http: {
        summary: 'Approve new or changed tools of an MCP server',
        description: 'Callers get the definitions that the server had when they were withheld.',
        body: APPROVE_BODY,
        bodyOptional: true,
      },
      async apply({ id: name, body: { tools = [] }, found, expected }) {
        if (!found.value) throw table.notFound?.(name) ?? new GatewayError('not_found', 'The server does not exist.');
        const { version, before, value } = await records.change(
          name,
          (pins = NO_PINS) => acceptWaiting(pins, tools),
          expected,
        );
        const accepted = Object.keys(before?.waiting ?? {}).filter((tool) => !Object.hasOwn(value.waiting, tool));
        return {
          version,
          ...(accepted.length > 0 && { before: auditOf(before, accepted), after: auditOf(value, accepted) }),
          show: () => show(name, value),
        };
      },
      cli: {
        summary: 'Approve new or changed tools of a server',
        args: [{ name: '[tool...]', summary: 'tools to approve; without one all that are withheld' }],
        read: ({ args: [, ...tools] }) => ({ tools }),
        text: ({ name, approved, waiting }) =>
          `${name} has ${approved} approved and ${waiting} withheld tools; ${WITHIN}`,
      },
    }),
  ]);
}

const NO_PINS: ServerPins = Object.freeze({ tools: {}, waiting: {} });

function showServer(
  name: string,
  { tools, waiting }: ServerPins,
  states: readonly ServerState[],
  hasAccounts: boolean,
): ShownServer {
  const withheld = Object.entries(waiting).map(([tool, { since, text }]): ShownTool => {
    const before = Object.hasOwn(tools, tool) ? tools[tool] : undefined;
    return {
      name: tool,
      state: before ? 'changed' : 'new',
      since: new Date(since).toISOString(),
      definition: text,
      ...(before && { approved_definition: before.text }),
    };
  });
  const approved = Object.keys(tools)
    .filter((tool) => !Object.hasOwn(waiting, tool))
    .map((tool): ShownTool => ({ name: tool, state: 'approved' }));
  return {
    name,
    approved: approved.length,
    waiting: withheld.length,
    has_accounts: hasAccounts,
    processes: states.map(({ name: _name, ...state }) => state),
    tools: [...withheld, ...approved],
  };
}

function describe({ tools }: ShownServer): string {
  if (tools.length === 0) return 'No tools yet. A running gateway lists them when it connects.';
  return tools
    .map(({ name, state, since, definition, approved_definition: before }) =>
      [
        `${state.padEnd(8)}  ${printable(name)}${since === undefined ? '' : `  since ${since}`}`,
        ...(before === undefined ? [] : [`  approved  ${printable(before)}`]),
        ...(definition === undefined ? [] : [`  withheld  ${printable(definition)}`]),
      ].join('\n'),
    )
    .join('\n');
}

/** Definitions of tools for the audit log. */
function auditOf(pins: ServerPins | undefined, names: readonly string[]): Readonly<Record<string, string>> {
  const tools = pins?.tools ?? {};
  return Object.fromEntries(
    names.flatMap((name) => (Object.hasOwn(tools, name) ? [[name, tools[name]?.text.slice(0, 500) ?? '']] : [])),
  );
}
