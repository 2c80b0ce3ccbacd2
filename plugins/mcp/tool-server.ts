import { isDeepStrictEqual } from 'node:util';
import type { CallToolResult, Client, Tool } from '@modelcontextprotocol/client';
import { LRUCache } from 'lru-cache';
import { GatewayError, isGatewayError, isObject, type Log } from '../../contract/index.ts';
import { boundedFetch, TooLarge } from './bounded-fetch.ts';
import type { ServerOptions } from './config-schema.ts';
import { TOOL_NAME } from './names.ts';
import { type Pin, pinOf } from './pins.ts';
import { ProgramTransport } from './program.ts';
import type { Sdk } from './sdk.ts';

/** Tool as its server lists it. */
export interface ListedTool {
  readonly name: string;
  /** Definition for callers: the standard members alone. */
  readonly definition: ToolDefinition;
  readonly pin: Pin;
  /** Definition as the server sent it, without the schema of results: callers check results, not the gateway. */
  readonly original: Tool;
}

/** Members of a tool's definition that callers get. */
export type ToolDefinition = Pick<Tool, 'name' | 'inputSchema'> &
  Partial<Pick<Tool, 'title' | 'description' | 'outputSchema' | 'annotations'>>;

export type ToolList = ReadonlyMap<string, ListedTool>;

/** Result of a call, or its failure. `isDone` is false if the server did nothing. */
export type ToolOutcome =
  | { readonly result: CallToolResult }
  | { readonly failure: GatewayError; readonly isDone: boolean };

/** State of a server in this process, for operators. */
export interface ServerState {
  readonly name: string;
  readonly state: 'starting' | 'ready' | 'failed' | 'stopped';
  /** Reason of a failure; it may name files and hosts. */
  readonly problem?: string;
  readonly pid?: number;
  readonly protocol?: string;
  readonly tools?: number;
  /** Starts of the program or connections since the gateway started. */
  readonly starts: number;
}

/** Servers whose callers each have an account of their own there. */
interface UserAccounts {
  /** Returns the access token of a user. `refused`: a token that the server did not accept. Throws without a connection. */
  token(user: string, refused?: string): Promise<string>;
}

interface ServerDeps {
  readonly sdk: () => Promise<Sdk>;
  readonly fetch: typeof fetch;
  readonly log: Log;
  readonly version: string;
  /** Set if each user has an account there: {@link ToolServer.forUser} has the connection of one. */
  readonly accounts?: UserAccounts | undefined;
  /** True for the connection of one user, which only calls open. */
  readonly isLazy?: boolean;
  /** Called with each new list of tools, before callers see it. */
  readonly onList: (server: string, tools: ReadonlyMap<string, Pin>) => Promise<void>;
}

interface Connection {
  readonly client: Client;
  tools: ToolList;
  listedMs: number;
  refreshing: Promise<void> | undefined;
  close(): Promise<void>;
}

/** Age of a list after which the next use renews it in the background. */
const LIST_MS = 60_000;

/** Maximum number of tools and pages of a list, and maximum size of one definition. */
const MAX_TOOLS = 500;
const MAX_PAGES = 20;
const MAX_DEFINITION = 64 * 1024;

/** Minimum size of messages that are read: lists are larger than most results. */
const MIN_MESSAGE_BYTES = 4 * 1024 * 1024;

/** Waits before a server is started again. */
const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 60_000;

/** Time of a connection after which the waits begin at the first one again. */
const STABLE_MS = 60_000;

/** Maximum number of users with a connection at one server, and the time after which an unused one is closed. */
const MAX_USERS = 1000;
const IDLE_MS = 10 * 60_000;

/** Time limit of the question for the protocol of a server. */
const PROBE_MS = 5000;

/** One configured MCP server: its connection, renewed after failures, and its tools. It survives reloads. */
export class ToolServer {
  readonly options: ServerOptions;
  readonly #deps: ServerDeps;
  #connection: Promise<Connection> | undefined;
  #open: Connection | undefined;
  #program: ProgramTransport | undefined;
  #problem: string | undefined;
  #failures = 0;
  #starts = 0;
  #openedMs = 0;
  #retryMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  /** Connections of users. */
  readonly #users: LRUCache<string, ToolServer> | undefined;

