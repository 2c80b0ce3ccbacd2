import { type CallContext, GatewayError, type PluginApi } from '../../../contract/index.ts';
import type { SpeechProvider, SpeechRequest, SpeechResponse } from '../../tts/kit/index.ts';
import { resolveSpeech } from './check.ts';

/** Response of the operation, with headers such as `x-tollgate-attempts`. */
export interface SpokenResponse extends SpeechResponse {
  readonly headers?: Readonly<Record<string, string>>;
}

/** Calls one vendor; `requested` is the alias of the request. Resolves with the first sound. */
export type Speak = (
  vendor: string,
  request: SpeechRequest,
  context: CallContext,
  requested?: string,
) => Promise<SpokenResponse>;

/**
 * Creates calls through the whole pipeline. Requests that the vendor does not support are rejected before the call
 * begins.
 */
export function createSpeak(api: Pick<PluginApi, 'models'>, hasCache: boolean): Speak {
  return async (vendorName, request, context, requested) => {
    const offers = api.models.offers('speech');
    const { model } = await resolveSpeech(findVendor(offers, vendorName), request);
    const explicit = { ...request, stream: request.stream !== false };
    const { response, headers } = await api.models.call('speech', explicit, {
      ...context,
      targets: [{ provider: vendorName, model }],
      ...(requested !== undefined && { requested }),
    });
    return { ...response, headers: { ...(hasCache && { 'x-tollgate-cache': 'miss' }), ...headers } };
  };
}

/** Throws `unsupported_provider`, naming the available ones. */
export function findVendor(offers: ReadonlyMap<string, SpeechProvider>, name: string): SpeechProvider {
  const vendor = offers.get(name);
  if (vendor) return vendor;
  const shown = JSON.stringify(name.length > 64 ? `${name.slice(0, 64)}…` : name);
  throw new GatewayError(
    'unsupported_provider',
    `Speech provider ${shown} not found. Configured: ${[...offers.keys()].join(', ') || 'none'}.`,
  );
}
