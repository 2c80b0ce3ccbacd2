import {
  type Call,
  type ChatChunk,
  type ChatDelta,
  type ChatMessage,
  type ChatRequest,
  GatewayError,
  type PluginApi,
  type StreamTransform,
} from '../../../contract/index.ts';
import { assertSeen, isChat, refusal, type Side } from './guard.ts';
import { isCodedAt, type TextPlace, type TextTransform, textTransform } from './text-transform.ts';

/** Text to judge. */
export interface JudgedText {
  readonly path: string;
  /** Role of its author, for requests with messages. */
  readonly role?: string;
  readonly text: string;
  /** End of the text judged before it at the same path, for a stream. */
  readonly before?: string;
}

/**
 * Verdict for texts. Replacements are equal in number and order. `index` is the rejected text, if known; `what` is
 * its kind of content, without quoting it.
 */
export type Verdict =
  | { readonly action: 'pass' }
  | { readonly action: 'replace'; readonly texts: readonly string[] }
  | { readonly action: 'block'; readonly what: string; readonly index?: number };

/** Judges texts of a call, asynchronously. An error ends the call. */
export type Judge = (call: Call, side: Side, texts: readonly JudgedText[], isLast: boolean) => Promise<Verdict>;

export interface JudgeOptions {
  readonly sides: readonly Side[];
  /** Number of characters of a stream that are buffered and judged at a time. */
  readonly window: number;
  /** Maximum number of judged characters of a request or a response; longer ones are rejected. */
  readonly maxSize: number;
  /** Selects the texts of requests to judge; default: all. */
  isMeant?(text: JudgedText): boolean;
  readonly judge: Judge;
}

/** Number of characters before a piece of a stream that are judged with it. */
const BEFORE = 2000;

/** Transforms all texts of a call, each as a whole. */
export function eachText(change: (text: string, place: TextPlace) => string): TextTransform {
  return textTransform({
    hold: Number.POSITIVE_INFINITY,
    find: (text, from) => (from < text.length ? { start: from, end: text.length } : undefined),
    heldFrom: (_text, from) => from,
    replace: change,
  });
}

/** Texts of a request with the role of their author. `paths`: the texts of its operation; default: every string. */
export function textsOfRequest(request: object, paths?: readonly string[]): readonly JudgedText[] {
  const { messages = [] } = request as Partial<ChatRequest>;
  const texts: JudgedText[] = [];
  eachText((text, { path }) => {
    const message = messages[Number(/^messages\[(\d+)\]/.exec(path)?.[1] ?? -1)];
    texts.push({ path, ...(message && { role: roleAt(message, path) }), text });
    return text;
  }).request(request, paths);
  return texts;
}

/** Role of a text's author. A model does not write the results of its vendor's tools, which are blocks of its message. */
function roleAt({ role, content }: ChatMessage, path: string): string {
  const [, at = ''] = /^messages\[\d+\]\.content\[(\d+)\]/.exec(path) ?? [];
  const part = role === 'assistant' && Array.isArray(content) ? content[Number(at || -1)] : undefined;
  return part?.type === 'opaque' ? 'tool' : role;
}

/** Texts that a request contains in base64 or in a data URL, decoded. */
export function codedTextsOf(request: object): readonly JudgedText[] {
  return textsOfRequest(request).filter(({ path }) => isCodedAt(path));
}

/** Replaces the texts of a call by these, in the order of {@link eachText}. */
function putTexts(texts: readonly string[]): TextTransform {
  let at = 0;
  return eachText((text) => texts[at++] ?? text);
}

