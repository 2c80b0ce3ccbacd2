import { type ChatRequest, type CodecCall, type HttpRequest, readString } from '../../../core/index.ts';
import { applyFieldRules, readConversation } from '../kit/index.ts';
import { cacheControlOf } from './blocks.ts';
import { ANTHROPIC_FIELDS } from './fields.ts';
import { anthropicMessages } from './messages.ts';
import { type AnthropicTraits, anthropicTraits } from './models.ts';
import { isThinking, planThinking, wantsThinking } from './thinking.ts';
import { planTools } from './tools.ts';
import type { AnthropicRequest } from './types.ts';

const MAX_USER_ID = 256;

/** A chat request as `POST /v1/messages`. */
export function anthropicRequest(input: ChatRequest, call: CodecCall): HttpRequest {
  const traits = anthropicTraits(call.model);
  const dropped = applyFieldRules(input, ANTHROPIC_FIELDS, 'Anthropic');
  const conversation = readConversation(input.messages);
  const { tools, choice, format, instruction } = planTools(input, conversation, toolTraits(input, traits), dropped);
  const forced = choice?.type === 'any' || choice?.type === 'tool';
  const maxTokens = input.max_completion_tokens ?? input.max_tokens ?? traits.maxOutput;
  const thinking = planThinking(input, traits, { conversation, maxTokens, forced }, dropped);
  const prefill = traits.prefill && !isThinking(thinking) && !format && !forced;
  const stops = readStops(input.stop);
  const user = readUser(input, dropped);
  const body: AnthropicRequest = {
    model: call.model,
    max_tokens: maxTokens,
    ...anthropicMessages(conversation, instruction, prefill),
    ...(stops.length > 0 && { stop_sequences: stops }),
    ...(call.stream && { stream: true }),
    ...(tools.length > 0 && { tools }),
    ...(choice && { tool_choice: choice }),
    ...(thinking.thinking && { thinking: thinking.thinking }),
    ...((thinking.effort || format) && {
      output_config: { ...(thinking.effort && { effort: thinking.effort }), ...(format && { format }) },
    }),
    ...sampling(input, traits, isThinking(thinking), dropped),
    ...(user && { metadata: { user_id: user } }),
    ...cacheControlOf(input),
  };
  return { path: '/v1/messages', body, ...(dropped.length > 0 && { dropped }) };
}

/** A call cannot be forced while a model thinks; one that thinks by a budget stops thinking instead. */
function toolTraits(input: ChatRequest, traits: AnthropicTraits): AnthropicTraits {
  return wantsThinking(input, traits) ? { ...traits, forcedTools: false } : traits;
}

function sampling(
  input: ChatRequest,
  traits: AnthropicTraits,
  thinking: boolean,
  dropped: string[],
): Pick<AnthropicRequest, 'temperature' | 'top_p' | 'top_k'> {
  const temperature = typeof input.temperature === 'number' ? input.temperature : undefined;
  const topP = typeof input.top_p === 'number' && input.top_p !== 1 ? input.top_p : undefined;
  const topK = typeof input['top_k'] === 'number' ? input['top_k'] : undefined;
  if (!traits.sampling || thinking) {
    if (temperature !== undefined && temperature !== 1) dropped.push('temperature');
    if (topP !== undefined) dropped.push('top_p');
    if (topK !== undefined) dropped.push('top_k');
    return {};
  }
  const crowded = temperature !== undefined && topP !== undefined && !traits.temperatureWithTopP;
  if (crowded) dropped.push('top_p');
  return {
    ...(temperature !== undefined && { temperature: Math.min(temperature, 1) }),
    ...(topP !== undefined && !crowded && { top_p: topP }),
    ...(topK !== undefined && { top_k: topK }),
  };
}

function readStops(stop: ChatRequest['stop']): readonly string[] {
  return (typeof stop === 'string' ? [stop] : (stop ?? [])).filter((text) => text.trim() !== '');
}

function readUser(input: ChatRequest, dropped: string[]): string | undefined {
  const user = readString(input['safety_identifier']) ?? readString(input.user);
  if (user === undefined || user.length <= MAX_USER_ID) return user;
  dropped.push('user');
  return undefined;
}
