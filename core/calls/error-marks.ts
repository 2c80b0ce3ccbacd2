import { GatewayError, isGatewayError } from '../../contract/errors.ts';

const REFUSAL = Symbol('refusal');

/** Notes that an error says that one target cannot be sent the request at all: nothing was sent, another target may do. */
export function asRefusal(thrown: unknown): unknown {
  return isGatewayError(thrown) && thrown.code === 'invalid_request'
    ? Object.defineProperty(thrown, REFUSAL, { value: true })
    : thrown;
}

export function isRefusal(thrown: unknown): boolean {
  return isGatewayError(thrown) && REFUSAL in thrown;
}

const CALLERS_PLACE = Symbol('place of the caller');

/** Notes that an error names a place of the caller's own body already. */
export function atCallersPlace(error: GatewayError): GatewayError {
  return Object.defineProperty(error, CALLERS_PLACE, { value: true });
}

export function isAtCallersPlace(error: GatewayError): boolean {
  return CALLERS_PLACE in error;
}

const WEB_PAGE = Symbol('web page');

/** A page of HTML under a good status, as proxies and sign-in walls send: no model wrote it. */
export function webPageError(cause?: unknown): GatewayError {
  const error = new GatewayError(
    'provider_invalid_response',
    'The provider returned a web page instead of an API response.',
    { cause },
  );
  return Object.assign(error, { [WEB_PAGE]: true });
}

export function isWebPage(error: unknown): boolean {
  return isGatewayError(error) && WEB_PAGE in error;
}
