import { type Call, type ChatResponse, GatewayError, type PluginApi } from '../../../contract/index.ts';
import type { TextPlace, TextTransform } from './text-transform.ts';

/** Texts of a call to check. */
export type Side = TextPlace['side'];

/** Option `sides` of guardrails. */
export const SIDES = Object.freeze({
  type: 'array',
  minItems: 1,
  uniqueItems: true,
  items: { enum: ['request', 'response'] },
  default: ['request', 'response'],
  description: 'Checked direction: text from callers (`request`) or from models (`response`).',
} as const);

/** Text transform of a guardrail for a call; undefined skips this side. */
export type Guard = (call: Call, side: Side) => TextTransform | undefined;

/**
 * Applies a guardrail to the texts of all calls, requests and responses of every operation. Token counts are included,
 * because vendors read their texts.
 */
export function guardTexts(api: PluginApi, guard: Guard): void {
  const prepare = (call: Call, request: Call['request']) => {
    assertSeen(api, call, (side) => guard(call, side) !== undefined);
    return guard(call, 'request')?.request(request, call.texts?.request);
  };
  api.hook('prepare', prepare);
  api.hook('prepare', { operations: ['count'], handler: prepare });
  api.hook('receive', (call, response) => {
    const transform = guard(call, 'response');
    return isChat(call, response) ? transform?.response(response) : transform?.result(response, call.texts?.response);
  });
  api.hook('stream', { operations: ['chat'], handler: (call) => guard(call, 'response')?.stream() });
}

/** Returns true for the response of a chat; those of other operations are values of any shape. */
export function isChat({ operation }: Call, _response: object): _response is ChatResponse {
  return operation === 'chat';
}

/** Rejects a call with texts that hooks cannot see, such as those of a websocket, if the policy would check them. */
export function assertSeen({ instance }: PluginApi, { texts }: Call, looks: (side: Side) => boolean): void {
  const unseen = texts?.unseen;
  if (!unseen?.sides.some(looks)) return;
  throw new GatewayError(
    'permission_denied',
    `The policy "${instance}" of this gateway cannot check ${unseen.what}. ${unseen.instead}`,
    { refusedBy: instance },
  );
}

/** Rejects calls as {@link assertSeen} does, for policies without a `prepare` hook of their own. */
export function refuseUnseen(api: PluginApi, looks: (side: Side) => boolean): void {
  api.hook('prepare', (call) => void assertSeen(api, call, looks));
}

/** Rejects batches. `why` describes what the policy does. */
export function refuseBatches(api: PluginApi, why: string): void {
  api.hook('prepare', {
    operations: ['batches'],
    handler() {
      throw new GatewayError(
        'permission_denied',
        `The policy "${api.instance}" of this gateway ${why}. Send the requests one by one.`,
        { refusedBy: api.instance },
      );
    },
  });
}

/** Error for a text that a guardrail rejects. `what` is the kind of content, never the text itself. */
export function refusal(instance: string, what: string, { side, path }: TextPlace): GatewayError {
  const message =
    side === 'request'
      ? `The policy "${instance}" of this gateway rejected this request: it contains ${what}. Remove it and try again.`
      : `The policy "${instance}" of this gateway rejected the response: it contains ${what}.`;
  return new GatewayError('content_filtered', message, {
    refusedBy: `${instance}: ${what}`,
    ...(side === 'request' && path !== '' && { param: path }),
  });
}
