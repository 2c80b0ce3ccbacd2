import {
  type Call,
  type ChatRequest,
  definePlugin,
  formatUsd,
  GatewayError,
  type PluginApi,
  parseUsd,
} from '../../contract/index.ts';

/** Returns true if the caller limits the output. */
function namesLimit({ request, client }: Call): boolean {
  const { max_completion_tokens, max_tokens } = request as Partial<ChatRequest>;
  return client?.demandsLimit !== true && (max_completion_tokens ?? max_tokens ?? null) !== null;
}

/** Upper bound: no model writes more. */
const MOST_OUTPUT = 2 ** 20;

/** Maximum output tokens of a call for an amount, since its cost grows with them. 0 if no limit makes it affordable. */
function outputFor(api: PluginApi, call: Call, nano: number): number {
  let [fits, tooMany] = [0, MOST_OUTPUT];
  while (tooMany - fits > 1) {
    const middle = Math.floor((fits + tooMany) / 2);
    if ((api.books.estimate(call, middle).cost ?? Number.POSITIVE_INFINITY) <= nano) fits = middle;
    else tooMany = middle;
  }
  return fits;
}

/**
 * Limits the cost of each call. A chat without an output limit gets one that fits; other calls over the limit are
 * rejected before they are sent.
 */
export default definePlugin({
  name: 'max-cost',
  kind: 'policy',
  apiVersion: 1,
  configSchema: {
    type: 'object',
    required: ['usd'],
    additionalProperties: false,
    properties: {
      usd: {
        type: ['string', 'number'],
        format: 'money',
        description: 'Maximum cost of one call, in US dollars.',
      },
      unknown: {
        enum: ['refuse', 'allow'],
        default: 'refuse',
        description: 'Handling of calls to models with an unknown price.',
      },
      leastOutput: {
        type: 'integer',
        minimum: 1,
        default: 256,
        description:
          'Lowest output limit that is set for a chat, in tokens. Chats that would need a lower one are rejected.',
      },
    },
  },
  setup(api, { usd, unknown, leastOutput }) {
    const most = parseUsd(usd);
    const refuse = (call: Call, what: string, remedy: string): GatewayError =>
      new GatewayError(
        'invalid_request',
        `${what} The policy "${api.instance}" of this gateway allows ${formatUsd(most)} USD per call. ${remedy}`,
        {
          refusedBy: api.instance,
          param: call.operation === 'chat' ? 'max_tokens' : 'model',
        },
      );
    api.hook('reserve', (call) => {
      const { cost } = api.books.estimate(call);
      if (cost === undefined) {
        if (unknown === 'allow') return;
        throw refuse(call, 'The price of this model is unknown.', 'Use another model.');
      }
      if (cost <= most) return;
      const tokens = outputFor(api, call, most);
      if (tokens >= leastOutput && !namesLimit(call)) {
        api.books.limitOutput(call, tokens);
        call.headers.set('x-tollgate-max-tokens', String(tokens));
        return;
      }
      const remedy = tokens > 0 ? `Limit the output to ${tokens} tokens.` : 'Send less text or use a cheaper model.';
      throw refuse(call, `This call may cost ${formatUsd(cost)} USD.`, remedy);
    });
  },
});
