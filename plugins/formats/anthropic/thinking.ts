import {
  type ChatMessage,
  type ChatRequest,
  isObject,
  type JsonObject,
  type ReasoningDetail,
  readArray,
  readObject,
  readString,
} from '../../../contract/index.ts';
import {
  type Conversation,
  EFFORTS,
  type Effort,
  effortOfTokens,
  fitEffort,
  invalid,
  isEffort,
  THINKING_TOKENS,
  tellDropped,
} from '../kit/index.ts';
import { SEAL } from '../sealed-reasoning.ts';
import { type AnthropicTraits, THINKING_TYPES, type ThinkingType } from './tables.ts';
import type { Block } from './types.ts';

/** Reasoning of another format's provider, as a signature that only this gateway can read. */
const FOREIGN = /^tgr\.([a-z]{1,32})\.([\w-]{0,128})\.(.+)$/s;
/** Whether a block is thinking, shown or not. */
export function isThinkingBlock({ type }: Pick<Block, 'type'>): boolean {
  return type === 'thinking' || type === 'redacted_thinking';
}

/** A piece of reasoning that came back; without a signature it is of no format. */
export function readThinking(block: Block): ReasoningDetail {
  const text = readString(block['thinking']) ?? '';
  const mark = markOf(block);
  if (mark === undefined) return { kind: 'text', text, format: 'none' };
  const foreign = FOREIGN.exec(mark);
  if (foreign) {
    const [, format = '', id, data = ''] = foreign;
    // Next to a text it is its maker's signature; alone it is all there is.
    return { kind: text === '' ? 'encrypted' : 'text', data, format, ...(text !== '' && { text }), ...(id && { id }) };
  }
  if (block.type === 'redacted_thinking') return { kind: 'encrypted', data: mark, format: 'anthropic' };
  // Core opens `data`, and makes the signature of it.
  return { kind: 'text', text, ...(mark.startsWith(SEAL) ? { data: mark } : { signature: mark }), format: 'anthropic' };
}

function markOf(block: Block): string | undefined {
  return readString(block[markField(block)]);
}

function markField({ type }: Block): 'data' | 'signature' {
  return type === 'redacted_thinking' ? 'data' : 'signature';
}

/** A block of thinking as the vendor gets it back, its seal opened; undefined for what another provider or account made. */
export function openThinking(block: Block, open: (sealed: string) => string | undefined): Block | undefined {
  if (readThinking(block).format !== 'anthropic') return undefined;
  const mark = markOf(block);
  if (!mark?.startsWith(SEAL)) return block;
  const opened = open(mark);
  return opened === undefined ? undefined : { ...block, [markField(block)]: opened };
}

/** A block of the vendor's with its signature sealed; any other block as it is. */
export function sealBlock(block: unknown, seal: (data: string) => string): unknown {
  if (!isObject(block) || typeof block['type'] !== 'string') return block;
  const typed: Block = { ...block, type: block['type'] };
  const mark = isThinkingBlock(typed) ? markOf(typed) : undefined;
  return mark ? { ...block, [markField(typed)]: seal(mark) } : block;
}

/** A piece of reasoning as a block. `seal` is for what its maker wants back. */
export function writeThinking(detail: ReasoningDetail, seal: (data: string) => string): Block {
  const { text = '', format, kind } = detail;
  const signature = signatureOf(detail, seal);
  const isHidden = format === 'anthropic' ? kind === 'encrypted' : text === '' && signature !== '';
  return isHidden ? { type: 'redacted_thinking', data: signature } : { type: 'thinking', thinking: text, signature };
}

/** The sealed signature of a piece of reasoning; empty where there is nothing to check it by. */
export function signatureOf(detail: ReasoningDetail, seal: (data: string) => string): string {
  const { data, signature, format, id } = detail;
  const wanted = data ?? signature;
  if (!wanted || format === 'none') return '';
  if (format === 'anthropic') return seal(wanted);
  const known = id && /^[\w-]{1,128}$/.test(id) ? id : '';
  return `tgr.${format}.${known}.${seal(wanted)}`;
}

