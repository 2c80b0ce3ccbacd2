import { definePlugin, problemsOf } from '../../contract/index.ts';
import { ToolCatalog } from './catalog.ts';
import { CONFIG_SCHEMA, readBounds, readServers } from './config-schema.ts';
import { registerEndpoint } from './endpoint.ts';
import { registerManagement } from './manage.ts';
import { toolOffer, toolOperation } from './operation.ts';
import { PinBook, type ServerPins } from './pins.ts';
import { assertInstalled, importSdk, type Sdk } from './sdk.ts';
import { createServerTools } from './server-tools.ts';
import { ToolServer } from './tool-server.ts';

/** Name of the records with pinned tools. */
const PINS = 'mcp';

/** MCP servers behind one address, with the keys, limits, prices and records of the gateway. */
export default definePlugin({
  name: 'mcp',
  kind: 'operation',
  apiVersion: 1,
  section: 'mcp',
  permissions: ['records', 'operators'],
  provides: ['server-tools'],
  commands: [{ name: 'tools', summary: 'List and approve tools of MCP servers' }],
  configSchema: CONFIG_SCHEMA,
  check: (config, { baseDir }) =>
    problemsOf(
      () => assertInstalled(baseDir),
      () => readServers(config, baseDir),
    ),
  setup(api, config) {
    const { baseDir, version } = api.settings;
    assertInstalled(baseDir);
    let imported: Promise<Sdk> | undefined;
    const sdk = (): Promise<Sdk> => {
      imported ??= importSdk(baseDir);
      return imported;
    };
    const records = api.books.records<ServerPins>(PINS);
    const pins = new PinBook(records);
    const { log, fetch } = api;
    const onList = pins.compare.bind(pins);
    const servers = new Map(
      readServers(config, baseDir).map((options) => [
        options.name,
        // Servers whose options did not change survive a reload.
        api.keep(
          `server ${options.identity}`,
          () => new ToolServer(options, { sdk, fetch, log, version, onList }),
          (server) => server.close(),
        ),
      ]),
    );
    api.operation(toolOperation(servers));
    api.offer('mcp', toolOffer(servers));
    const catalog = new ToolCatalog(servers, pins, api);
    registerEndpoint({ api, sdk, servers, catalog, hosts: config.hosts });
    registerManagement(api, servers, records);
    api.provide('server-tools', createServerTools({ api, servers, catalog, bounds: readBounds(config) }));
    api.operators.reportParts(() =>
      [...servers.values()].map(({ state: { name, state, problem } }) => ({
        name,
        state,
        isHealthy: state !== 'failed',
        ...(problem !== undefined && { problem }),
      })),
    );
    api.onReady(() => {
      for (const server of servers.values()) server.start();
    });
  },
});
