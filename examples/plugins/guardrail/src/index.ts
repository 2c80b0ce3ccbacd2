import { definePlugin } from 'tollgate';
import { guardTexts, refusal, textTransform } from 'tollgate/guardrails';

/** Refuses requests with a name that is a secret of the house, and hides it in what models say. */
export default definePlugin({
  name: 'my-plugin',
  kind: 'policy',
  apiVersion: 1,
  configSchema: {
    type: 'object',
    additionalProperties: false,
    properties: {
      name: { type: 'string', pattern: '^\\w{3,40}$', default: 'orion', description: 'The name; any case is meant.' },
    },
  },
  setup(api, { name }) {
    const transform = textTransform({
      find: new RegExp(name, 'gi'),
      hold: name.length, // of a stream so many characters wait for what follows
      replace(_text, place) {
        if (place.side === 'request') throw refusal(api.instance, 'a name that is a secret', place);
        return '…';
      },
    });
    guardTexts(api, () => transform); // requests, whole responses and streams
  },
});
