import { type ChatRequest, isObject, type JsonObject, readString } from '../../../core/index.ts';
import {
  type Conversation,
  EFFORTS,
  type Effort,
  fitEffort,
  invalid,
  isEffort,
  THINKING_TOKENS,
} from '../kit/index.ts';
import { thinkingBlocksOf } from './messages.ts';
import type { AnthropicTraits } from './models.ts';

/** What models with adaptive thinking take. */
const ADAPTIVE: readonly Effort[] = ['low', 'medium', 'high', 'max'];
const ADAPTIVE_WITH_XHIGH: readonly Effort[] = ['low', 'medium', 'high', 'xhigh', 'max'];

/** The vendor's least budget. */
const MIN_BUDGET = 1024;
/** How much of `max_tokens` thinking may take, so that an answer has room: thinking counts toward it. */
const BUDGET_SHARE = 0.8;

export interface ThinkingPlan {
  readonly thinking?: JsonObject;
  readonly effort?: string;
}

/** What else in the request bears on thinking. */
interface Surroundings {
  readonly conversation: Conversation;
  readonly maxTokens: number;
  readonly forced: boolean;
}

/** `thinking` and effort; adds `reasoning_effort` to `dropped` where the request leaves no room for it. */
export function planThinking(
  input: ChatRequest,
  traits: AnthropicTraits,
  surroundings: Surroundings,
  dropped: string[],
): ThinkingPlan {
  const name = input.reasoning_effort ?? undefined;
  const native = fitting(nativeThinking(input), surroundings.maxTokens, dropped);
  if (name === undefined) return native ? { thinking: native } : {};
  if (name === 'none') return native ? { thinking: native } : leastThinking(traits);
  if (!isEffort(name)) throw invalid('reasoning_effort', `must be one of ${EFFORTS.join(', ')}`);
  if (traits.adaptive) {
    const effort = fitEffort(name, traits.xhigh ? ADAPTIVE_WITH_XHIGH : ADAPTIVE);
    // Newer models leave the thinking out of the answer unless asked for it.
    return { thinking: native ?? { type: 'adaptive', display: 'summarized' }, effort };
  }
  if (native) return { thinking: native };
  const budget = Math.min(THINKING_TOKENS.anthropic[name], Math.floor(surroundings.maxTokens * BUDGET_SHARE));
  if (!traits.budget || budget < MIN_BUDGET || surroundings.forced || lacksThinking(surroundings.conversation)) {
    dropped.push('reasoning_effort');
    return {};
  }
  return { thinking: { type: 'enabled', budget_tokens: budget } };
}

/** Whether thinking is certain, whatever else the request holds: asked for with an effort, or by the vendor's own field. */
export function wantsThinking(input: ChatRequest, traits: AnthropicTraits): boolean {
  const native = nativeThinking(input);
  if (native) return native['type'] !== 'disabled';
  const effort = input.reasoning_effort ?? 'none';
  return traits.adaptive && effort !== 'none';
}

/** Whether the model thinks before it answers, which rules out sampling fields and a prefill. */
export function isThinking({ thinking }: ThinkingPlan): boolean {
  return thinking !== undefined && thinking['type'] !== 'disabled';
}

/** The caller's budget within what the answer may have in all: a cap of a key or plan may be lower than it. */
function fitting(native: JsonObject | undefined, maxTokens: number, dropped: string[]): JsonObject | undefined {
  const budget = native?.['budget_tokens'];
  if (typeof budget !== 'number' || budget < maxTokens) return native;
  if (maxTokens - 1 >= MIN_BUDGET) return { ...native, budget_tokens: maxTokens - 1 };
  dropped.push('thinking');
  return { type: 'disabled' };
}

function leastThinking(traits: AnthropicTraits): ThinkingPlan {
  // Models that think by budget think only when the request says so.
  if (!traits.adaptive) return {};
  return traits.leastThinking === 'adaptive' ? { effort: 'low' } : { thinking: { type: traits.leastThinking } };
}

/** The vendor's own `thinking` field, for callers that know it. */
function nativeThinking(input: ChatRequest): JsonObject | undefined {
  const value = input['thinking'];
  if (value === undefined || value === null) return undefined;
  const type = isObject(value) ? readString(value['type']) : undefined;
  if (!isObject(value) || !type) throw invalid('thinking', 'must be an object with a `type`');
  return value;
}

/** In the middle of a tool loop a thinking model wants its thinking back; a client that lost it goes on without. */
function lacksThinking({ turns }: Conversation): boolean {
  if (turns.at(-1)?.kind !== 'results') return false;
  const turn = turns.at(-2);
  return turn?.kind === 'assistant' && thinkingBlocksOf(turn.message).length === 0;
}
