import type { ChatMessage } from '../../../core/index.ts';
import { invalid, readConversation, type ToolResult, textOf } from '../kit/index.ts';
import { modelParts } from './model-parts.ts';
import type { GeminiTraits } from './models.ts';
import { geminiParts, type PartRules } from './parts.ts';
import { readCallId } from './signatures.ts';
import type { GeminiContent, GeminiPart } from './types.ts';

/** Said by the user where the vendor wants a user's turn and the caller has none. */
const OPENING = '(The assistant speaks first.)';
const CLOSING = 'Continue.';

interface Translated {
  readonly contents: readonly GeminiContent[];
  readonly systemInstruction?: { readonly parts: readonly GeminiPart[] };
}

/** Messages as `contents` and `systemInstruction`; `instruction` is one more system text, ours. */
export function geminiContents(
  messages: readonly ChatMessage[],
  traits: GeminiTraits,
  instruction: string | undefined,
  rules: PartRules = { references: false },
): Translated {
  const conversation = readConversation(messages);
  const contents: GrowingContent[] = [];
  for (const turn of conversation.turns) {
    if (turn.kind === 'user') append(contents, 'user', geminiParts(turn.parts, rules));
    else if (turn.kind === 'assistant') append(contents, 'model', modelParts(turn, traits, rules));
    else contents.push({ role: 'user', parts: [...resultParts(turn.results, traits, rules)] });
  }
  const system = [
    ...conversation.system.map(({ value }): GeminiPart => ({ text: value.text })),
    ...(instruction ? [{ text: instruction }] : []),
  ];
  // Gemma has no system instruction, and a request without any turn is none: then the texts are the user's.
  const asUser = system.length > 0 && (!traits.systemInstruction || contents.length === 0);
  if (asUser && contents[0]?.role === 'user' && !contents[0].parts[0]?.functionResponse) {
    contents[0] = { role: 'user', parts: [...system, ...contents[0].parts] };
  } else if (asUser) contents.unshift({ role: 'user', parts: system });
  if (contents.length === 0) throw invalid('messages', 'holds no text, image or other content');
  if (contents[0]?.role === 'model') contents.unshift({ role: 'user', parts: [{ text: OPENING }] });
  if (contents.at(-1)?.role === 'model') contents.push({ role: 'user', parts: [{ text: CLOSING }] });
  return { contents, ...(!asUser && system.length > 0 && { systemInstruction: { parts: system } }) };
}

/** A turn that may still grow: copying it for every message would take long for many short ones. */
interface GrowingContent extends GeminiContent {
  readonly parts: GeminiPart[];
}

/** Adjacent turns of one role become one; function results stay alone, as the vendor counts them against the calls. */
function append(contents: GrowingContent[], role: GeminiContent['role'], parts: readonly GeminiPart[]): void {
  if (parts.length === 0) return;
  const last = contents.at(-1);
  if (last?.role !== role || last.parts[0]?.functionResponse) contents.push({ role, parts: [...parts] });
  else for (const part of parts) last.parts.push(part);
}

/**
 * Texts go as one string under `output`, byte for byte: parsed JSON would lose long numbers. Where results take no media these follow
 * all of them, each under the name of its call.
 */
function resultParts(results: readonly ToolResult[], traits: GeminiTraits, rules: PartRules): readonly GeminiPart[] {
  const loose: GeminiPart[] = [];
  const responses = results.map(({ call, parts, message }): GeminiPart => {
    const media = geminiParts(
      parts.filter(({ value }) => textOf(value) === undefined),
      rules,
    );
    const { id } = readCallId(call.id);
    if (!traits.signatures && media.length > 0) loose.push({ text: `Result of call ${id}:` }, ...media);
    const text = parts.map(({ value }) => textOf(value) ?? '').join('');
    return {
      functionResponse: {
        id,
        name: call.name,
        response: message.is_error === true ? { error: text } : { output: text },
        ...(traits.signatures && media.length > 0 && { parts: media }),
      },
    };
  });
  return [...responses, ...loose];
}
