import { useState } from 'preact/hooks';
import { get, getPages, may, type Page, change as send } from '../api.ts';
import { linkTo, route, setWords } from '../routing.ts';
import type { Key, McpServer, McpTool } from '../shapes.ts';
import {
  Badge,
  Button,
  Code,
  type Column,
  Dialog,
  Name,
  PageHead,
  Panel,
  Problem,
  Spinner,
  Table,
  Time,
  type Tone,
  useLoad,
} from '../ui.tsx';

const TONES: Readonly<Record<string, Tone>> = Object.freeze({
  ready: 'good',
  starting: 'warn',
  failed: 'bad',
  stopped: 'dim',
});

/** Maximum keys that are read to find out who may call tools. */
const MOST_KEYS = 5000;

/** MCP servers behind the gateway, their tools, and who may call them. */
export function McpServers() {
  const servers = useLoad('mcp', () => get<Page<McpServer>>('/mcp'));
  const { name } = route.value.query;
  const opened = servers.data?.data.find((server) => server.name === name);
  return (
    <>
      <PageHead
        title="MCP servers"
        note="Servers behind the gateway. A new or changed tool is withheld until an operator approves it."
      >
        <a class="button plain" href={linkTo('calls', { operation: 'mcp' })}>
          Tool calls
        </a>
        <Button onClick={servers.reload}>Refresh</Button>
      </PageHead>
      <Problem error={servers.error} retry={servers.reload} />
      <Spinner of={servers} />
      {servers.data && (
        <Table
          label="MCP servers"
          rows={servers.data.data}
          keyOf={(server) => server.name}
          isCurrent={(server) => server.name === name}
          empty="The configuration has no MCP server."
          columns={COLUMNS}
        />
      )}
      <Callers />
      {opened && <Server server={opened} onChanged={servers.reload} onClose={() => setWords({ name: undefined })} />}
    </>
  );
}

/** State of the server: the worst of its processes. */
function stateOf({ processes }: McpServer): string {
  const states = processes.map(({ state }) => state);
  return ['failed', 'starting', 'ready'].find((state) => states.includes(state)) ?? 'stopped';
}

function problemOf({ processes }: McpServer): string | undefined {
  return processes.find(({ problem }) => problem !== undefined)?.problem;
}

const COLUMNS: readonly Column<McpServer>[] = [
  {
    name: 'Server',
    value: ({ name }) => name,
    cell: ({ name }) => <a href={linkTo('mcp', { name })}>{name}</a>,
  },
  {
    name: 'State',
    value: stateOf,
    cell: (server) => <Badge tone={TONES[stateOf(server)] ?? 'dim'}>{stateOf(server)}</Badge>,
  },
  { name: 'Tools', isNumber: true, value: ({ approved }) => approved, cell: ({ approved }) => approved },
  {
    name: 'Withheld',
    isNumber: true,
    value: ({ waiting }) => waiting,
    cell: ({ waiting }) => (waiting > 0 ? <Badge tone="warn">{waiting}</Badge> : '0'),
  },
  {
    name: 'Last error',
    value: problemOf,
    cell: (server) => <div class="wrap">{problemOf(server) ?? '–'}</div>,
  },
];

const TOOL_STATES: Readonly<Record<McpTool['state'], Tone>> = Object.freeze({
  approved: 'good',
  new: 'warn',
  changed: 'bad',
});

/** Tools of a server, approvals, and accounts of users. */
function Server({ server, onChanged, onClose }: { server: McpServer; onChanged: () => void; onClose: () => void }) {
  const [failed, setFailed] = useState<unknown>();
  const approve = (tools?: readonly string[]): void => {
    send('POST', `/mcp/${server.name}/approve`, tools ? { tools } : {}).then(
      () => {
        setFailed(undefined);
        onChanged();
      },
      (error: unknown) => setFailed(error),
    );
  };
  const mayApprove = may('mcp:write');
  return (
    <Dialog title={server.name} onClose={onClose} isDrawer>
      <Problem error={failed} />
      <ul class="lines">
        {server.processes.map(({ state, pid, protocol, starts, problem }, at) => (
          <li key={`${pid ?? at}`}>
            <Badge tone={TONES[state] ?? 'dim'}>{state}</Badge>{' '}
            <span class="muted">
              {protocol && `protocol ${protocol}, `}
              {starts} {starts === 1 ? 'start' : 'starts'}
            </span>{' '}
            {problem}
          </li>
        ))}
      </ul>
      {mayApprove && server.waiting > 1 && (
        <div class="actions">
          <Button onClick={() => approve()}>Approve all {server.waiting} tools</Button>
        </div>
      )}
      <Table
        label="Tools"
        rows={server.tools}
        keyOf={({ name }) => name}
        empty="No tools yet. A running gateway lists them when it connects."
        columns={[
          {
            name: 'Tool',
            cell: (tool) => (
              <div class="wrap">
                <Name text={tool.name} />
                <Definitions tool={tool} />
              </div>
            ),
          },
          {
            name: 'State',
            cell: ({ state }) => <Badge tone={TOOL_STATES[state]}>{state}</Badge>,
          },
          {
            name: 'Actions',
            isQuiet: true,
            cell: ({ name, state }) => (
              <div class="actions">
                {mayApprove && state !== 'approved' && (
                  <Button aria-label={`Approve ${name}`} onClick={() => approve([name])}>
                    Approve
                  </Button>
                )}
                {may('calls:read') && (
                  <a href={linkTo('calls', { operation: 'mcp', model: `${server.name}/${name}` })}>Calls</a>
                )}
              </div>
            ),
          },
        ]}
      />
      {server.has_accounts && <Accounts server={server.name} />}
    </Dialog>
  );
}

