import { isGatewayError, type Outcome } from '../../../contract/index.ts';
import { BudgetSpent } from './model-calls.ts';

export type TraceStatus = 'ok' | 'failed' | 'late' | 'skipped';

/** One step of a request for the caller: agent, status and duration; never a prompt. */
export interface TraceEntry {
  readonly agent: string;
  readonly status: TraceStatus;
  readonly ms: number;
  readonly round?: number;
  /** Error code. */
  readonly error?: string;
}

/** Sends `agent.started`, `agent.message` and `agent.finished`. */
export type Emit = (event: string, data: object) => void;

export interface Trace {
  readonly entries: readonly TraceEntry[];
  /** Runs one step and records it; errors are recorded and rethrown. */
  step<T>(agent: string, work: () => Promise<T>, round?: number): Promise<T>;
  /** Records a call that has ended. */
  note(agent: string, outcome: Outcome, round?: number): void;
}

/** Thrown when a step exceeds its own deadline. */
export class StepLate extends Error {
  override readonly name = 'StepLate';
}

export function createTrace(emit: Emit, now: () => number = Date.now): Trace {
  const entries: TraceEntry[] = [];
  const record = (entry: TraceEntry): void => {
    entries.push(entry);
    emit('agent.finished', entry);
  };
  return {
    entries,
    note(agent, { status, units = {}, durationMs, error }, round) {
      const isOk = status === 'ok' && !units['tool_errors'];
      record({
        agent,
        ...(round !== undefined && { round }),
        status: isOk ? 'ok' : 'failed',
        ms: Math.round(durationMs),
        ...(error && { error: error.code }),
      });
    },
    async step(agent, work, round) {
      const startedAt = now();
      const about = { agent, ...(round !== undefined && { round }) };
      emit('agent.started', about);
      const finish = (status: TraceStatus, error?: string) => {
        record({ ...about, status, ms: Math.round(now() - startedAt), ...(error && { error }) });
      };
      try {
        const result = await work();
        finish('ok');
        return result;
      } catch (error) {
        finish(statusOf(error), isGatewayError(error) ? error.code : undefined);
        throw error;
      }
    },
  };
}

function statusOf(error: unknown): TraceStatus {
  if (error instanceof StepLate) return 'late';
  return error instanceof BudgetSpent ? 'skipped' : 'failed';
}
