import { definePlugin, problemsOf } from '../../contract/index.ts';
import { registerAdmin } from './admin/endpoint.ts';
import { Authorization } from './authorization.ts';
import { ToolCatalog } from './catalog.ts';
import { assertPlans, CONFIG_SCHEMA, readBounds, readServers } from './config-schema.ts';
import { registerConnections } from './connections.ts';
import { registerEndpoint } from './endpoint.ts';
import { registerManagement } from './manage.ts';
import { toolOffer, toolOperation } from './operation.ts';
import { PinBook, type ServerPins } from './pins.ts';
import { assertInstalled, importSdk, type Sdk } from './sdk.ts';
import { createServerTools } from './server-tools.ts';
import { TokenBook } from './token-book.ts';
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
  check: (config, { baseDir, settings }) =>
    problemsOf(
      () => assertInstalled(baseDir),
      () => readServers(config, baseDir),
      () => assertPlans(config, settings.plans),
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
    const { publicUrl = '', tokenKey } = config;
    const book = new TokenBook(api, tokenKey);
    const all = readServers(config, baseDir);
    const authorizations = new Map(
      all.flatMap((options) =>
        options.oauth && tokenKey !== undefined
          ? [
              [
                options.name,
                new Authorization(options, options.oauth, { sdk, api, book, publicUrl, tokenKey }),
              ] as const,
            ]
          : [],
      ),
    );
    const servers = new Map(
      all.map((options) => {
        const accounts = authorizations.get(options.name);
        const make = (): ToolServer => new ToolServer(options, { sdk, fetch, log, version, onList, accounts });
        // Servers whose options did not change survive a reload.
        const keep = () => api.keep(`server ${options.identity}`, make, (server) => server.close());
        return [options.name, accounts ? make() : keep()] as const;
      }),
    );
    api.stores.personalData({
      name: 'connections',
      count: ({ userId }) => book.count(userId),
      erase: ({ userId }) => book.erase(userId),
    });
    if (tokenKey !== undefined && authorizations.size > 0)
      registerConnections({
        api,
        authorizations,
        book,
        publicUrl,
        tokenKey,
        onRevoked: (server, user) => servers.get(server)?.dropUser(user),
      });
    api.onClose(async () => {
      for (const name of authorizations.keys()) await servers.get(name)?.close();
    });
    api.operation(toolOperation(servers));
    api.offer('mcp', toolOffer(servers));
    const catalog = new ToolCatalog(servers, pins, api);
    registerEndpoint({ api, sdk, servers, catalog, hosts: config.hosts });
    registerManagement(api, servers, records);
    if (config.admin) registerAdmin({ api, sdk, hosts: config.hosts });
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
