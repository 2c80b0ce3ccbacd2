import { type Call, GatewayError, isGatewayError, type PluginApi } from '../../../contract/index.ts';

/** Options of a policy that calls a service. */
export const SERVICE = Object.freeze({
  headers: {
    type: 'object',
    additionalProperties: { type: 'string', secret: true },
    default: {},
    description: 'Additional request headers, such as `authorization`.',
  },
  maxSize: {
    type: ['string', 'integer'],
    format: 'size',
    default: '1mb',
    description: 'Maximum text of a request or response; longer ones are rejected.',
  },
} as const);

export interface Service {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Requests the verdict of a service on a call: once, at its own host, without redirects, until the call ends. Rejects
 * with `provider_unavailable` for an invalid response, for which `read` throws.
 */
export async function requestVerdict<T>(
  api: PluginApi,
  { url, headers }: Service,
  call: Call,
  json: object,
  read: (body: unknown) => T,
  hasEnded = false,
): Promise<T> {
  try {
    const http = await api.http();
    const options = { json, headers, retry: { limit: 0 }, ...(!hasEnded && { signal: call.signal }) };
    return read(await http.post(url, options).json());
  } catch (cause) {
    if (isGatewayError(cause)) throw cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    api.log.warn({ call: call.id, reason }, 'the service of a guardrail returned no verdict');
    const message = `The service of the policy "${api.instance}" of this gateway returned no verdict, so the call was rejected. Try again.`;
    throw new GatewayError('provider_unavailable', message, { refusedBy: api.instance });
  }
}
