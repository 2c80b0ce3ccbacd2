import {
  type ChatMessage,
  type ChatRequest,
  type HttpRequest,
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

/** Reasoning of another format, packed into a signature that only this gateway can read. */
const FOREIGN = /^tgr\.([a-z]{1,32})\.([\w-]{0,128})\.(.+)$/s;
/** Returns true for a thinking block, visible or redacted. */
export function isThinkingBlock({ type }: Pick<Block, 'type'>): boolean {
  return type === 'thinking' || type === 'redacted_thinking';
}

/** Reads a reasoning block of a client; without a signature, the format `none` applies. */
export function readThinking(block: Block): ReasoningDetail {
  const text = readString(block['thinking']) ?? '';
  const mark = markOf(block);
  if (mark === undefined) return { kind: 'text', text, format: 'none' };
  const foreign = FOREIGN.exec(mark);
  if (foreign) {
    const [, format = '', id, data = ''] = foreign;
    // With a text, it is the vendor's signature; without one, it is the whole reasoning.
    return { kind: text === '' ? 'encrypted' : 'text', data, format, ...(text !== '' && { text }), ...(id && { id }) };
  }
  if (block.type === 'redacted_thinking') return { kind: 'encrypted', data: mark, format: 'anthropic' };
  // Core opens `data` and restores the signature from it.
  return { kind: 'text', text, ...(mark.startsWith(SEAL) ? { data: mark } : { signature: mark }), format: 'anthropic' };
}

function markOf(block: Block): string | undefined {
  return readString(block[markField(block)]);
}

function markField({ type }: Block): 'data' | 'signature' {
  return type === 'redacted_thinking' ? 'data' : 'signature';
}

/** Opens the seal of a thinking block for the vendor; undefined for another provider's or account's block. */
export function openThinking(block: Block, open: (sealed: string) => string | undefined): Block | undefined {
  if (readThinking(block).format !== 'anthropic') return undefined;
  const mark = markOf(block);
  if (!mark?.startsWith(SEAL)) return block;
  const opened = open(mark);
  return opened === undefined ? undefined : { ...block, [markField(block)]: opened };
}

/** Seals the signature of a vendor's block; any other block is returned unchanged. */
export function sealBlock(block: unknown, seal: (data: string) => string): unknown {
  if (!isObject(block) || typeof block['type'] !== 'string') return block;
  const typed: Block = { ...block, type: block['type'] };
  const mark = isThinkingBlock(typed) ? markOf(typed) : undefined;
  return mark ? { ...block, [markField(typed)]: seal(mark) } : block;
}

/** Writes a reasoning detail as a block. `seal` is for data that its vendor requires back. */
export function writeThinking(detail: ReasoningDetail, seal: (data: string) => string): Block {
  const { text = '', format, kind } = detail;
  const signature = signatureOf(detail, seal);
  const isHidden = format === 'anthropic' ? kind === 'encrypted' : text === '' && signature !== '';
  return isHidden ? { type: 'redacted_thinking', data: signature } : { type: 'thinking', thinking: text, signature };
}

/** Sealed signature of a reasoning detail; empty if its vendor could not verify it. */
export function signatureOf(detail: ReasoningDetail, seal: (data: string) => string): string {
  const { data, signature, format, id } = detail;
  const wanted = data ?? signature;
  if (!wanted || format === 'none') return '';
  if (format === 'anthropic') return seal(wanted);
  const known = id && /^[\w-]{1,128}$/.test(id) ? id : '';
  return `tgr.${format}.${known}.${seal(wanted)}`;
}

/** Thinking of a message by its index in `order`; empty where the vendor would reject it. */
export function placedThinking(message: ChatMessage): readonly (readonly Block[])[] {
  const { reasoning_details: details, thinking_blocks: blocks } = message;
  if (details) return details.map((detail) => ownBlock(detail));
  // Form in which clients of other gateways keep thinking.
  return readArray(blocks).map((block) => {
    const { type, thinking, signature, data } = readObject(block);
    if (type === 'redacted_thinking')
      return ownBlock({ kind: 'encrypted', data: readString(data), format: 'anthropic' });
    if (type !== 'thinking' || typeof thinking !== 'string') return [];
    return ownBlock({ kind: 'text', text: thinking, signature: readString(signature), format: 'anthropic' });
  });
}

/** Block of the vendor's own reasoning, byte for byte; none for another vendor's, which it would reject. */
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

/** Lowest effort in `output_config`. */
const LEAST = EFFORTS.indexOf('low');
/** Efforts of models with adaptive thinking. */
const ADAPTIVE: readonly Effort[] = ['low', 'medium', 'high', 'max'];
const ADAPTIVE_WITH_XHIGH: readonly Effort[] = ['low', 'medium', 'high', 'xhigh', 'max'];
/** Vendor's minimum budget. */
const MIN_BUDGET = 1024;
/** Maximum share of `max_tokens` for thinking, which counts toward that limit, so that the response has room. */
const BUDGET_SHARE = 0.8;

/** Effort for the thinking options of a caller of this format. */
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

/** Further properties of a request that affect thinking. */
interface Surroundings {
  readonly conversation: Conversation;
  readonly maxTokens: number;
  readonly forced: boolean;
}

/** Plans `thinking` and effort for a model; adds what the model or the request does not allow to `dropped`. */
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
  // Newer models omit the thinking from the response unless it is requested.
  if (effort !== undefined) return { thinking: { type: 'adaptive', display: 'summarized' }, effort };
  const budget = budgetOf(name, maxTokens);
  if (traits.thinking.length > 0 && budget !== undefined && !forced && !lacksThinking(conversation))
    return { thinking: { type: 'enabled', budget_tokens: budget } };
  dropped.push('reasoning_effort');
  return {};
}

