import {
  type Call,
  type ChatChunk,
  type ChatDelta,
  type ChatRequest,
  definePlugin,
  GatewayError,
  isGatewayError,
  isObject,
  parseSize,
  type StreamTransform,
} from '../../core/index.ts';
import { refusal, SIDES, type Side, type TextPlace, type TextTransform, textTransform } from './kit/index.ts';

/** A text that the service is sent. */
interface SentText {
  readonly path: string;
  /** Who says it; of requests that have messages. */
  readonly role?: string;
  readonly text: string;
  /** Of a stream: the end of what was checked before it at the same path. */
  readonly before?: string;
}

type Verdict = { readonly action: 'pass' } | { readonly action: 'replace'; readonly texts: readonly string[] };

/** `index` says which of the texts it is, where the service knows. */
type Block = { readonly action: 'block'; readonly index?: number };

/** How much of the text before a piece of a stream the service is sent. */
const BEFORE = 2000;

/** Goes through all texts of a call, each as a whole. */
function eachText(change: (text: string, place: TextPlace) => string): TextTransform {
  return textTransform({
    hold: Number.POSITIVE_INFINITY,
    find: (text, from) => (from < text.length ? { start: from, end: text.length } : undefined),
    heldFrom: (_text, from) => from,
    replace: change,
  });
}

/** Puts these texts in place of those of a call, in the order in which {@link eachText} comes to them. */
function putTexts(texts: readonly string[]): TextTransform {
  let at = 0;
  return eachText((text) => texts[at++] ?? text);
}

/** What the service says, in one of three forms. */
function readVerdict(body: unknown, count: number): Verdict | Block {
  if (isObject(body)) {
    const { action, texts, index } = body;
    if (action === 'pass') return { action };
    if (action === 'block') return typeof index === 'number' ? { action, index } : { action };
    if (action === 'replace' && Array.isArray(texts) && texts.length === count) {
      const all: readonly unknown[] = texts;
      if (all.every((text): text is string => typeof text === 'string')) return { action, texts: all };
    }
  }
  throw new TypeError(`the service sent no verdict: {"action":"pass"}, "block", or "replace" with ${count} texts`);
}

/** Any service says what may pass: it is sent the texts of requests and responses, and lets them pass, refuses them or writes them anew. */
export default definePlugin({
  name: 'http-guardrail',
  kind: 'policy',
  apiVersion: 1,
  configSchema: {
    type: 'object',
    required: ['url'],
    additionalProperties: false,
    properties: {
      url: { type: 'string', format: 'url', description: 'Where the texts are sent, by POST.' },
      headers: {
        type: 'object',
        additionalProperties: { type: 'string', secret: true },
        default: {},
        description: 'Headers that go with them, such as `authorization`.',
      },
      window: {
        type: 'integer',
        minimum: 1,
        maximum: 100_000,
        default: 1000,
        description: 'How many characters of a stream are held back and sent at a time.',
      },
      maxSize: {
        type: ['string', 'integer'],
        format: 'size',
        default: '1mb',
        description: 'The most text of a request or response that is sent; more is refused.',
      },
      sides: SIDES,
    },
  },
  setup(api, { url, headers, window, maxSize, sides }) {
    const most = parseSize(maxSize);
    const judge = async (call: Call, side: Side, texts: readonly SentText[], isLast: boolean): Promise<Verdict> => {
      if (texts.length === 0) return { action: 'pass' };
      if (texts.reduce((sum, { text }) => sum + text.length, 0) > most)
        throw new GatewayError(
          'request_too_large',
          `The policy "${api.instance}" of this gateway checks at most ${most} characters of a ${side}.`,
          {
            refusedBy: api.instance,
          },
        );
      const { account, keyId, plan } = call.principal;
      const about = { id: call.id, operation: call.operation, account, key: keyId, plan, tags: call.tags };
      let verdict: Verdict | Block;
      try {
        const http = await api.http();
        const json = { side, is_last: isLast, call: { ...about, model: call.request.model }, texts };
        verdict = readVerdict(
          await http.post(url, { json, headers, retry: { limit: 0 }, signal: call.signal }).json(),
          texts.length,
        );
      } catch (cause) {
        if (isGatewayError(cause)) throw cause;
        const reason = cause instanceof Error ? cause.message : String(cause);
        api.log.warn({ call: call.id, reason }, 'the service of a guardrail gave no verdict');
        const message = `The service of the policy "${api.instance}" of this gateway gives no verdict, without which nothing passes. Try again.`;
        throw new GatewayError('provider_unavailable', message, { refusedBy: api.instance });
      }
      if (verdict.action === 'block')
        throw refusal(api.instance, 'what its service refuses', { side, path: texts[verdict.index ?? -1]?.path ?? '' });
      return verdict;
    };

    const prepare = async (call: Call, request: Call['request']) => {
      const { messages = [] } = request as Partial<ChatRequest>;
      const texts: SentText[] = [];
      eachText((text, { path }) => {
        const message = messages[Number(/^messages\[(\d+)\]/.exec(path)?.[1] ?? -1)];
        texts.push({ path, ...(message && { role: message.role }), text });
        return text;
      }).request(request);
      const verdict = await judge(call, 'request', texts, true);
      return verdict.action === 'replace' ? putTexts(verdict.texts).request(request) : undefined;
    };
    if (sides.includes('request')) {
      api.hook('prepare', prepare);
      api.hook('prepare', { operations: ['count'], handler: prepare });
    }
    if (!sides.includes('response')) return;
    api.hook('receive', {
      operations: ['chat'],
      async handler(call, response) {
        const texts: SentText[] = [];
        eachText((text, { path }) => {
          texts.push({ path, text });
          return text;
        }).response(response);
        const verdict = await judge(call, 'response', texts, true);
        return verdict.action === 'replace' ? putTexts(verdict.texts).response(response) : undefined;
      },
    });
    api.hook('stream', {
      operations: ['chat'],
      handler(call): StreamTransform {
        const held: ChatChunk[] = [];
        // What was held back when the service failed: it goes on where the instance says `onFailure: open`.
        let unjudged: readonly ChatChunk[] | undefined;
        const before = new Map<string, string>();
        let size = 0;
        const flush = async (isLast: boolean): Promise<readonly ChatChunk[]> => {
          const texts: SentText[] = [];
          const whole = await passAll(
            eachText((text, { path }) => {
              texts.push({ path, text, before: before.get(path) ?? '' });
              return text;
            }),
            held.splice(0),
          );
          size = 0;
          unjudged = whole;
          const verdict = await judge(call, 'response', texts, isLast);
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
            return size < window || (isTool && size <= most) ? [] : await flush(false);
          },
          end: async () => unjudged ?? (held.length > 0 ? await flush(true) : []),
        };
      },
    });
  },
});

/** How much a delta says, about. */
function lengthOf(delta: ChatDelta): number {
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