/** Definition of a withheld tool, next to the approved one. */
function Definitions({ tool: { name, since, definition, approved_definition: approved } }: { tool: McpTool }) {
  if (definition === undefined) return null;
  return (
    <details>
      <summary>
        Definition since <Time at={since} />
      </summary>
      {approved !== undefined && (
        <>
          <p class="muted">Approved definition of {name}</p>
          <Code text={approved} />
        </>
      )}
      <p class="muted">Withheld definition of {name}</p>
      <Code text={definition} />
    </details>
  );
}

/** Accounts that users have connected at a server. */
function Accounts({ server }: { server: string }) {
  const path = `/mcp/${server}/connections`;
  const users = useLoad(path, () => getPages<{ readonly user_id: string }>(path, {}, 1000));
  const [failed, setFailed] = useState<unknown>();
  const [url, setUrl] = useState<string>();
  const run = (work: Promise<unknown>): void => {
    work.then(
      () => setFailed(undefined),
      (error: unknown) => setFailed(error),
    );
  };
  const connect = async (): Promise<void> => {
    setUrl((await send<{ readonly url: string }>('POST', path)).url);
  };
  const revoke = async (user: string): Promise<void> => {
    await send('DELETE', `${path}/${encodeURIComponent(user)}`);
    users.reload();
  };
  return (
    <Panel
      title="Accounts of users"
      note="each user calls this server with an account there"
      actions={<Button onClick={() => run(connect())}>Connect my account</Button>}
    >
      <Problem error={users.error ?? failed} />
      {url !== undefined && (
        <p role="status">
          <a href={url} target="_blank" rel="noreferrer">
            Open the link
          </a>{' '}
          within ten minutes. It works once.
        </p>
      )}
      <Spinner of={users} />
      {users.data && (
        <Table
          label="Connected users"
          rows={users.data.data}
          keyOf={({ user_id }) => user_id}
          empty="No user has connected an account."
          columns={[
            { name: 'User', cell: ({ user_id }) => <a href={linkTo('users', { id: user_id })}>{user_id}</a> },
            {
              name: 'Actions',
              isQuiet: true,
              cell: ({ user_id }) =>
                may('mcp:write') && (
                  <Button
                    kind="quiet"
                    aria-label={`Revoke the account of ${user_id}`}
                    onClick={() => run(revoke(user_id))}
                  >
                    Revoke
                  </Button>
                ),
            },
          ]}
        />
      )}
    </Panel>
  );
}

interface Caller {
  readonly kind: 'plan' | 'team' | 'key';
  readonly name: string;
  readonly href: string;
  readonly tools: readonly string[];
}

/** Plans, teams and keys that name tools of MCP servers. */
function Callers() {
  const callers = useLoad('mcp-callers', readCallers);
  return (
    <Panel title="Who may call what" note="plans, teams and keys that name tools; nothing is allowed by default">
      <Problem error={callers.error} retry={callers.reload} />
      <Spinner of={callers} />
      {callers.data && (
        <Table
          label="Callers of tools"
          rows={callers.data}
          keyOf={({ kind, name }) => `${kind} ${name}`}
          empty="No plan, team or key names a tool of an MCP server."
          columns={[
            { name: 'Kind', cell: ({ kind }) => kind },
            {
              name: 'Name',
              cell: ({ name, href }) => (
                <div class="wrap">
                  <a href={href}>{name}</a>
                </div>
              ),
            },
            {
              name: 'Tools',
              cell: ({ tools }) => (
                <div class="wrap">
                  {tools.map((tool, at) => (
                    <span key={tool}>
                      {at > 0 && ', '}
                      <code>{tool}</code>
                    </span>
                  ))}
                </div>
              ),
            },
          ]}
        />
      )}
    </Panel>
  );
}

async function readCallers(): Promise<readonly Caller[]> {
  const [plans, teams, keys] = await Promise.all([
    may('plans:read') ? get<Page<{ readonly name: string; readonly serverTools?: Tools }>>('/plans') : undefined,
    may('teams:read') ? get<Page<{ readonly tag: string; readonly server_tools?: Tools }>>('/teams') : undefined,
    may('keys:read') ? getPages<Key>('/keys', {}, MOST_KEYS) : undefined,
  ]);
  const row = (kind: Caller['kind'], name: string, tools: Tools, href: string): readonly Caller[] => {
    const ofServers = (tools ?? []).filter((tool) => tool.startsWith('mcp:'));
    return ofServers.length === 0 ? [] : [{ kind, name, href, tools: ofServers }];
  };
  return [
    ...(plans?.data ?? []).flatMap(({ name, serverTools }) =>
      row('plan', name, serverTools, linkTo('accounts', { plan: name })),
    ),
    ...(teams?.data ?? []).flatMap(({ tag, server_tools }) =>
      row('team', tag, server_tools, linkTo('teams', { team: tag })),
    ),
    ...(keys?.data ?? []).flatMap((key) =>
      key.revoked_at
        ? []
        : row(
            'key',
            `${key.prefix}${key.name ? ` (${key.name})` : ''}`,
            key.server_tools,
            linkTo('keys', { user: key.user_id }),
          ),
    ),
  ];
}

type Tools = readonly string[] | null | undefined;
