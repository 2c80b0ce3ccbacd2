import type { ChatRequest } from '../contract/chat.ts';

/**
 * Token estimates for when nobody told the true number: before a call (to reserve its cost) and after one whose provider
 * reported no usage. UTF-8 bytes / 4, the usual rule for English; languages with longer encodings come out dearer, never free.
 */
export const BYTES_PER_TOKEN = 4;

/** What one image part counts, in tokens: OpenAI's high-detail price of a 1024×1024 picture. */
const TOKENS_PER_IMAGE = 765;

/** What a message costs beside its text, in tokens. */
const TOKENS_PER_MESSAGE = 4;

export function estimateTextTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN);
}

/** Bytes of recorded sound that count as one token: vendors count 10 to 32 tokens a second. */
const SOUND_BYTES_PER_TOKEN = Object.freeze({ plain: 1000, packed: 100 });

/** What a file or a recording counts that is only named, by an id or a URL. */
const TOKENS_PER_NAMED_FILE = 10_000;

/** Fields of a request that no model reads: they may be long and cost nothing. */
const UNREAD: ReadonlySet<string> = new Set([
  'messages',
  'metadata',
  'logit_bias',
  'stream_options',
  'stop',
  'modalities',
]);

/** The tokens of a chat request's input: of its messages, and of every other field that is more than a word or a number. */
export function estimateInputTokens(request: ChatRequest): number {
  let tokens = 0;
  for (const name of Object.keys(request)) {
    const value = request[name];
    if (typeof value === 'object' && value !== null && !UNREAD.has(name))
      tokens += estimateTextTokens(JSON.stringify(value));
  }
  for (const message of request.messages) tokens += estimateMessage(message);
  return tokens;
}

/** Tokens of the output that is foretold: those that the model does not use are billed as if it had written them. */
export function estimatePrediction(request: ChatRequest): number {
  const { prediction } = request;
  return prediction === undefined || prediction === null ? 0 : estimateTextTokens(JSON.stringify(prediction));
}

type Message = ChatRequest['messages'][number];

function estimateMessage(message: Message): number {
  let tokens = TOKENS_PER_MESSAGE;
  for (const name of Object.keys(message)) {
    const value = message[name];
    if (name === 'role' || name === 'tool_call_id') continue;
    if (typeof value === 'string') tokens += estimateTextTokens(value);
    else if (name === 'content' && Array.isArray(value)) for (const part of value) tokens += estimatePart(part);
    else if (typeof value === 'object' && value !== null) tokens += estimateTextTokens(JSON.stringify(value));
  }
  return tokens;
}

interface Part {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** A part by its size: text, a file and whatever else is sent whole by its bytes, a recording by its length. */
function estimatePart(part: Part): number {
  if (typeof part['text'] === 'string') return estimateTextTokens(part['text']);
  if (part.type === 'image_url') return TOKENS_PER_IMAGE;
  const { bytes, isSent } = measurePart(part);
  if (part.type === 'input_audio') return Math.ceil(bytes / SOUND_BYTES_PER_TOKEN[isPacked(part) ? 'packed' : 'plain']);
  const tokens = Math.ceil(bytes / BYTES_PER_TOKEN);
  if (isSent) return tokens;
  return Math.max(tokens, FILES.has(part.type) ? TOKENS_PER_NAMED_FILE : TOKENS_PER_IMAGE);
}

const FILES: ReadonlySet<string> = new Set('file input_file document video_url input_video audio_url'.split(' '));
const SENT_AS: ReadonlySet<string> = new Set(['data', 'file_data']);

/** How many bytes a part has, and whether its content is among them (in base64) and not only its name. */
function measurePart(value: object): { readonly bytes: number; readonly isSent: boolean } {
  let bytes = 0;
  let isSent = false;
  for (const [name, field] of Object.entries(value)) {
    if (typeof field === 'string') {
      const isData = SENT_AS.has(name) || field.startsWith('data:');
      isSent ||= isData;
      bytes += isData ? (field.length * 3) / 4 : Buffer.byteLength(field);
    } else if (typeof field === 'object' && field !== null) {
      const inner = measurePart(field);
      isSent ||= inner.isSent;
      bytes += inner.bytes;
    }
  }
  return { bytes, isSent };
}

function isPacked({ input_audio: sound }: Part): boolean {
  return typeof sound === 'object' && sound !== null && 'format' in sound && !/^(?:wav|pcm)/.test(String(sound.format));
}
