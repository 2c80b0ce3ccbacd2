import type {
  Call,
  CallContext,
  ChatRequest,
  ChatResponse,
  Outcome,
  PluginApi,
  Usage,
} from '../../../contract/index.ts';
import { untilAborted } from './deadline.ts';

/** What one request may spend over all its agents. */
export interface Budget {
  readonly maxCalls: number;
  /** Prompt and completion tokens; no new specialist starts once they are used, the writer still may. */
  readonly maxTokens: number;
}

/** A specialist was not called because the request's budget is spent. */
export class BudgetSpent extends Error {
  override readonly name = 'BudgetSpent';
}

/** The model calls of one request. */
export interface ModelCalls {
  /**
   * One call through all hooks. `reserve` calls are left for others: when this one would take them, or the
   * tokens are spent, it throws {@link BudgetSpent}. Calls with no reserve are refused only when no call is left.
   */
  chat(
    request: ChatRequest,
    options: { readonly signal: AbortSignal; readonly reserve?: number },
  ): Promise<ChatResponse>;
  /** Counts a call that an agent made past `chat`, such as an embedding. */
  note(call: Call, outcome: Outcome): void;
  /** Calls that may still be made. */
  left(): number;
  usage(): Usage;
}

/** Who the calls are made for, and what is called with their outcomes. */
export type CallerFacts = Pick<CallContext, 'principal' | 'requestId' | 'session' | 'onOutcome'>;

/**
 * Makes the calls of one request: only the first counts as a request against the caller's limits (the rest skip `rpm`
 * and `concurrency`, their tokens and cost count always), and aborting ends the wait at once. The usage is the sum of
 * what every call came to, also of those that failed or were aborted after the provider had worked. `onAdmitted` runs
 * when the first call has its response: nothing that swallows errors may be that call, or limits would not hold.
 */
export function createModelCalls(
  chat: PluginApi['chat'],
  caller: CallerFacts,
  budget: Budget,
  onAdmitted?: () => void,
): ModelCalls {
  let calls = 0;
  const sum = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 };
  /** Adds a call's usage once, whether its response or its outcome is here first. */
  const countOnce = () => {
    let counted = false;
    return (usage: Usage | undefined) => {
      if (counted || !usage) return;
      counted = true;
      addUsage(sum, usage);
    };
  };
  return {
    async chat(request, { signal, reserve = 0 }) {
      signal.throwIfAborted();
      const spent = reserve > 0 && sum.total_tokens >= budget.maxTokens;
      if (spent || calls + 1 + reserve > budget.maxCalls) throw new BudgetSpent('the budget of this request is spent');
      const first = calls === 0;
      calls += 1;
      const count = countOnce();
      const context: CallContext = {
        ...caller,
        signal,
        ...(!first && { skip: ['rpm', 'concurrency'] as const }),
        onOutcome(call, outcome) {
          count(outcome.usage);
          caller.onOutcome?.(call, outcome);
        },
      };
      const response = await untilAborted(chat({ ...request, stream: false }, context), signal);
      count(response.usage);
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
