import { definePlugin, isObject, parseSize } from '../../contract/index.ts';
import { type Judge, judgeTexts, SIDES, type Verdict } from './kit/index.ts';
import { requestVerdict, SERVICE } from './kit/service.ts';

/** Reads the verdict of the service, in one of three forms. */
function readVerdict(body: unknown, count: number): Verdict {
  if (isObject(body)) {
    const { action, texts, index } = body;
    if (action === 'pass') return { action };
    if (action === 'block')
      return { action, what: 'content that its service rejects', ...(typeof index === 'number' && { index }) };
    if (action === 'replace' && Array.isArray(texts) && texts.length === count) {
      const all: readonly unknown[] = texts;
      if (all.every((text): text is string => typeof text === 'string')) return { action, texts: all };
    }
  }
  throw new TypeError(`the service returned no verdict: {"action":"pass"}, "block", or "replace" with ${count} texts`);
}

/** Sends the texts of requests and responses to a service, which lets them pass, rejects them or replaces them. */
export default definePlugin({
  name: 'http-guardrail',
  kind: 'policy',
  apiVersion: 1,
  configSchema: {
    type: 'object',
    required: ['url'],
    additionalProperties: false,
    properties: {
      url: { type: 'string', format: 'url', description: 'URL that receives the texts by POST.' },
      ...SERVICE,
      window: {
        type: 'integer',
        minimum: 1,
        maximum: 100_000,
        default: 1000,
        description: 'Number of characters of a stream that are buffered and sent at a time.',
      },
      sides: SIDES,
    },
  },
  setup(api, { url, headers, window, maxSize, sides }) {
    const judge: Judge = (call, side, texts, isLast) => {
      const { account, keyId, plan } = call.principal;
      const about = { id: call.id, operation: call.operation, account, key: keyId, plan, tags: call.tags };
      const json = { side, is_last: isLast, call: { ...about, model: call.request.model }, texts };
      return requestVerdict(api, { url, headers }, call, json, (body) => readVerdict(body, texts.length));
    };
    judgeTexts(api, { sides, window, maxSize: parseSize(maxSize), judge });
  },
});
