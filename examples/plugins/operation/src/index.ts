import { type CodecCall, definePlugin, type HttpRequest, isObject, type Offer } from 'tollgate';

export interface CountRequest {
  readonly model: string;
  readonly text: string;
}

export interface CountResponse {
  readonly words: number;
}

/** What a provider brings that takes part: how it is asked, and how its answer is read. */
export interface CountOffer extends Offer {
  readonly codec: {
    request(input: CountRequest, call: CodecCall): HttpRequest;
    response(body: unknown): CountResponse;
  };
}

declare module 'tollgate' {
  interface Operations {
    readonly 'my-plugin': {
      readonly request: CountRequest;
      readonly response: CountResponse;
      readonly offer: CountOffer;
    };
  }
}

const REQUEST = {
  type: 'object',
  required: ['model', 'text'],
  additionalProperties: false,
  properties: { model: { type: 'string' }, text: { type: 'string', maxLength: 100_000 } },
} as const;

const RESPONSE = { type: 'object', required: ['words'], properties: { words: { type: 'integer' } } } as const;

/** Counts words: what callers may ask for in addition to chats. */
export default definePlugin({
  name: 'my-plugin',
  kind: 'operation',
  apiVersion: 1,
  configSchema: { type: 'object', additionalProperties: false, properties: {} },
  setup(api) {
    // What it is measured in, and its cost in nano-dollars: here nothing.
    const metered = ({ text }: CountRequest) => ({ units: { characters: text.length }, cost: 0 });
    api.operation({
      name: 'my-plugin',
      request: REQUEST,
      estimate: metered,
      async attempt({ request, offer, codecCall, sendForJson, meter }) {
        const response = offer.codec.response(await sendForJson(offer.codec.request(request, codecCall)));
        meter(metered(request));
        return response;
      },
      isResponse: (value): value is CountResponse => isObject(value) && typeof value['words'] === 'number',
    });
    api.route({
      method: 'POST',
      path: '/v1/my-plugin',
      summary: 'Counts the words of a text',
      auth: ['key'],
      body: REQUEST,
      responses: { 200: { description: 'The number of words.', schema: RESPONSE } },
      async handler(ctx) {
        const { response, headers } = await api.models.call('my-plugin', ctx.state.body, ctx.state);
        ctx.set(headers);
        ctx.body = response;
      },
    });
  },
});