/** Fields of `thinking` that are sent without a caller who sent them. */
const ADDED = Object.freeze(['display', 'block_binding']);

/** Names the fields that the gateway added to the `thinking` of a caller, for a vendor that rejects them. */
export function addedThinking(own: unknown, sent: unknown): Pick<HttpRequest, 'added'> {
  const [before, after] = [readObject(own), readObject(sent)];
  const added = ADDED.filter((name) => after[name] !== undefined && before[name] === undefined);
  return added.length > 0 ? { added: added.map((name) => `thinking.${name}`) } : {};
}

/** Returns true if a model accepts this type of `thinking`; an unknown type may be newer than these tables. */
export function takesThinking({ type }: JsonObject, { thinking }: AnthropicTraits): boolean {
  const taken: readonly unknown[] = thinking;
  return taken.includes(type) || !(THINKING_TYPES as readonly unknown[]).includes(type);
}

/**
 * Adapts the caller's own `thinking` to a model, within `maxTokens`. An unsupported type becomes the nearest
 * supported one and is added to `dropped`. An unknown type is passed on unchanged.
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
  // Models that cannot think need no option.
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

/** Thinking tokens for an effort; undefined if the limit leaves no room. */
function budgetOf(effort: Effort, maxTokens: number): number | undefined {
  const budget = Math.min(THINKING_TOKENS.anthropic[effort], Math.floor(maxTokens * BUDGET_SHARE));
  return budget < MIN_BUDGET ? undefined : budget;
}

/** Limits the thinking budget to the output limit, which a cap of a key or plan may have lowered. */
function withinLimit(own: JsonObject, maxTokens: number, dropped: string[]): JsonObject {
  const budget = own['budget_tokens'];
  if (typeof budget !== 'number' || budget < maxTokens) return own;
  if (maxTokens - 1 >= MIN_BUDGET) return { ...own, budget_tokens: maxTokens - 1 };
  tellDropped(dropped, 'thinking');
  return { type: 'disabled' satisfies ThinkingType };
}

function leastThinking({ thinking, leastThinking: least }: AnthropicTraits): ThinkingPlan {
  // Models with a budget think only on request.
  if (thinking[0] !== 'adaptive') return {};
  return least === 'adaptive' ? { effort: 'low' } : { thinking: { type: least } };
}

/** Returns true if the request certainly enables thinking: by an effort, or by the vendor's own field. */
export function wantsThinking(input: ChatRequest, traits: AnthropicTraits): boolean {
  const own = ownThinking(input);
  if (own) return own['type'] !== 'disabled';
  return traits.thinking[0] === 'adaptive' && (input.reasoning_effort ?? 'none') !== 'none';
}

/** Returns true if the model thinks before it responds, which excludes sampling fields and a prefill. */
export function isThinking({ thinking }: ThinkingPlan): boolean {
  return thinking !== undefined && thinking['type'] !== 'disabled';
}

/** Vendor's own `thinking` field, for callers that know it. */
function ownThinking(input: ChatRequest): JsonObject | undefined {
  const value = input['thinking'];
  if (value === undefined || value === null) return undefined;
  if (!isObject(value) || !readString(value['type'])) throw invalid('thinking', 'must be an object with a `type`');
  return value;
}

/** Returns true if the history has thinking that the vendor reads. */
export function hasThinking({ turns }: Conversation): boolean {
  return turns.some((turn) => turn.kind === 'assistant' && placedThinking(turn.message).flat().length > 0);
}

/**
 * In the middle of a tool loop, a thinking model requires its thinking back. Clients that lost it continue without
 * thinking.
 */
function lacksThinking({ turns }: Conversation): boolean {
  return turns.at(-1)?.kind === 'results' && !hasThinking({ system: [], turns: turns.slice(-2) });
}