  constructor(options: ServerOptions, deps: ServerDeps) {
    this.options = options;
    this.#deps = deps;
    if (deps.accounts)
      this.#users = new LRUCache({
        max: MAX_USERS,
        ttl: IDLE_MS,
        updateAgeOnGet: true,
        dispose: (server) => void server.close(),
      });
  }

  /** Connects in the background, and again after each failure. Connections of users are opened by their calls. */
  start(): void {
    if (!this.#users) this.#connect().catch(() => undefined);
  }

  /** Returns the server as one user reaches it. Throws if the user must connect an account first. */
  async forUser(user: string): Promise<ToolServer> {
    const { accounts, ...deps } = this.#deps;
    if (!accounts || !this.#users) return this;
    // Asked for each use, since an account may be disconnected at any time.
    await accounts.token(user);
    let own = this.#users.get(user);
    if (!own) {
      const fetch = withToken(deps.fetch, this.options.url ?? '', (refused) => accounts.token(user, refused));
      this.#users.purgeStale();
      own = new ToolServer(this.options, { ...deps, fetch, isLazy: true });
      this.#users.set(user, own);
    }
    return own;
  }

  /** Closes the connection of a user whose account was disconnected. */
  dropUser(user: string): void {
    this.#users?.delete(user);
  }

  /** Returns the tools that the configuration offers. Throws `provider_unavailable` while the server is down. */
  async tools(): Promise<ToolList> {
    const connection = await this.#connect();
    if (performance.now() - connection.listedMs > LIST_MS) this.#refresh(connection);
    return connection.tools;
  }

  /** Calls a tool of {@link tools}. Rejects only if the signal aborts. */
  async call(tool: ListedTool, args: Readonly<Record<string, unknown>>, signal: AbortSignal): Promise<ToolOutcome> {
    const sdk = await this.#deps.sdk();
    const { timeoutMs } = this.options;
    for (let isAgain = false; ; isAgain = true) {
      const connection = await this.#connect();
      try {
        const result = await connection.client.callTool(
          { name: tool.name, arguments: args },
          { signal, timeout: timeoutMs, maxTotalTimeout: timeoutMs, toolDefinition: tool.original },
        );
        return { result };
      } catch (error) {
        signal.throwIfAborted();
        if (isAgain || !isSessionLost(error, sdk)) return this.#explain(error, sdk);
        // A server of the former protocol has forgotten the session, and refused the call.
        await this.#drop(connection, 'it ended the session');
      }
    }
  }

  get state(): ServerState {
    const { name } = this.options;
    const shared = { name, starts: this.#starts };
    if (this.#users && !this.#isClosed) return { ...shared, state: 'ready' };
    if (this.#open) {
      const protocol = this.#open.client.getNegotiatedProtocolVersion();
      const pid = this.#program?.pid ?? undefined;
      return {
        ...shared,
        state: 'ready',
        tools: this.#open.tools.size,
        ...(protocol !== undefined && { protocol }),
        ...(pid !== undefined && { pid }),
      };
    }
    if (this.#isClosed) return { ...shared, state: 'stopped' };
    return {
      ...shared,
      state: this.#problem === undefined ? 'starting' : 'failed',
      ...(this.#problem !== undefined && { problem: this.#problem }),
    };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#users?.clear();
    const connection = await this.#connection?.catch(() => undefined);
    await connection?.close();
    await this.#program?.close();
  }

  #connect(): Promise<Connection> {
    if (this.#connection) return this.#connection;
    const waitMs = this.#retryMs - performance.now();
    if (this.#isClosed || waitMs > 0) return Promise.reject(this.#unavailable(waitMs));
    clearTimeout(this.#timer);
    this.#connection = this.#begin().catch((error: unknown) => {
      const refusal = refusalOf(error);
      if (refusal) {
        this.#connection = undefined;
        throw refusal;
      }
      this.#fail(error instanceof Error ? error.message : String(error));
      throw this.#unavailable(this.#retryMs - performance.now());
    });
    return this.#connection;
  }

  async #begin(): Promise<Connection> {
    this.#starts += 1;
    const sdk = await this.#deps.sdk();
    const { startTimeoutMs, program, name } = this.options;
    const maxMessageBytes = Math.max(this.options.maxResultBytes, MIN_MESSAGE_BYTES);
    const transport = program
      ? new ProgramTransport(sdk, { ...program, maxMessageBytes })
      : this.#httpTransport(sdk, maxMessageBytes);
    if (transport instanceof ProgramTransport) this.#program = transport;
    const client = new sdk.client.Client(
      { name: 'tollgate', version: this.#deps.version },
      {
        versionNegotiation: { mode: 'auto', probe: { timeoutMs: Math.min(PROBE_MS, startTimeoutMs) } },
        inputRequired: { autoFulfill: false },
        listMaxPages: MAX_PAGES,
        listChanged: { tools: { autoRefresh: false, onChanged: () => this.#open && this.#refresh(this.#open) } },
      },
    );
    let connection: Connection | undefined;
    const close = async (): Promise<void> => {
      await client.close().catch(() => undefined);
      await transport.close().catch(() => undefined);
    };
    try {
      await client.connect(transport, { timeout: startTimeoutMs });
      client.onclose = () => {
        if (connection) this.#lose(connection);
      };
      client.onerror = (error) =>
        this.#deps.log.debug({ server: name, err: error }, 'an MCP server sent something invalid');
      const tools = await this.#list(client);
      connection = { client, tools, listedMs: performance.now(), refreshing: undefined, close };
    } catch (error) {
      await close();
      const problem = transport instanceof ProgramTransport ? transport.problem : undefined;
      throw problem === undefined ? error : new Error(problem, { cause: error });
    }
    this.#open = connection;
    this.#openedMs = performance.now();
    this.#problem = undefined;
    this.#deps.log.info({ server: name, tools: connection.tools.size }, 'an MCP server is ready');
    return connection;
  }

  #httpTransport(sdk: Sdk, maxBytes: number) {
    const { url = '', headers, timeoutMs, startTimeoutMs } = this.options;
    return new sdk.client.StreamableHTTPClientTransport(new URL(url), {
      fetch: boundedFetch(this.#deps.fetch, { maxBytes, maxMs: Math.max(timeoutMs, startTimeoutMs) + 1000 }),
      requestInit: { headers: { ...headers }, redirect: 'manual' },
      reconnectionOptions: {
        maxRetries: 0,
        initialReconnectionDelay: 1000,
        maxReconnectionDelay: 1000,
        reconnectionDelayGrowFactor: 1,
      },
    });
  }

  async #list(client: Client): Promise<ToolList> {
    const listed = client.getServerCapabilities()?.tools
      ? await client.listTools(undefined, { timeout: this.options.startTimeoutMs, cacheMode: 'refresh' })
      : { tools: [] };
    const tools = new Map<string, ListedTool>();
    for (const tool of listed.tools) {
      const problem = tools.size >= MAX_TOOLS ? 'the server has too many tools' : problemOf(tool, tools);
      if (problem !== undefined)
        this.#deps.log.warn(
          { server: this.options.name, tool: tool.name.slice(0, 128), reason: problem },
          'a tool is not offered',
        );
      else if (this.options.offers(tool.name)) {
        const definition = define(tool);
        const { outputSchema: _outputSchema, ...original } = tool;
        tools.set(tool.name, { name: tool.name, definition, pin: pinOf(definition), original });
      }
      if (tools.size >= MAX_TOOLS) break;
    }
    await this.#deps.onList(this.options.name, new Map([...tools].map(([name, { pin }]) => [name, pin])));
    return tools;
  }

  /** Renews the list in the background; the former one stays in use if that fails. */
  #refresh(connection: Connection): void {
    connection.refreshing ??= this.#list(connection.client)
      .then(
        (tools) => {
          if (!isDeepStrictEqual([...tools.keys()], [...connection.tools.keys()]))
            this.#deps.log.info({ server: this.options.name, tools: tools.size }, 'the tools of an MCP server changed');
          connection.tools = tools;
        },
        (error: unknown) => {
          this.#deps.log.warn({ server: this.options.name, err: error }, 'an MCP server did not list its tools');
          return this.#deps
            .sdk()
            .then((sdk) => (isSessionLost(error, sdk) ? this.#drop(connection, 'it ended the session') : undefined));
        },
      )
      .finally(() => {
        connection.refreshing = undefined;
        connection.listedMs = performance.now();
      });
  }

  /** Closes a connection, so that the next use opens another one at once. */
  async #drop(connection: Connection, reason: string): Promise<void> {
    if (this.#open === connection) {
      this.#open = undefined;
      this.#connection = undefined;
      this.#deps.log.info({ server: this.options.name, reason }, 'connecting to an MCP server again');
    }
    await connection.close();
  }

  #lose(connection: Connection): void {
    if (this.#open !== connection) return;
    this.#open = undefined;
    if (performance.now() - this.#openedMs > STABLE_MS) this.#failures = 0;
    this.#fail(this.#program?.problem ?? 'it closed the connection');
  }

  #fail(problem: string): void {
    this.#connection = undefined;
    this.#problem = problem;
    if (this.#isClosed) return;
    const waitMs = Math.min(FIRST_WAIT_MS * 2 ** this.#failures, LONGEST_WAIT_MS);
    this.#failures += 1;
    this.#retryMs = performance.now() + waitMs;
    this.#deps.log.warn({ server: this.options.name, reason: problem, retry_ms: waitMs }, 'an MCP server failed');
    clearTimeout(this.#timer);
    if (!this.#deps.isLazy) this.#timer = setTimeout(() => this.start(), waitMs + 1).unref();
  }

  #unavailable(waitMs: number): GatewayError {
    return new GatewayError(
      'provider_unavailable',
      `The MCP server "${this.options.name}" is not available. Try again later.`,
      {
        retryAfterMs: Math.max(Math.ceil(waitMs), FIRST_WAIT_MS),
        cause: this.#problem,
      },
    );
  }

  #explain(error: unknown, { client: { ProtocolError, SdkError, SdkErrorCode } }: Sdk): ToolOutcome {
    const { name, timeoutMs, maxResultBytes } = this.options;
    const refusal = refusalOf(error);
    if (refusal) return { isDone: false, failure: refusal };
    const server = `The MCP server "${name}"`;
    const words = error instanceof Error ? error.message.slice(0, 500) : '';
    if (error instanceof ProtocolError) {
      const code = error.code === -32602 ? 'invalid_request' : 'provider_unavailable';
      return {
        isDone: false,
        failure: new GatewayError(code, `${server} rejected the call: ${words}`, { cause: error }),
      };
    }
    if (error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout)
      return {
        isDone: true,
        failure: new GatewayError(
          'provider_timeout',
          `${server} did not finish the tool within ${timeoutMs / 1000} s.`,
          { cause: error },
        ),
      };
    if (error instanceof SdkError && error.code === SdkErrorCode.InvalidResult)
      return {
        isDone: true,
        failure: new GatewayError('provider_invalid_response', `${server} returned an invalid result.`, {
          cause: error,
        }),
      };
    const isLarge = error instanceof TooLarge || (error instanceof Error && error.cause instanceof TooLarge);
    const failure = isLarge
      ? tooLarge(name, maxResultBytes)
      : new GatewayError('provider_unavailable', `${server} did not return a result. Try again later.`, {
          cause: error,
        });
    return { isDone: true, failure };
  }
}

/** Error of a user's account, which the SDK may have wrapped. */
function refusalOf(error: unknown): GatewayError | undefined {
  if (isGatewayError(error)) return error;
  return error instanceof Error && error.cause !== undefined ? refusalOf(error.cause) : undefined;
}

/** Wraps `fetch` with the token of one user, for one server alone. A token that it does not accept is renewed once. */
function withToken(fetchAny: typeof fetch, server: string, token: (refused?: string) => Promise<string>): typeof fetch {
  return async (input, init = {}) => {
    const url = new URL(input instanceof Request ? input.url : input);
    if (url.href !== new URL(server).href) throw new Error('the token of a user is for another address');
    const send = (access: string): Promise<Response> => {
      const headers = new Headers(init.headers);
      headers.set('authorization', `Bearer ${access}`);
      return fetchAny(url, { ...init, headers });
    };
    const access = await token();
    const response = await send(access);
    if (response.status !== 401) return response;
    await response.body?.cancel();
    return send(await token(access));
  };
}

export function tooLarge(server: string, maxBytes: number): GatewayError {
  return new GatewayError(
    'provider_invalid_response',
    `The MCP server "${server}" returned a result of more than ${maxBytes} bytes.`,
  );
}

/** Returns whether a server of the former protocol has forgotten the session of a request: it did nothing. */
function isSessionLost(error: unknown, { client: { SdkHttpError } }: Sdk): boolean {
  // The protocol asks for 404; published servers return 400.
  return error instanceof SdkHttpError && (error.status === 404 || error.status === 400);
}

/** Reason why a listed tool cannot be offered. */
function problemOf(tool: Tool, known: ToolList): string | undefined {
  if (!TOOL_NAME.test(tool.name)) return 'its name is not valid';
  if (known.has(tool.name)) return 'another tool has its name';
  return JSON.stringify(tool).length > MAX_DEFINITION ? 'its definition is too large' : undefined;
}

/** Members of a definition that the model of a caller sees; all of them are pinned. */
function define({ name, title, description, inputSchema, outputSchema, annotations }: Tool): ToolDefinition {
  return {
    name,
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    inputSchema: withoutHeaders(inputSchema) as Tool['inputSchema'],
    ...(outputSchema !== undefined && { outputSchema }),
    ...(annotations !== undefined && { annotations }),
  };
}

/** Removes marks of parameters that are sent as headers: the gateway sends them itself. */
function withoutHeaders(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(withoutHeaders);
  if (!isObject(schema)) return schema;
  return Object.fromEntries(
    Object.entries(schema).flatMap(([name, member]) =>
      name === 'x-mcp-header' && typeof member === 'string' ? [] : [[name, withoutHeaders(member)] as const],
    ),
  );
}
