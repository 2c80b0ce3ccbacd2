import type { CallContext, Principal } from './call.ts';
import type { ServerToolCall, Tool } from './chat.ts';

/** Server whose tools a chat names. */
export interface NamedServer {
  readonly server: string;
  /** Names of the wanted tools. Default: all that the caller may use. */
  readonly tools?: readonly string[];
  /** Path in the caller's body. Absent for a default of the plan, which is skipped where it is not available. */
  readonly param?: string;
}

/** Tool of a server, as a model sees it. */
export interface ServerTool {
  readonly server: string;
  /** Name at its server. */
  readonly tool: string;
  readonly definition: Tool;
}

/** Result of a tool, as a model sees it. */
export type ServerToolResult = Pick<ServerToolCall, 'output' | 'is_error'>;

/** Limits of one chat. After a turn that reaches one, no tool runs. */
export interface ToolBounds {
  readonly maxTurns: number;
  readonly maxTimeMs: number;
  /** Nano-dollars of all turns and tools. */
  readonly maxCost: number;
}

/** Context of a chat that a plugin sends. */
export interface ChatContext extends CallContext {
  /**
   * MCP servers whose tools core runs for this chat. One with a `param` must be available to the caller; others are left out if they
   * are not.
   */
  readonly servers?: readonly NamedServer[];
  /** Called before each turn after the first one. False ends the chat as incomplete. */
  mayContinue?(): boolean;
}

/** Servers that a dialect may take out of a request. */
export interface KnownServers {
  has(server: string): boolean;
  /** Returns the name of a tool for models. */
  toolName(server: string, tool: string): string;
}

/** Service `server-tools`: the tools that core runs in chats. */
export interface ServerTools extends KnownServers {
  readonly bounds: ToolBounds;
  /** Lists the tools that a caller may use. Throws if a named server has none, or is down. */
  list(servers: readonly NamedServer[], caller: Principal): Promise<readonly ServerTool[]>;
  /**
   * Calls a tool as a call of its own. Failures of the tool are results. Throws if the chat must end: a budget or limit is reached,
   * or the caller has left.
   */
  call(tool: ServerTool, args: string, context: CallContext): Promise<ServerToolResult>;
}

/** Request without the servers that it named. */
export interface WithoutServers<Body> {
  readonly body: Body;
  readonly servers: readonly NamedServer[];
  /** True if a tool call was required, and the body has no tool for it any more. */
  readonly requiresTool?: boolean;
}

declare module './call.ts' {
  interface Services {
    readonly 'server-tools': ServerTools;
  }
}