/** The thinking of a message, each piece at the index by which its `order` names it; empty where the vendor would refuse it. */
export function placedThinking(message: ChatMessage): readonly (readonly Block[])[] {
  const { reasoning_details: details, thinking_blocks: blocks } = message;
  if (details) return details.map((detail) => ownBlock(detail));
  // As clients of other gateways keep it.
  return readArray(blocks).map((block) => {
    const { type, thinking, signature, data } = readObject(block);
    if (type === 'redacted_thinking')
      return ownBlock({ kind: 'encrypted', data: readString(data), format: 'anthropic' });
    if (type !== 'thinking' || typeof thinking !== 'string') return [];
    return ownBlock({ kind: 'text', text: thinking, signature: readString(signature), format: 'anthropic' });
  });
}

/** A piece of the vendor's own reasoning, byte for byte; nothing for any other vendor's, which it would refuse. */
function ownBlock({
  kind,
  format,
  text = '',
  signature,
  data,
}: Omit<ReasoningDetail, 'data' | 'signature'> & {
  readonly data?: string | undefined;
  readonly signature?: string | undefined;
}): readonly Block[] {
  if (format !== 'anthropic') return [];
  if (kind === 'encrypted') return data ? [{ type: 'redacted_thinking', data }] : [];
  return signature ? [{ type: 'thinking', thinking: text, signature }] : [];
}

/** The least effort that `output_config` has a word for. */
const LEAST = EFFORTS.indexOf('low');
/** What models with adaptive thinking take. */
const ADAPTIVE: readonly Effort[] = ['low', 'medium', 'high', 'max'];
const ADAPTIVE_WITH_XHIGH: readonly Effort[] = ['low', 'medium', 'high', 'xhigh', 'max'];
/** The vendor's least budget. */
const MIN_BUDGET = 1024;
/** How much of `max_tokens` thinking may take, so that an answer has room: thinking counts toward it. */
const BUDGET_SHARE = 0.8;

/** How much a caller of this format lets the model think, in the words of other formats. */
export function readEffort(thinking: unknown, config: unknown): Effort | undefined {
  const { type, budget_tokens: budget } = readObject(thinking);
  if (type === 'disabled') return 'none';
  const { effort } = readObject(config);
  if (isEffort(effort) && EFFORTS.indexOf(effort) >= LEAST) return effort;
  if (type === 'enabled' && typeof budget === 'number') return effortOfTokens(budget, 'anthropic');
  return type === 'enabled' || type === 'adaptive' ? 'medium' : undefined;
}

export interface ThinkingPlan {
  readonly thinking?: JsonObject;
  readonly effort?: string;
}

/** What else in a request bears on thinking. */
interface Surroundings {
  readonly conversation: Conversation;
  readonly maxTokens: number;
  readonly forced: boolean;
}

/** `thinking` and effort as the model takes them; adds to `dropped` what the model or the request leaves no room for. */
export function planThinking(
  input: ChatRequest,
  traits: AnthropicTraits,
  { conversation, maxTokens, forced }: Surroundings,
  dropped: string[],
): ThinkingPlan {
  const name = input.reasoning_effort ?? undefined;
  if (name !== undefined && !isEffort(name)) throw invalid('reasoning_effort', `must be one of ${EFFORTS.join(', ')}`);
  const isAdaptive = traits.thinking[0] === 'adaptive';
  const effort = name !== undefined && name !== 'none' && isAdaptive ? adaptiveEffort(name, traits) : undefined;
  const own = ownThinking(input);
  if (own) {
    const plan = fitThinking(own, input['output_config'], traits, maxTokens, dropped);
    return effort === undefined ? plan : { ...plan, effort };
  }
  if (name === undefined) return {};
  if (name === 'none') return leastThinking(traits);
  // Newer models leave the thinking out of the answer unless asked for it.
  if (effort !== undefined) return { thinking: { type: 'adaptive', display: 'summarized' }, effort };
  const budget = budgetOf(name, maxTokens);
  if (traits.thinking.length > 0 && budget !== undefined && !forced && !lacksThinking(conversation))
    return { thinking: { type: 'enabled', budget_tokens: budget } };
  dropped.push('reasoning_effort');
  return {};
}

/** Whether a model takes this type of `thinking`; one that is not known here may be newer than our tables. */
export function takesThinking({ type }: JsonObject, { thinking }: AnthropicTraits): boolean {
  const taken: readonly unknown[] = thinking;
  return taken.includes(type) || !(THINKING_TYPES as readonly unknown[]).includes(type);
}

