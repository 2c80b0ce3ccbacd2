import type { Call, Outcome, Principal } from './call.ts';
import type { ChatMessage, ChatResponse, Usage } from './chat.ts';
import type { Schema } from './json.ts';

/** A specialist of the team: declared in the configuration, or shipped by a plugin with `api.agent(…)`. */
export interface AgentDefinition {
  /** `[a-z0-9_-]{1,40}`, unique in the team. */
  readonly name: string;
  /** One line: what it is for. The router chooses by this text; an empty one keeps it out of the router's choice. */
  readonly when: string;
  readonly instructions?: string;
  /** `provider/model` or an alias; absent uses the model of the request. */
  readonly model?: string;
  readonly temperature?: number;
  readonly maxTokens?: number;
  /** Names of tools it may use, such as `rag`. */
  readonly tools?: readonly string[];
  /** Whether it is shown the caller's actions; true unless set. */
  readonly actions?: boolean;
  /** Whether it is shown the session's memory; true unless set. */
  readonly memory?: boolean;
  /** Replaces the model call: an agent written in code. */
  run?(task: AgentTask, context: AgentContext): Promise<AgentFinding>;
  /**
   * Wipes what the agent itself keeps about this caller, one session or all; answers how many it wiped. Called by
   * `DELETE /api/core/agent/memory`.
   */
  forget?(principal: Principal, session?: string): Promise<number>;
}

export interface AgentTask {
  readonly instruction: string;
  readonly message: string;
  readonly context?: string;
  readonly inputs?: unknown;
  readonly actions?: readonly AgentAction[];
}

export interface AgentAction {
  readonly name: string;
  readonly description?: string;
  readonly parameters?: Schema;
}

export interface AgentFinding {
  readonly summary: string;
  readonly confidence?: number;
  readonly actions?: readonly { readonly name: string; readonly arguments: Readonly<Record<string, unknown>> }[];
  readonly data?: unknown;
}

export interface AgentContext {
  readonly principal: Principal;
  /** The request this is part of: what the agent's own calls through `api` pass on, with `onOutcome`. */
  readonly requestId: string;
  /** Told what such a call came to, so that the request's usage and the access log have it. */
  onOutcome?(call: Call, outcome: Outcome): void;
  readonly signal: AbortSignal;
  /** A model call for this agent: metered, limited, part of the request. */
  chat(
    messages: readonly ChatMessage[],
    options?: { readonly temperature?: number; readonly schema?: Schema },
  ): Promise<ChatResponse>;
  /** Shows something in the event stream. */
  emit(data: unknown): void;
  readonly usage: () => Usage;
}
