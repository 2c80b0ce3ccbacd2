import { type Call, GatewayError, type Outcome, type Principal } from '../../../contract/index.ts';
import { startDeadline, untilAborted } from './deadline.ts';
import type { ModelCalls } from './model-calls.ts';
import { type ModeMemory, modesOf, type StructuredDeps } from './request-structured.ts';
import { type Emit, StepLate, type Trace } from './trace.ts';

/** Shared state of all steps of one request. */
export interface AgentRun {
  readonly calls: ModelCalls;
  readonly modes: ModeMemory;
  readonly trace: Trace;
  readonly emit: Emit;
  readonly signal: AbortSignal;
  readonly principal: Principal;
  readonly requestId: string;
}

/**
 * Dependencies of structured requests with the remaining budget; `reserve` calls stay for others. Calls of servers' tools are in the
 * trace with the `round`.
 */
export function structuredDeps(run: AgentRun, signal: AbortSignal, reserve: number, round?: number): StructuredDeps {
  const onTool = (call: Call, outcome: Outcome): void => run.trace.note(nameOfTool(call), outcome, round);
  return {
    chat: (request, servers) => run.calls.chat(request, { signal, reserve, servers, onTool }),
    modes: modesOf(run.modes, run.principal.userId),
    mayRetry: () => run.calls.left() > reserve,
    traceId: run.requestId,
  };
}

/** Name of a tool's call in the records: `mcp/server/tool`. */
function nameOfTool({ request }: Call): string {
  return 'model' in request ? String(request.model) : 'mcp';
}

/** Runs one agent's work under a separate deadline; throws {@link StepLate} at the deadline. */
export async function runInTime<T>(
  agent: string,
  run: AgentRun,
  timeoutMs: number,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const deadline = startDeadline(run.signal, timeoutMs);
  try {
    return await untilAborted(work(deadline.signal), deadline.signal);
  } catch (error) {
    if (!deadline.expired()) throw error;
    const cause = new GatewayError('provider_timeout', `The agent ${agent} timed out.`);
    throw new StepLate(`${agent} timed out`, { cause });
  } finally {
    deadline.stop();
  }
}