/** Has the texts of all calls judged by an asynchronous service or model. Exactly the judged texts are passed on. */
export function judgeTexts(
  api: PluginApi,
  { sides, window, maxSize, isMeant = () => true, judge }: JudgeOptions,
): void {
  const judged: (...args: Parameters<Judge>) => Promise<Exclude<Verdict, { action: 'block' }>> = async (
    call,
    side,
    texts,
    isLast,
  ) => {
    if (texts.length === 0) return { action: 'pass' };
    if (texts.reduce((sum, { text }) => sum + text.length, 0) > maxSize)
      throw new GatewayError(
        'request_too_large',
        `The ${side} exceeds the limit of ${maxSize} characters of the policy "${api.instance}" of this gateway.`,
        { refusedBy: api.instance },
      );
    const verdict = await judge(call, side, texts, isLast);
    if (verdict.action === 'block')
      throw refusal(api.instance, verdict.what, { side, path: texts[verdict.index ?? -1]?.path ?? '' });
    return verdict;
  };

  const assertJudged = (call: Call): void =>
    // A websocket carries both sides.
    assertSeen(api, call, (side) => sides.includes(side) || call.texts?.unseen?.sides.length === 2);
  const prepare = async (call: Call, request: Call['request']) => {
    assertJudged(call);
    const paths = call.texts?.request;
    const all = textsOfRequest(request, paths);
    const meant = all.filter(isMeant);
    const verdict = await judged(call, 'request', meant, true);
    if (verdict.action !== 'replace') return undefined;
    const said = new Map(meant.map((text, at) => [text, verdict.texts[at] ?? text.text]));
    return putTexts(all.map((text) => said.get(text) ?? text.text)).request(request, paths);
  };
  if (sides.includes('request')) {
    api.hook('prepare', prepare);
    api.hook('prepare', { operations: ['count'], handler: prepare });
  } else api.hook('prepare', (call) => void assertJudged(call));
  if (!sides.includes('response')) return;
  api.hook('receive', async (call, response) => {
    const texts: JudgedText[] = [];
    const pass = (transform: TextTransform) =>
      isChat(call, response) ? transform.response(response) : transform.result(response, call.texts?.response);
    pass(
      eachText((text, { path }) => {
        texts.push({ path, text });
        return text;
      }),
    );
    const verdict = await judged(call, 'response', texts, true);
    return verdict.action === 'replace' ? pass(putTexts(verdict.texts)) : undefined;
  });
  api.hook('stream', {
    operations: ['chat'],
    handler: (call) =>
      judgedStream({ window, maxSize, judge: (texts, isLast) => judged(call, 'response', texts, isLast) }),
  });
}

interface StreamJudge extends Pick<JudgeOptions, 'window' | 'maxSize'> {
  judge(texts: readonly JudgedText[], isLast: boolean): Promise<Exclude<Verdict, { action: 'block' }>>;
}

/** Buffers parts of a stream until they are judged. */
function judgedStream({ window, maxSize, judge }: StreamJudge): StreamTransform {
  const held: ChatChunk[] = [];
  // Chunks buffered when the judge failed; they are passed on with `onFailure: open`.
  let unjudged: readonly ChatChunk[] | undefined;
  const before = new Map<string, string>();
  let size = 0;
  const flush = async (isLast: boolean): Promise<readonly ChatChunk[]> => {
    const texts: JudgedText[] = [];
    const chunks = held.splice(0);
    // The chunk whose push fails is passed on separately.
    unjudged = isLast ? chunks : chunks.slice(0, -1);
    const whole = await passAll(
      eachText((text, { path }) => {
        texts.push({ path, text, before: before.get(path) ?? '' });
        return text;
      }),
      chunks,
    );
    size = 0;
    const verdict = await judge(texts, isLast);
    unjudged = undefined;
    const said = verdict.action === 'replace' ? verdict.texts : texts.map(({ text }) => text);
    for (const [at, { path }] of texts.entries())
      before.set(path, `${before.get(path) ?? ''}${said[at] ?? ''}`.slice(-BEFORE));
    return verdict.action === 'replace' ? await passAll(putTexts(verdict.texts), whole) : whole;
  };
  return {
    async push(chunk) {
      held.push(chunk);
      for (const { delta } of chunk.choices) size += lengthOf(delta);
      // Tool arguments are JSON, so they are judged as a whole.
      const isTool = chunk.choices.some(({ delta }) => (delta.tool_calls ?? []).length > 0);
      return size < window || (isTool && size <= maxSize) ? [] : await flush(false);
    },
    end: async () => unjudged ?? (held.length > 0 ? await flush(true) : []),
  };
}

/** Approximate text length of a delta. */
export function lengthOf(delta: ChatDelta): number {
  return Object.values(delta).reduce<number>(
    (sum, part) => sum + (typeof part === 'string' ? part.length : JSON.stringify(part ?? '').length),
    0,
  );
}

/** Runs chunks through a transform to its end; consecutive texts are merged. */
async function passAll(transform: TextTransform, chunks: readonly ChatChunk[]): Promise<readonly ChatChunk[]> {
  const stream = transform.stream();
  const out: ChatChunk[] = [];
  for (const chunk of chunks) out.push(...(await stream.push(chunk)));
  return [...out, ...((await stream.end?.()) ?? [])];
}
