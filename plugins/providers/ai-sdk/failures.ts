import {
  type FailureClass,
  isObject,
  type ResponseHeaders,
  readObject,
  type UpstreamFailure,
} from '../../../contract/index.ts';
import { anthropicFailure } from '../../formats/anthropic/errors.ts';
import { bedrockFailure } from '../../formats/bedrock/read-response.ts';
import { geminiFailure } from '../../formats/google/errors.ts';

/** Names of failures in the errors of this plugin's client, and their classes. */
export const FAILURES: Readonly<Record<string, FailureClass>> = Object.freeze({
  failure_authentication: 'authentication',
  failure_billing: 'billing',
  failure_content_filter: 'content_filter',
  failure_context_length: 'context_length',
  failure_invalid_request: 'invalid_request',
  failure_model_not_found: 'model_not_found',
  failure_not_found: 'not_found',
  failure_overloaded: 'overloaded',
  failure_permission: 'permission',
  failure_rate_limit: 'rate_limit',
  failure_request_over_limit: 'request_over_limit',
  failure_timeout: 'timeout',
  failure_upstream_error: 'upstream_error',
});

/** Failure of a vendor whose errors are in a form that OpenAI's tables do not read; undefined for other errors. */
export function readFailure(status: number, body: unknown, headers: ResponseHeaders): UpstreamFailure | undefined {
  const given = readObject(Array.isArray(body) ? body[0] : body);
  const { type, error, __type: name } = given;
  if (typeof name === 'string' || headers['x-amzn-errortype'] !== undefined)
    return bedrockFailure(status, given, headers);
  if (!isObject(error)) return undefined;
  if (type === 'error') return anthropicFailure(status, given, headers);
  const isGoogle = typeof error['code'] === 'number' && typeof error['status'] === 'string';
  return isGoogle ? geminiFailure(status, given, headers) : undefined;
}
