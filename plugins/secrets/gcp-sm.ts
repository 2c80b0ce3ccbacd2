import { definePlugin, isObject, parseJson, problemsOf, readString } from '../../contract/index.ts';
import { GOOGLE_OPTION, googleCredential, LIVE_HOSTS, readGoogle } from '../providers/kit/index.ts';
import { pickField, REFRESH_OPTION, readRefresh, splitReference } from './kit/reference.ts';

const TIMEOUT_MS = 10_000;
const MAX_WORDS = 300;
const NAME = /^projects\/[\w.:-]+(\/locations\/[\w-]+)?\/secrets\/[\w-]+(\/versions\/[\w-]+)?$/;

/**
 * Secrets of Google Cloud: `gcp-sm:projects/p/secrets/openai`, the latest version or `/versions/3`, or `#field` of a
 * secret with a JSON object. Source:
 * https://cloud.google.com/secret-manager/docs/reference/rest/v1/projects.secrets.versions/access
 */
export default definePlugin({
  name: 'gcp-sm',
  kind: 'secrets',
  apiVersion: 1,
  hosts: LIVE_HOSTS,
  configSchema: {
    type: 'object',
    required: ['google'],
    additionalProperties: false,
    properties: {
      google: GOOGLE_OPTION,
      endpoint: {
        type: 'string',
        format: 'url',
        default: 'https://secretmanager.googleapis.com',
        description:
          'URL of Secret Manager; `https://secretmanager.europe-west3.rep.googleapis.com` for regional secrets.',
      },
      refresh: REFRESH_OPTION,
    },
  },
  check: ({ google }) => problemsOf(() => void readGoogle(google)),
  setup() {},

  secrets({ google, endpoint, refresh }, { http, log, baseDir }) {
    const credential = googleCredential({ http: () => http(), log, settings: { baseDir } }, google);
    return {
      async read(name) {
        const { path, field } = splitReference(name);
        if (!NAME.test(path)) throw new Error('the reference must have the form projects/p/secrets/name');
        const version = path.includes('/versions/') ? path : `${path}/versions/latest`;
        const url = `${endpoint.replace(/\/+$/, '')}/v1/${version}:access`;
        const headers = await credential.headers?.({ method: 'GET', url, headers: {}, body: null });
        const client = await http();
        const { statusCode, body: text } = await client(url, {
          headers: headers ?? {},
          responseType: 'text',
          throwHttpErrors: false,
          timeout: { request: TIMEOUT_MS },
        }).catch((cause: unknown) => {
          const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown';
          throw new Error(`Google Secret Manager cannot be reached (${code})`);
        });
        const body: unknown = parseJson(text);
        const { payload, error } = isObject(body) ? body : {};
        if (statusCode !== 200) {
          const words = isObject(error) ? readString(error['message']) : undefined;
          throw new Error(
            `Google Secret Manager returned status ${statusCode}${words === undefined ? '' : `: ${words.slice(0, MAX_WORDS)}`}`,
          );
        }
        const data = isObject(payload) ? readString(payload['data']) : undefined;
        if (data === undefined) throw new Error('Google Secret Manager returned no secret');
        return { text: pickField(Buffer.from(data, 'base64').toString('utf8'), field), againMs: readRefresh(refresh) };
      },
    };
  },
});
