import type {
  Call,
  CallContext,
  ChatContext,
  ChatRequest,
  ChatResponse,
  NamedServer,
  Outcome,
  PluginApi,
  Usage,
} from '../../../contract/index.ts';
import { untilAborted } from './deadline.ts';

/** Budget of one request over all its agents. */
export interface Budget {
  readonly maxCalls: number;
  /** Prompt and completion tokens. Once they are used no new specialist starts, but the writer may. */
  readonly maxTokens: number;
}

/** Thrown in place of a specialist's call when the request's budget is spent. */
export class BudgetSpent extends Error {
  override readonly name = 'BudgetSpent';
}

/** Model calls of one request. */
export interface ModelCalls {
  /**
   * Makes one call through all hooks. `reserve` calls are kept for others: throws {@link BudgetSpent} if the call would
   * use them, or if the tokens are spent. Calls without a reserve are refused only if no call is left. With `servers`, each turn is a
   * call of the budget; the chat ends as incomplete when the budget is spent.
   */
  chat(request: ChatRequest, options: CallOptions): Promise<ChatResponse>;
  /** Counts a call that an agent made by other means than `chat`, such as an embedding. */
  note(call: Call, outcome: Outcome): void;
  /** Remaining calls. */
  left(): number;
  usage(): Usage;
}

interface CallOptions {
  readonly signal: AbortSignal;
  readonly reserve?: number;
  /** MCP servers whose tools the model may call. */
  readonly servers?: readonly NamedServer[] | undefined;
  /** Called after each call of such a tool. */
  readonly onTool?: ((call: Call, outcome: Outcome) => void) | undefined;
}

/** Identity for the calls, and the listener for their outcomes. */
export type CallerFacts = Pick<CallContext, 'principal' | 'requestId' | 'session' | 'onOutcome'>;

/**
 * Makes the calls of one request. Only the first counts as a request towards the caller's limits: the rest skip `rpm`
 * and `concurrency`, but their tokens and cost always count. Aborting ends the wait at once. The usage sums all calls,
 * including those that failed or were aborted after the provider had worked. `onAdmitted` runs when the first call has
 * its response; that call must not run in code that swallows errors, or limits would not apply.
 */
export function createModelCalls(
  chat: PluginApi['chat'],
  caller: CallerFacts,
  budget: Budget,
  onAdmitted?: () => void,
): ModelCalls {
  let calls = 0;
  const sum = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
  /** Takes one call of the budget; false if it is spent. */
  const take = (reserve: number): boolean => {
    const spent = reserve > 0 && sum.total_tokens >= budget.maxTokens;
    if (spent || calls + 1 + reserve > budget.maxCalls) return false;
    calls += 1;
    return true;
  };
  return {
    async chat(request, { signal, reserve = 0, servers, onTool }) {
      signal.throwIfAborted();
      const first = calls === 0;
      if (!take(reserve)) throw new BudgetSpent('the call limit of this request is reached');
      let counted = 0;
      const context: ChatContext = {
        ...caller,
        signal,
        ...(!first && { skip: ['rpm', 'concurrency'] as const }),
        ...(servers && servers.length > 0 && { servers, mayContinue: () => take(reserve) }),
        // Called for each turn and tool, before the response.
        onOutcome(call, outcome) {
          if (outcome.usage) {
            addUsage(sum, outcome.usage);
            counted += 1;
          }
          if (call.operation === 'mcp') onTool?.(call, outcome);
          caller.onOutcome?.(call, outcome);
        },
      };
      const response = await untilAborted(chat({ ...request, stream: false }, context), signal);
      if (counted === 0 && response.usage) addUsage(sum, response.usage);
      if (first) onAdmitted?.();
      return response;
    },
    note(call, outcome) {
      if (outcome.usage) addUsage(sum, outcome.usage);
      caller.onOutcome?.(call, outcome);
    },
    left: () => budget.maxCalls - calls,
    usage: () => ({ ...sum }),
  };
}

function addUsage(sum: { prompt_tokens: number; completion_tokens: number; total_tokens: number }, usage: Usage): void {
  sum.prompt_tokens += usage.prompt_tokens;
  sum.completion_tokens += usage.completion_tokens;
  sum.total_tokens += usage.prompt_tokens + usage.completion_tokens;
}
