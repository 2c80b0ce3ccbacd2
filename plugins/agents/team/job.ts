import type { ChatMessage } from '../../../contract/index.ts';
import type { ActionSet } from '../kit/action-set.ts';
import { userContent } from '../kit/agent-inputs.ts';
import type { AgentRun } from '../kit/agent-run.ts';
import { type Quoted, quoteData } from '../kit/quote-data.ts';
import type { TeamConfig } from './config.ts';
import type { Team } from './members.ts';
import type { TeamRequest } from './request.ts';

/** What earlier turns of the session left. */
export interface History {
  readonly summary?: string | undefined;
  readonly turns: readonly { readonly message: string; readonly content: string }[];
}

/** One request to the team, read and checked. */
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

/** What a run of the team works with; no I/O of its own. */
export interface TeamRun extends AgentRun {
  readonly team: Team;
  readonly router: TeamConfig['router'];
  readonly writer: TeamConfig['writer'];
  readonly limits: TeamLimits;
}

/** Model calls that the writer may need: one, and one more when the first response does not fit. */
export const WRITER_CALLS = 2;

/** The instructions of one agent. */
export interface Prompt {
  /** Words of ours and of the configuration: nothing that a user, a document or a model wrote. */
  readonly order: readonly (string | undefined)[];
  /** What users, documents and models wrote, each with what it is: it follows on the user's message. */
  readonly data?: readonly Quoted[];
  readonly memory: boolean;
  readonly images: boolean;
}

/**
 * The messages of one agent: its order and the calling program's context as the system's, the session so far, and the user's
 * turn, in which everything else is quoted.
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

/** The action list as a section of a prompt. */
export function describeActions(actions: ActionSet | undefined): string | undefined {
  return actions && `Actions that are available now; no others exist:\n${JSON.stringify(actions.actions)}`;
}
