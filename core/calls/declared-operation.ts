import type { Operation, RequestOf, ResponseOf } from '../../contract/call.ts';
import { GatewayError } from '../../contract/errors.ts';
import { isObject } from '../../contract/json.ts';
import type {
  Attempt,
  JsonOffer,
  Metered,
  OperationDefinition,
  OperationUsage,
  TargetFacts,
} from '../../contract/operation.ts';
import type { Offer } from '../../contract/provider.ts';
import { isPossible, priceMaxUsage } from './operation-usage.ts';

/** Definition of an operation with the defaults of everything that its plugin left out. */
export type WholeOperation<O extends Operation = Operation> = Pick<
  OperationDefinition<O>,
  'name' | 'request' | 'texts'
> &
  Required<Pick<OperationDefinition<O>, 'maxUsage' | 'estimate' | 'attempt' | 'isResponse'>>;

/** Codec of an operation that declares none of its own: JSON in, JSON out. */
type AnyJsonOffer = JsonOffer<object, never>;

/** Completes a definition. `isResponse` checks its `response` schema. */
export function completeOperation<O extends Operation>(
  definition: OperationDefinition<O>,
  matches: (value: unknown) => boolean = isObject,
): WholeOperation<O> {
  const isResponse = (value: unknown): boolean =>
    definition.isResponse ? definition.isResponse(value) : isObject(value) && matches(value);
  // A definition may be an instance of a class, so its methods are called on it.
  return Object.freeze({
    name: definition.name,
    request: definition.request,
    texts: definition.texts,
    maxUsage: (request, facts) => definition.maxUsage?.(request, facts) ?? NO_USAGE,
    estimate: (request, facts) => estimate(definition, request, facts),
    attempt: (attempt) =>
      definition.attempt ? definition.attempt(attempt) : attemptJson(definition, attempt, isResponse),
    isResponse: isResponse as WholeOperation<O>['isResponse'],
  } satisfies WholeOperation<O>);
}

const NO_USAGE: OperationUsage = Object.freeze({});

function estimate<O extends Operation>(
  definition: OperationDefinition<O>,
  request: RequestOf<O>,
  facts: TargetFacts<O>,
): Metered {
  const most = definition.estimate
    ? definition.estimate(request, facts)
    : priceMaxUsage(definition.maxUsage?.(request, facts) ?? NO_USAGE, facts.price);
  // An impossible cost is unknown, which is never free.
  return isPossible(most) ? most : { ...most, units: {}, cost: undefined };
}

/** Calls a target by the codec of its offer. */
async function attemptJson<O extends Operation>(
  definition: OperationDefinition<O>,
  { request, offer, codecCall, sendForJson, bill }: Attempt<O>,
  isResponse: (value: unknown) => boolean,
): Promise<ResponseOf<O>> {
  const { codec } = offer as Offer as AnyJsonOffer;
  const body = await sendForJson(codec.request(request, codecCall));
  const response = codec.response(body, request, codecCall);
  if (!isResponse(response))
    throw new GatewayError('provider_invalid_response', 'The provider returned an invalid response.');
  bill(definition.readUsage?.(response, request));
  return response;
}
