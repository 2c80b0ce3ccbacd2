import { definePlugin, GatewayError, isGatewayError, isObject, parseSize } from '../../core/index.ts';
import { type Judge, judgeTexts, SIDES, type Verdict } from './kit/index.ts';

/** What the service says, in one of three forms. */
function readVerdict(body: unknown, count: number): Verdict {
  if (isObject(body)) {
    const { action, texts, index } = body;
    if (action === 'pass') return { action };
    if (action === 'block')
      return { action, what: 'what its service refuses', ...(typeof index === 'number' && { index }) };
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
    const judge: Judge = async (call, side, texts, isLast) => {
      const { account, keyId, plan } = call.principal;
      const about = { id: call.id, operation: call.operation, account, key: keyId, plan, tags: call.tags };
      try {
        const http = await api.http();
        const json = { side, is_last: isLast, call: { ...about, model: call.request.model }, texts };
        return readVerdict(
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
    };
    judgeTexts(api, { sides, window, maxSize: parseSize(maxSize), judge });
  },
});
