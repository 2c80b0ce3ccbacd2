import { createHash, timingSafeEqual } from 'node:crypto';
import { definePlugin, GatewayError } from 'tollgate';

/** How all credentials of this scheme begin. */
const PREFIX = 'my-plugin-';

const digest = (text: string): Buffer => createHash('sha256').update(text).digest();

/** Tokens of a fixed list, each of a user. */
export default definePlugin({
  name: 'my-plugin',
  kind: 'auth',
  apiVersion: 1,
  isCredential: (text) => text.startsWith(PREFIX),
  configSchema: {
    type: 'object',
    additionalProperties: false,
    required: ['tokens'],
    properties: {
      tokens: {
        type: 'object',
        description: 'The token of each user.',
        additionalProperties: { type: 'string', secret: true, pattern: `^${PREFIX}.{16,}$` },
      },
    },
  },
  setup(api, { tokens }) {
    const known = Object.entries(tokens).map(([userId, token]) => ({ userId, hash: digest(token) }));
    api.hook('authenticate', ({ credential }) => {
      if (!credential.startsWith(PREFIX)) return undefined; // not ours: the next scheme looks at it
      const hash = digest(credential);
      const found = known.find((each) => timingSafeEqual(each.hash, hash));
      if (!found) throw new GatewayError('invalid_api_key', 'The token is unknown.');
      return { credential: 'key', userId: found.userId, account: found.userId };
    });
  },
});
