import { type Call, GatewayError, type PluginApi } from '../../../contract/index.ts';
import type { TextPlace, TextTransform } from './text-transform.ts';
import { throughChat } from './tool-result.ts';

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
 * Applies a guardrail to the texts of all calls: requests of every operation, responses of chats and results of tools. Token counts
 * are included, because vendors read their texts.
 */
export function guardTexts(api: PluginApi, guard: Guard): void {
  const prepare = (call: Call, request: Call['request']) => guard(call, 'request')?.request(request);
  api.hook('prepare', prepare);
  api.hook('prepare', { operations: ['count'], handler: prepare });
  api.hook('receive', {
    operations: ['chat'],
    handler: (call, response) => guard(call, 'response')?.response(response),
  });
  api.hook('receive', {
    operations: ['mcp'],
    handler: (call, result) => throughChat(result, (response) => guard(call, 'response')?.response(response)),
  });
  api.hook('stream', { operations: ['chat'], handler: (call) => guard(call, 'response')?.stream() });
  refuseBatches(api, (call) => guard(call, 'response') !== undefined);
  refuseRealtime(api, (call) => (guard(call, 'request') ?? guard(call, 'response')) !== undefined);
}

/** Rejects realtime websockets, whose audio and text no policy checks. */
export function refuseRealtime(api: PluginApi, looks: (call: Call) => boolean = () => true): void {
  api.hook('prepare', {
    operations: ['realtime'],
    handler(call) {
      if (!looks(call)) return undefined;
      throw new GatewayError(
        'permission_denied',
        `The policy "${api.instance}" of this gateway cannot check a realtime websocket. Use /v1/chat/completions.`,
        { refusedBy: api.instance },
      );
    },
  });
}

/**
 * Rejects batches, whose responses are a file that no policy checks. `looks` returns true if the responses of a call
 * are checked; `why` describes what the policy does.
 */
export function refuseBatches(
  api: PluginApi,
  looks: (call: Call) => boolean = () => true,
  why = 'cannot check the responses of a batch',
): void {
  api.hook('prepare', {
    operations: ['batches'],
    handler(call) {
      if (!looks(call)) return undefined;
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
