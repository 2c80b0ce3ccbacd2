import { isGatewayError, type PluginApi, type Principal } from '../../contract/index.ts';
import { joinedName, permissionOf, serverOf } from './names.ts';
import { PROVIDER, type ServersByName } from './operation.ts';
import { isAccepted, type PinBook } from './pins.ts';
import type { ListedTool, ToolServer } from './tool-server.ts';

/** Tool that a caller may call. */
export interface OpenTool {
  /** Name for the caller. */
  readonly name: string;
  readonly server: ToolServer;
  readonly tool: ListedTool;
}

/** Codes of errors by which a server is missing in the list of all: it is down, or the caller has no account there. */
const MISSING: ReadonlySet<string> = new Set(['provider_unavailable', 'permission_denied', 'provider_auth_failed']);

/** Tools of all servers, and who may call them. `only`: a single server, whose tools have their own names. */
export class ToolCatalog {
  readonly #servers: ServersByName;
  readonly #pins: PinBook;
  readonly #models: PluginApi['models'];

  constructor(servers: ServersByName, pins: PinBook, { models }: Pick<PluginApi, 'models'>) {
    this.#servers = servers;
    this.#pins = pins;
    this.#models = models;
  }

  /** Lists the tools that a caller may call, in a fixed order. A server that is down, or where the caller has no account, has none. */
  async list(principal: Principal, only?: ToolServer): Promise<readonly OpenTool[]> {
    const servers = only ? [only] : [...this.#servers.values()];
    const lists = await Promise.all(
      servers.map((server) =>
        this.openOf(server, principal, only !== undefined).catch((error: unknown) => {
          if (only === undefined && isGatewayError(error) && MISSING.has(error.code)) return [];
          throw error;
        }),
      ),
    );
    return lists.flat();
  }

  /**
   * Finds the tool of a name. Undefined for a tool that does not exist, that waits for approval, or that the caller may not call.
   * Throws if its server is down.
   */
  async find(principal: Principal, name: string, only?: ToolServer): Promise<OpenTool | undefined> {
    const server = only ?? this.#servers.get(serverOf(name));
    const open = server && (await this.openOf(server, principal, only !== undefined));
    return open?.find((tool) => tool.name === name);
  }

  /** Lists the tools of one server that a caller may call. Throws if the server is down. */
  async openOf(server: ToolServer, principal: Principal, hasOwnNames: boolean): Promise<readonly OpenTool[]> {
    const { name } = server.options;
    const tools = await (await server.forUser(principal.userId)).tools();
    const [pins, mayUseAll] = await Promise.all([this.#pins.of(name), this.#mayUse(principal, permissionOf(name))]);
    const open = new Map<string, OpenTool>();
    for (const tool of tools.values()) {
      if (!isAccepted(pins, tool.name, tool.pin.hash)) continue;
      if (!mayUseAll && !(await this.#mayUse(principal, permissionOf(name, tool.name)))) continue;
      const shown = hasOwnNames ? tool.name : joinedName(name, tool.name);
      if (!open.has(shown)) open.set(shown, { name: shown, server, tool });
    }
    return [...open.values()];
  }

  /** Returns whether the key or plan of a caller has a permission. */
  async #mayUse(principal: Principal, permission: string): Promise<boolean> {
    try {
      await this.#models.checkEffects('mcp', { provider: PROVIDER, model: '' }, { tool: permission }, principal);
      return true;
    } catch (error) {
      if (isGatewayError(error) && error.code === 'permission_denied') return false;
      throw error;
    }
  }
}