/**
 * The caller's own `thinking` as one model takes it, within `maxTokens`: what it refuses becomes the nearest that it takes, and is added
 * to `dropped`. A type that is not known here goes on as it is.
 */
export function fitThinking(
  own: JsonObject,
  config: unknown,
  traits: AnthropicTraits,
  maxTokens: number,
  dropped: string[],
): ThinkingPlan {
  const { type } = own;
  if (takesThinking(own, traits)) return { thinking: withinLimit(own, maxTokens, dropped) };
  // Models that cannot think do nothing else.
  if (type === 'disabled' && traits.thinking.length === 0) return {};
  tellDropped(dropped, 'thinking');
  if (type === 'disabled' || type === 'between_tools') {
    const { effort } = readObject(config);
    return { ...leastThinking(traits), ...(typeof effort === 'string' && { effort }) };
  }
  const effort = readEffort(own, config) ?? 'medium';
  if (traits.thinking.includes('adaptive')) {
    const { display = 'summarized' } = own;
    return { thinking: { type: 'adaptive', display }, effort: adaptiveEffort(effort, traits) };
  }
  const budget = traits.thinking.includes('enabled') ? budgetOf(effort, maxTokens) : undefined;
  return budget === undefined ? {} : { thinking: { type: 'enabled', budget_tokens: budget } };
}

function adaptiveEffort(effort: Effort, { xhigh }: AnthropicTraits): Effort {
  return fitEffort(effort, xhigh ? ADAPTIVE_WITH_XHIGH : ADAPTIVE);
}

/** The thinking tokens of an effort; undefined where the limit leaves no room for any. */
function budgetOf(effort: Effort, maxTokens: number): number | undefined {
  const budget = Math.min(THINKING_TOKENS.anthropic[effort], Math.floor(maxTokens * BUDGET_SHARE));
  return budget < MIN_BUDGET ? undefined : budget;
}

/** A budget of thinking within what the response may have in all: a cap of a key or plan may be lower than it. */
function withinLimit(own: JsonObject, maxTokens: number, dropped: string[]): JsonObject {
  const budget = own['budget_tokens'];
  if (typeof budget !== 'number' || budget < maxTokens) return own;
  if (maxTokens - 1 >= MIN_BUDGET) return { ...own, budget_tokens: maxTokens - 1 };
  tellDropped(dropped, 'thinking');
  return { type: 'disabled' satisfies ThinkingType };
}

function leastThinking({ thinking, leastThinking: least }: AnthropicTraits): ThinkingPlan {
  // Models that think by budget think only when the request says so.
  if (thinking[0] !== 'adaptive') return {};
  return least === 'adaptive' ? { effort: 'low' } : { thinking: { type: least } };
}

/** Whether thinking is certain, whatever else the request holds: asked for with an effort, or by the vendor's own field. */
export function wantsThinking(input: ChatRequest, traits: AnthropicTraits): boolean {
  const own = ownThinking(input);
  if (own) return own['type'] !== 'disabled';
  return traits.thinking[0] === 'adaptive' && (input.reasoning_effort ?? 'none') !== 'none';
}

/** Whether the model thinks before it responds, which rules out sampling fields and a prefill. */
export function isThinking({ thinking }: ThinkingPlan): boolean {
  return thinking !== undefined && thinking['type'] !== 'disabled';
}

/** The vendor's own `thinking` field, for callers that know it. */
function ownThinking(input: ChatRequest): JsonObject | undefined {
  const value = input['thinking'];
  if (value === undefined || value === null) return undefined;
  if (!isObject(value) || !readString(value['type'])) throw invalid('thinking', 'must be an object with a `type`');
  return value;
}

/** Whether the history holds thinking that the vendor reads. */
export function hasThinking({ turns }: Conversation): boolean {
  return turns.some((turn) => turn.kind === 'assistant' && placedThinking(turn.message).flat().length > 0);
}

/** In the middle of a tool loop a thinking model wants its thinking back; a client that lost it goes on without. */
function lacksThinking({ turns }: Conversation): boolean {
  return turns.at(-1)?.kind === 'results' && !hasThinking({ system: [], turns: turns.slice(-2) });
}
