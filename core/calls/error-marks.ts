import { GatewayError, isGatewayError } from '../../contract/errors.ts';

const REFUSAL = Symbol('refusal');

/** Marks an error as a refusal: the target cannot do what the request asks for, and another target may succeed. */
export function asRefusal(thrown: unknown): unknown {
  return isGatewayError(thrown) && thrown.code === 'invalid_request'
    ? Object.defineProperty(thrown, REFUSAL, { value: true })
    : thrown;
}

export function isRefusal(thrown: unknown): boolean {
  return isGatewayError(thrown) && REFUSAL in thrown;
}

const CALLERS_PLACE = Symbol('place of the caller');

/** Marks an error whose path is already one of the caller's own body. */
export function atCallersPlace(error: GatewayError): GatewayError {
  return Object.defineProperty(error, CALLERS_PLACE, { value: true });
}

export function isAtCallersPlace(error: GatewayError): boolean {
  return CALLERS_PLACE in error;
}

const WEB_PAGE = Symbol('web page');

/** Error for an HTML page with a success status, as proxies and sign-in walls send it. */
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
