import {
  type Call,
  type ChatChunk,
  type ChatDelta,
  type ChatRequest,
  GatewayError,
  type PluginApi,
  type StreamTransform,
} from '../../../contract/index.ts';
import { refusal, refuseBatches, refuseRealtime, type Side } from './guard.ts';
import { isCodedAt, type TextPlace, type TextTransform, textTransform } from './text-transform.ts';

/** A text that is judged. */
export interface JudgedText {
  readonly path: string;
  /** Who says it; of requests that have messages. */
  readonly role?: string;
  readonly text: string;
  /** Of a stream: the end of what was judged before it at the same path. */
  readonly before?: string;
}

/** What becomes of texts: as many in their place as there were, in their order. `index` says which one is refused, where that is known; `what` is in it, in words that repeat nothing of it. */
export type Verdict =
  | { readonly action: 'pass' }
  | { readonly action: 'replace'; readonly texts: readonly string[] }
  | { readonly action: 'block'; readonly what: string; readonly index?: number };

/** Judges some texts of a call, in its own time. A throw ends the call. */
export type Judge = (call: Call, side: Side, texts: readonly JudgedText[], isLast: boolean) => Promise<Verdict>;

export interface JudgeOptions {
  /** What is judged. */
  readonly sides: readonly Side[];
  /** How many characters of a stream are held back and judged at a time. */
  readonly window: number;
  /** The most characters of a request or a response that are judged; more is refused. */
  readonly maxSize: number;
  /** Which texts of requests are judged; all unless set. */
  isMeant?(text: JudgedText): boolean;
  readonly judge: Judge;
}

/** How much of the text before a piece of a stream is judged with it. */
const BEFORE = 2000;

/** Goes through all texts of a call, each as a whole. */
export function eachText(change: (text: string, place: TextPlace) => string): TextTransform {
  return textTransform({
    hold: Number.POSITIVE_INFINITY,
    find: (text, from) => (from < text.length ? { start: from, end: text.length } : undefined),
    heldFrom: (_text, from) => from,
    replace: change,
  });
}

/** The texts of a request, each with who says it. */
export function textsOfRequest(request: object): readonly JudgedText[] {
  const { messages = [] } = request as Partial<ChatRequest>;
  const texts: JudgedText[] = [];
  eachText((text, { path }) => {
    const message = messages[Number(/^messages\[(\d+)\]/.exec(path)?.[1] ?? -1)];
    texts.push({ path, ...(message && { role: message.role }), text });
    return text;
  }).request(request);
  return texts;
}

/** The texts of a request that stand in it in base64 or in an address, as text. */
export function codedTextsOf(request: object): readonly JudgedText[] {
  return textsOfRequest(request).filter(({ path }) => isCodedAt(path));
}

/** Puts these texts in place of those of a call, in the order in which {@link eachText} comes to them. */
function putTexts(texts: readonly string[]): TextTransform {
  let at = 0;
  return eachText((text) => texts[at++] ?? text);
}

/** Lets the texts of all calls be judged by what takes its time: a service, a model. What was judged is what goes on. */
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
        `The policy "${api.instance}" of this gateway checks at most ${maxSize} characters of a ${side}.`,
        { refusedBy: api.instance },
      );
    const verdict = await judge(call, side, texts, isLast);
    if (verdict.action === 'block')
      throw refusal(api.instance, verdict.what, { side, path: texts[verdict.index ?? -1]?.path ?? '' });
    return verdict;
  };

  const prepare = async (call: Call, request: Call['request']) => {
    const all = textsOfRequest(request);
    const meant = all.filter(isMeant);
    const verdict = await judged(call, 'request', meant, true);
    if (verdict.action !== 'replace') return undefined;
    const said = new Map(meant.map((text, at) => [text, verdict.texts[at] ?? text.text]));
    return putTexts(all.map((text) => said.get(text) ?? text.text)).request(request);
  };
  refuseRealtime(api);
  if (sides.includes('request')) {
    api.hook('prepare', prepare);
    api.hook('prepare', { operations: ['count'], handler: prepare });
  }
  if (!sides.includes('response')) return;
  refuseBatches(api);
  api.hook('receive', {
    operations: ['chat'],
    async handler(call, response) {
      const texts: JudgedText[] = [];
      eachText((text, { path }) => {
        texts.push({ path, text });
        return text;
      }).response(response);
      const verdict = await judged(call, 'response', texts, true);
      return verdict.action === 'replace' ? putTexts(verdict.texts).response(response) : undefined;
    },
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

/** Holds back some of a stream at a time, until it is judged. */
function judgedStream({ window, maxSize, judge }: StreamJudge): StreamTransform {
  const held: ChatChunk[] = [];
  // What was held back when the judge failed: it goes on where the instance says `onFailure: open`.
  let unjudged: readonly ChatChunk[] | undefined;
  const before = new Map<string, string>();
  let size = 0;
  const flush = async (isLast: boolean): Promise<readonly ChatChunk[]> => {
    const texts: JudgedText[] = [];
    const chunks = held.splice(0);
    // The chunk whose push fails goes on by itself.
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
      // The arguments of a tool are JSON: they are sent as a whole.
      const isTool = chunk.choices.some(({ delta }) => (delta.tool_calls ?? []).length > 0);
      return size < window || (isTool && size <= maxSize) ? [] : await flush(false);
    },
    end: async () => unjudged ?? (held.length > 0 ? await flush(true) : []),
  };
}

/** How much a delta says, about. */
export function lengthOf(delta: ChatDelta): number {
  return Object.values(delta).reduce<number>(
    (sum, part) => sum + (typeof part === 'string' ? part.length : JSON.stringify(part ?? '').length),
    0,
  );
}

/** Lets chunks through a transform, to its end: texts that follow one another become one. */
async function passAll(transform: TextTransform, chunks: readonly ChatChunk[]): Promise<readonly ChatChunk[]> {
  const stream = transform.stream();
  const out: ChatChunk[] = [];
  for (const chunk of chunks) out.push(...(await stream.push(chunk)));
  return [...out, ...((await stream.end?.()) ?? [])];
}
