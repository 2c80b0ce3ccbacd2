import { definePlugin, GatewayError, isObject } from 'tollgate';
import { failureOfStatus, PROVIDER_OPTIONS, readProviderOptions } from 'tollgate/codec';
import type { CountOffer } from './index.ts';

const codec: CountOffer['codec'] = {
  request: ({ text }) => ({ method: 'POST', path: '/count', body: { text } }),
  response(body) {
    if (isObject(body) && typeof body['words'] === 'number') return { words: body['words'] };
    throw new GatewayError('provider_invalid_response', 'The provider returned no number of words.');
  },
};

/** Provider of the operation in this process; that of a vendor has a base URL and no `transport`. */
export default definePlugin({
  name: 'counter',
  kind: 'provider',
  apiVersion: 1,
  configSchema: { type: 'object', additionalProperties: false, properties: { ...PROVIDER_OPTIONS } },
  setup(api, config) {
    const options = readProviderOptions(config, {
      baseUrl: 'http://counter.invalid',
      keyRequired: false,
      models: [{ id: 'words', price: { input: 0, output: 0, fees: { characters: 0.000001 } } }],
    });
    api.offer('my-plugin', {
      ...options,
      specVersion: 1,
      vendor: 'counter',
      error: (status, _body, headers) => failureOfStatus(status, '', headers),
      async transport({ body }) {
        const { text } = body as { readonly text: string };
        const words = text.split(/\s+/).filter((word) => word !== '').length;
        return {
          status: 200,
          headers: { 'content-type': 'application/json' },
          body: (async function* () {
            yield Buffer.from(JSON.stringify({ words }));
          })(),
        };
      },
      codec,
    });
  },
});

export { codec };
