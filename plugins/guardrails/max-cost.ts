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
        description: 'The most that one call may cost, in US dollars.',
      },
      unknown: {
        enum: ['refuse', 'allow'],
        default: 'refuse',
        description: 'What becomes of calls to models whose price is not known.',
      },
      leastOutput: {
        type: 'integer',
        minimum: 1,
        default: 256,
        description:
          'The fewest tokens to which the output of a chat is limited; a chat that may not write as many is refused.',
      },
    },
  },
  setup(api, { usd, unknown, leastOutput }) {
    const most = parseUsd(usd);
    const refuse = (call: Call, what: string, remedy: string): GatewayError =>
      new GatewayError(
        'invalid_request',
        `${what} The policy "${api.instance}" of this gateway lets one call cost ${formatUsd(most)} USD. ${remedy}`,
        {
          refusedBy: api.instance,
          param: call.operation === 'chat' ? 'max_tokens' : 'model',
        },
      );
    api.hook('reserve', (call) => {
      const { cost } = api.books.estimate(call);
      if (cost === undefined) {
        if (unknown === 'allow') return;
        throw refuse(call, 'It is not known what this model costs.', 'Choose another model.');
      }
      if (cost <= most) return;
      const tokens = outputFor(api, call, most);
      if (tokens >= leastOutput && !namesLimit(call)) {
        api.books.limitOutput(call, tokens);
        call.headers.set('x-tollgate-max-tokens', String(tokens));
        return;
      }
      const remedy =
        tokens > 0 ? `Ask for at most ${tokens} tokens of output.` : 'Send less, or choose a model that costs less.';
      throw refuse(call, `This call may cost ${formatUsd(cost)} USD.`, remedy);
    });
  },
});
