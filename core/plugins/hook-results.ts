import type { CredentialKind, Operation } from '../contract/call.ts';
import { isGatewayError } from '../contract/errors.ts';
import type { HookName } from '../contract/hooks.ts';
import { isObject } from '../contract/json.ts';
import type { HttpRequest } from '../contract/provider.ts';

/** What core reads of a hook's result: a cheap look at its shape, so that an error names the plugin and not what stumbles over it. */
export interface ResultShape {
  readonly expected: string;
  /** `before` is what a waterfall hook was given to change. */
  readonly fits: (value: unknown, before?: unknown) => boolean;
}

/** Whether a value looks like a response of an operation; plugins' operations bring their own. */
export type ResponseCheck = (value: unknown) => boolean;

export const isChatResponse: ResponseCheck = (value) =>
  isObject(value) &&
  typeof value['id'] === 'string' &&
  Array.isArray(value['choices']) &&
  value['choices'].every((choice) => isObject(choice) && isObject(choice['message']));

export const isInputCount: ResponseCheck = (value) =>
  isObject(value) &&
  typeof value['inputTokens'] === 'number' &&
  Number.isSafeInteger(value['inputTokens']) &&
  value['inputTokens'] >= 0 &&
  typeof value['estimated'] === 'boolean';

export const isChatChunk = (value: unknown): boolean =>
  isObject(value) &&
  Array.isArray(value['choices']) &&
  value['choices'].every((choice) => isObject(choice) && isObject(choice['delta']));

const isName = (value: unknown): boolean => typeof value === 'string' && value !== '';

const CREDENTIALS: ReadonlySet<unknown> = new Set<CredentialKind>(['key', 'token', 'session']);

const isPrincipal = (value: unknown): boolean =>
  isObject(value) && CREDENTIALS.has(value['credential']) && isName(value['userId']) && isName(value['account']);

const isTarget = (value: unknown): boolean => isObject(value) && isName(value['provider']) && isName(value['model']);

const isStream = (request: unknown): boolean => isObject(request) && request['stream'] === true;

const isCost = (value: unknown): boolean =>
  value === undefined || (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0);

const isHeaders = (value: unknown): boolean =>
  value === undefined || (isObject(value) && Object.values(value).every((text) => typeof text === 'string'));

const nothing: ResultShape = { expected: 'nothing: a throw refuses', fits: () => false };

/** The shape of each hook's result, where it has one that counts. */
export function resultShapes(
  operation: Operation,
  isRequest: ResponseCheck,
  isResponse: ResponseCheck,
): Readonly<Record<HookName, ResultShape>> {
  const response: ResultShape = { expected: `a response of the operation "${operation}"`, fits: isResponse };
  return {
    authenticate: { expected: 'a principal with credential, userId and account', fits: isPrincipal },
    admit: nothing,
    prepare: {
      expected: `a request that the schema of "${operation}" accepts, a stream or whole as it was`,
      fits: (value, before) => isRequest(value) && isStream(value) === isStream(before),
    },
    answer: {
      expected: `an object with a response of the operation "${operation}", whole micro-dollars as its cost and text headers`,
      fits: (value) =>
        isObject(value) &&
        isResponse(value['response']) &&
        isCost(value['cost']) &&
        isCost(value['saved']) &&
        isHeaders(value['headers']),
    },
    route: {
      expected: 'a list of targets, each with provider and model',
      fits: (value) => Array.isArray(value) && value.length > 0 && value.every(isTarget),
    },
    reserve: nothing,
    send: {
      expected:
        'an HTTP request with a path and the body that it was given: what was checked and priced is what is sent',
      fits: (value, before) =>
        isObject(value) &&
        typeof value['path'] === 'string' &&
        value['path'].startsWith('/') &&
        value['body'] === (before as HttpRequest | undefined)?.body,
    },
    attempt: { expected: 'nothing', fits: () => true },
    receive: response,
    stream: {
      expected: 'an object with a push function',
      fits: (value) => isObject(value) && typeof value['push'] === 'function',
    },
    error: { expected: 'a GatewayError', fits: isGatewayError },
    finish: { expected: 'nothing', fits: () => true },
  };
}
