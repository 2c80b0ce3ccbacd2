import { type ContentPart, readArray, readObject, readString } from '../../../core/index.ts';
import {
  type CalledTool,
  type Conversation,
  invalid,
  type Located,
  parseArguments,
  readDataUrl,
  textOf,
} from '../kit/index.ts';
import type { GeminiTraits } from './models.ts';
import { geminiParts, type PartRules } from './parts.ts';
import { readCallId, SKIP_SIGNATURE, signatureOf } from './signatures.ts';
import type { GeminiPart } from './types.ts';

type AssistantTurn = Extract<Conversation['turns'][number], { kind: 'assistant' }>;

/** A turn of the model, in the order in which it made its blocks: thinking, words and images, calls unless the message says another. */
export function modelParts(turn: AssistantTurn, traits: GeminiTraits, rules: PartRules): readonly GeminiPart[] {
  const blocks = [...thoughtBlocks(turn), ...textBlocks(turn, rules), ...callBlocks(turn, traits)];
  const place = new Map((turn.message.order ?? []).map((name, at) => [name, at]));
  const rankOf = (name: string): number => place.get(name) ?? place.size;
  return blocks.toSorted((a, b) => rankOf(a.name) - rankOf(b.name)).flatMap(({ parts }) => parts);
}

/** Parts and the block of the message that they stand for, as `order` names it. */
interface NamedParts {
  readonly name: string;
  readonly parts: readonly GeminiPart[];
}

/** Gemini's own thinking, with its signatures; that of others is nobody's here. */
function thoughtBlocks({ message }: AssistantTurn): readonly NamedParts[] {
  return readArray(message.reasoning_details).map((detail, at) => {
    const { format, text, signature } = readObject(detail);
    const words = readString(text) ?? '';
    const thoughtSignature = readString(signature);
    const isOwn = format === 'gemini' && (words !== '' || thoughtSignature !== undefined);
    const part: GeminiPart = { text: words, thought: true, ...(thoughtSignature && { thoughtSignature }) };
    return { name: `reasoning:${at}`, parts: isOwn ? [part] : [] };
  });
}

function textBlocks(turn: AssistantTurn, rules: PartRules): readonly NamedParts[] {
  const blocks = turn.parts.map(
    (part): NamedParts => ({ name: `content:${indexOf(part)}`, parts: wordsOf(part, rules) }),
  );
  const images = imageParts(turn);
  const signature = signatureOf(turn.message);
  const last = blocks.at(-1);
  if (signature === undefined) return images.length > 0 ? [...blocks, { name: 'image', parts: images }] : blocks;
  // The signature of a whole text is that of its last part; of a text that is empty it is all there is.
  const [text = { text: '' }, ...others] = last?.parts.toReversed() ?? [];
  const signed = [...others.toReversed(), { ...text, thoughtSignature: signature }];
  return [...blocks.slice(0, -1), { name: last?.name ?? 'content:0', parts: [...signed, ...images] }];
}

/** Where a part stood in the message's content: empty ones were left out since. */
function indexOf({ at }: Located<ContentPart>): string {
  return /\.content\[(\d+)\]$/.exec(at)?.[1] ?? '0';
}

function wordsOf(part: Located<ContentPart>, rules: PartRules): readonly GeminiPart[] {
  if (textOf(part.value) === undefined && part.value.type !== 'opaque')
    throw invalid(`${part.at}.type`, 'must be text or refusal in an assistant message');
  return geminiParts([part], rules);
}

/** Images that the model made before. */
function imageParts({ message }: AssistantTurn): readonly GeminiPart[] {
  return readArray(message['images']).flatMap((image) => {
    const url = readString(readObject(readObject(image)['image_url'])['url']);
    const inline = url === undefined ? undefined : readDataUrl(url);
    const thoughtSignature = signatureOf(readObject(image));
    if (!inline) return [];
    return [
      { inlineData: { mimeType: inline.mediaType, data: inline.data }, ...(thoughtSignature && { thoughtSignature }) },
    ];
  });
}

function callBlocks({ calls }: AssistantTurn, traits: GeminiTraits): readonly NamedParts[] {
  let signed = false;
  return calls.map((call, at) => {
    const { id, signature: found } = readSignedCall(call);
    // Of parallel calls only the first is signed, so an unsigned one after a signed one is as the vendor made it.
    const thoughtSignature = found ?? (traits.signatures && !signed ? SKIP_SIGNATURE : undefined);
    signed ||= found !== undefined;
    const functionCall = { id, name: call.name, args: parseArguments(call.arguments) };
    return { name: `tool:${at}`, parts: [{ functionCall, ...(thoughtSignature && { thoughtSignature }) }] };
  });
}

function readSignedCall(call: CalledTool): { id: string; signature?: string | undefined } {
  const { id, signature } = readCallId(call.id);
  return { id, signature: signatureOf(call.source) ?? signature };
}
