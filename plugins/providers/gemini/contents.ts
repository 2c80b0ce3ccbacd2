import type { ChatMessage } from '../../../core/index.ts';
import {
  type CalledTool,
  type Conversation,
  invalid,
  parseArguments,
  readConversation,
  type ToolResult,
  textOf,
} from '../kit/index.ts';
import type { GeminiTraits } from './models.ts';
import { geminiPart } from './parts.ts';
import { readCallId, SKIP_SIGNATURE, signatureOf } from './signatures.ts';
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
): Translated {
  const conversation = readConversation(messages);
  const contents: GrowingContent[] = [];
  for (const turn of conversation.turns) {
    if (turn.kind === 'user') append(contents, 'user', turn.parts.map(geminiPart));
    else if (turn.kind === 'assistant') append(contents, 'model', modelParts(turn, traits));
    else contents.push({ role: 'user', parts: [...resultParts(turn.results, traits)] });
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

type AssistantTurn = Extract<Conversation['turns'][number], { kind: 'assistant' }>;

function modelParts(turn: AssistantTurn, traits: GeminiTraits): readonly GeminiPart[] {
  const texts = turn.parts.map(({ value, at }): GeminiPart => {
    const text = textOf(value);
    if (text === undefined) throw invalid(`${at}.type`, 'must be text or refusal in an assistant message');
    return { text };
  });
  const signature = signatureOf(turn.message);
  const last = texts.pop();
  if (last) texts.push({ ...last, ...(signature && { thoughtSignature: signature }) });
  let signed = false;
  const calls = turn.calls.map((call): GeminiPart => {
    const { id, signature: found } = readSignedCall(call);
    // Of parallel calls only the first is signed, so an unsigned one after a signed one is as the vendor made it.
    const thoughtSignature = found ?? (traits.signatures && !signed ? SKIP_SIGNATURE : undefined);
    signed ||= found !== undefined;
    return {
      functionCall: { id, name: call.name, args: parseArguments(call.arguments) },
      ...(thoughtSignature && { thoughtSignature }),
    };
  });
  return [...texts, ...calls];
}

function readSignedCall(call: CalledTool): { id: string; signature?: string | undefined } {
  const { id, signature } = readCallId(call.id);
  return { id, signature: signatureOf(call.source) ?? signature };
}

/** Texts go as one string under `output`, byte for byte: parsed JSON would lose long numbers. */
function resultParts(results: readonly ToolResult[], traits: GeminiTraits): readonly GeminiPart[] {
  const loose: GeminiPart[] = [];
  const responses = results.map(({ call, parts }): GeminiPart => {
    const media = parts.filter(({ value }) => textOf(value) === undefined).map(geminiPart);
    if (!traits.signatures) loose.push(...media);
    return {
      functionResponse: {
        id: readCallId(call.id).id,
        name: call.name,
        response: { output: parts.map(({ value }) => textOf(value) ?? '').join('') },
        ...(traits.signatures && media.length > 0 && { parts: media }),
      },
    };
  });
  return [...responses, ...loose];
}
