import { definePlugin, isObject, parseJson } from 'tollgate';

/** Interval of reading a secret again. If it changed, the gateway reloads its configuration. */
const AGAIN_MS = 300_000;

/**
 * Secrets of a safe that is asked over HTTP: `${my-plugin:openai}` in a configuration is what it has under the name `openai`. What is
 * thrown is the reason that an operator reads; it holds no secret.
 */
export default definePlugin({
  name: 'my-plugin',
  kind: 'secrets',
  apiVersion: 1,
  configSchema: {
    type: 'object',
    additionalProperties: false,
    required: ['url', 'token'],
    properties: {
      url: { type: 'string', format: 'url', description: 'Where the safe is; requests go to its host alone.' },
      token: { type: 'string', minLength: 1, secret: true, description: 'What the gateway says who it is with.' },
    },
  },
  setup() {},
  secrets: ({ url, token }, { http }) => ({
    async read(name) {
      if (!/^[\w-]{1,100}$/.test(name)) throw new Error('the safe has no names of this form');
      const client = await http();
      const { statusCode, body } = await client(`${url}/secrets/${name}`, {
        headers: { authorization: `Bearer ${token}` },
        responseType: 'text',
        throwHttpErrors: false,
      }).catch(() => {
        throw new Error('the safe cannot be reached');
      });
      if (statusCode === 404) throw new Error('the safe has nothing under this name');
      const found = parseJson(body);
      if (statusCode !== 200 || !isObject(found) || typeof found['value'] !== 'string')
        throw new Error(`the safe gives no secret (status ${statusCode})`);
      return { text: found['value'], againMs: AGAIN_MS };
    },
  }),
});
