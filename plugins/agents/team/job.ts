import type { ChatMessage } from '../../../contract/index.ts';
import type { ActionSet } from '../kit/action-set.ts';
import { userContent } from '../kit/agent-inputs.ts';
import type { AgentRun } from '../kit/agent-run.ts';
import { type Quoted, quoteData } from '../kit/quote-data.ts';
import type { TeamConfig } from './config.ts';
import type { Team } from './members.ts';
import type { TeamRequest } from './request.ts';

/** Earlier turns of the session. */
export interface History {
  readonly summary?: string | undefined;
  readonly turns: readonly { readonly message: string; readonly content: string }[];
}

/** Request to the team after validation. */
export interface TeamJob extends Omit<TeamRequest, 'model' | 'session' | 'stream'> {
  readonly model: string;
  readonly history: History;
}

export interface TeamLimits {
  readonly maxCalls: number;
  readonly maxTokens: number;
  readonly timeoutMs: number;
  readonly agentTimeoutMs: number;
  readonly maxRounds: number;
  readonly maxParallel: number;
}

/** Dependencies of a team run; does no I/O itself. */
export interface TeamRun extends AgentRun {
  readonly team: Team;
  readonly router: TeamConfig['router'];
  readonly writer: TeamConfig['writer'];
  readonly limits: TeamLimits;
}

/** Model calls kept for the writer: one, and one more if the first response does not fit. */
export const WRITER_CALLS = 2;

/** Instructions of one agent. */
export interface Prompt {
  /** Text of ours and of the configuration: nothing written by a user, a document or a model. */
  readonly order: readonly (string | undefined)[];
  /** Texts of users, documents and models, each with its description; appended to the user's message. */
  readonly data?: readonly Quoted[];
  readonly memory: boolean;
  readonly images: boolean;
}

/**
 * Builds the messages of one agent. The system message has its order and the calling program's context. The session so
 * far follows, and then the user's turn, which quotes everything else.
 */
export function buildMessages(job: TeamJob, { order, data = [], memory, images }: Prompt): readonly ChatMessage[] {
  const { summary, turns } = memory ? job.history : { summary: undefined, turns: [] };
  const system = [...order, job.context && `Context given by the caller:\n${job.context}`];
  const notes: readonly Quoted[] = summary ? [['Notes on the conversation so far, which may be wrong', summary]] : [];
  const inputs = images ? job.inputs : { text: job.inputs.text, images: [] };
  return [
    { role: 'system', content: system.filter(Boolean).join('\n\n') },
    ...turns.flatMap(({ message, content }): ChatMessage[] => [
      { role: 'user', content: message },
      { role: 'assistant', content },
    ]),
    { role: 'user', content: userContent(job.message, inputs, quoteData([...notes, ...data])) },
  ];
}

/** Formats the action list as a section of a prompt. */
export function describeActions(actions: ActionSet | undefined): string | undefined {
  return actions && `Actions that are available now; no others exist:\n${JSON.stringify(actions.actions)}`;
}
