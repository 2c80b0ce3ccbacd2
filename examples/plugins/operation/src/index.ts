import { definePlugin, type JsonOffer } from 'tollgate';

export interface CountRequest {
  readonly model: string;
  readonly text: string;
}

export interface CountResponse {
  readonly words: number;
}

/** Registration of a provider for the operation, with its codec. */
export type CountOffer = JsonOffer<CountRequest, CountResponse>;

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
  examples: [{ model: 'counter/words', text: 'How many words?' }],
} as const;

const RESPONSE = { type: 'object', required: ['words'], properties: { words: { type: 'integer' } } } as const;

/** Counts words: an operation in addition to chats. */
export default definePlugin({
  name: 'my-plugin',
  kind: 'operation',
  apiVersion: 1,
  configSchema: { type: 'object', additionalProperties: false, properties: {} },
  setup(api) {
    api.operation({
      name: 'my-plugin',
      request: REQUEST,
      response: RESPONSE,
      // The gateway reserves and charges these units at the fee of the model's price.
      maxUsage: ({ text }) => ({ units: { characters: text.length } }),
      routes: [{ path: 'my-plugin', summary: 'Counts the words of a text' }],
    });
  },
});
