import { definePlugin, isObject, parseJson, problemsOf, readString } from '../../contract/index.ts';
import { AWS_HOSTS, AWS_OPTION, awsCredential, readAws } from '../providers/kit/index.ts';
import { pickField, REFRESH_OPTION, readRefresh, splitReference } from './kit/reference.ts';

const TIMEOUT_MS = 10_000;
const MAX_WORDS = 300;

/**
 * Secrets of AWS Secrets Manager: `aws-sm:prod/openai`, by name or ARN, or `#field` of a secret with a JSON object.
 * Source: https://docs.aws.amazon.com/secretsmanager/latest/apireference/API_GetSecretValue.html
 */
export default definePlugin({
  name: 'aws-sm',
  kind: 'secrets',
  apiVersion: 1,
  hosts: AWS_HOSTS,
  configSchema: {
    type: 'object',
    required: ['aws'],
    additionalProperties: false,
    properties: {
      aws: AWS_OPTION,
      endpoint: {
        type: 'string',
        format: 'url',
        description:
          'URL of Secrets Manager, such as an endpoint of a VPC. Default: the public endpoint of the region.',
      },
      refresh: REFRESH_OPTION,
    },
  },
  check: ({ aws }) => problemsOf(() => readAws(aws)),
  setup() {},

  secrets({ aws, endpoint, refresh }, { http, log, baseDir }) {
    readAws(aws);
    const suffix = aws.region.startsWith('cn-') ? 'amazonaws.com.cn' : 'amazonaws.com';
    const url = `${(endpoint ?? `https://secretsmanager.${aws.region}.${suffix}`).replace(/\/+$/, '')}/`;
    const open = () => http([new URL(url).host]);
    const api = { http: open, log, settings: { baseDir } };
    const credential = awsCredential(api, { ...aws, service: 'secretsmanager' }, url);
    const send = async (SecretId: string) => {
      const request = {
        method: 'POST',
        url,
        body: JSON.stringify({ SecretId }),
        headers: { 'content-type': 'application/x-amz-json-1.1', 'x-amz-target': 'secretsmanager.GetSecretValue' },
      };
      const signed = await credential.headers?.(request);
      const client = await open();
      return client(url, {
        method: 'POST',
        body: request.body,
        headers: { ...request.headers, ...signed, accept: undefined },
        responseType: 'text',
        throwHttpErrors: false,
        retry: { limit: 0 },
        timeout: { request: TIMEOUT_MS },
      }).catch((cause: unknown) => {
        const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown';
        throw new Error(`AWS Secrets Manager cannot be reached (${code})`);
      });
    };
    return {
      async read(name) {
        const { path: id, field } = splitReference(name);
        let response = await send(id);
        // A skewed clock is corrected by the time of AWS's response.
        if (
          response.statusCode >= 400 &&
          credential.refused?.(response.statusCode, { date: response.headers.date ?? '' })
        )
          response = await send(id);
        const value: unknown = parseJson(response.body);
        const body = isObject(value) ? value : {};
        if (response.statusCode !== 200) throw new Error(refusalOf(response.statusCode, body));
        const binary = readString(body['SecretBinary']);
        const text = readString(body['SecretString']) ?? (binary && Buffer.from(binary, 'base64').toString('utf8'));
        if (text === undefined) throw new Error('AWS Secrets Manager returned no secret');
        return { text: pickField(text, field), againMs: readRefresh(refresh) };
      },
    };
  },
});

function refusalOf(status: number, body: Readonly<Record<string, unknown>>): string {
  const kind = readString(body['__type'])?.split('#').at(-1);
  const words = [kind, readString(body['message']) ?? readString(body['Message'])].filter((each) => each !== undefined);
  return `AWS Secrets Manager returned status ${status}${words.length === 0 ? '' : `: ${words.join(': ').slice(0, MAX_WORDS)}`}`;
}
