import type { Operation, RequestOf, ResponseOf, Target } from '../../contract/call.ts';
import { GatewayError } from '../../contract/errors.ts';
import type { Answered } from '../../contract/hooks.ts';
import type { Attempt, CallResult, Metered, ReportedUsage, SentBy } from '../../contract/operation.ts';
import type { OperationContext } from '../../contract/plugin.ts';
import { reportedCost } from '../../contract/prices.ts';
import type { HttpRequest, Offer } from '../../contract/provider.ts';
import type { UpstreamResponse } from '../../egress/upstream.ts';
import { codecCallOf, forgetRefused, readFailedAttempt, readJson, responseHeaders, sendAttempt } from './attempt.ts';
import { Call } from './call.ts';
import type { CallDeps } from './call-deps.ts';
import { reportBroken, tryTargets } from './failover.ts';
import { estimateAt } from './meter.ts';
import { isPossible, priceUsage } from './operation-usage.ts';
import { endWithError, runCall } from './run-call.ts';

/** Calls an operation that a plugin registered. Resolves when its first target has responded. */
export async function callOperation<O extends Operation>(
  deps: CallDeps,
  operation: O,
  request: RequestOf<O>,
  context: OperationContext,
): Promise<CallResult<O>> {
  if (!deps.partsOf(operation).definition) throw new TypeError(`"${operation}" is core's own: api.chat calls a model`);
  return runCall(deps, new Call(deps, operation, request, context), respond<O>);
}

async function respond<O extends Operation>(
  deps: CallDeps,
  call: Call,
  early: Answered | undefined,
): Promise<CallResult<O>> {
  const responded = early ? takeHookResponse(call, early) : await tryTargets(deps, call, callTarget);
  const { response, headers } = responded;
  let changed: object = response;
  try {
    if (call.hooks.receive) changed = await call.hooks.receive(call, response);
  } catch (error) {
    responded.destroy?.();
    throw error;
  }
  if (!call.record.goesOn) call.finish('ok');
  return { response: changed as ResponseOf<O>, headers };
}

interface Responded extends CallResult<Operation> {
  /** Closes the connection to a provider whose response is not read. */
  destroy?(): void;
}

function takeHookResponse(call: Call, { response, cost = 0, headers = {} }: Answered): Responded {
  call.record.metered = { units: {}, cost };
  return { response, headers };
}

async function callTarget(deps: CallDeps, call: Call, target: Target): Promise<Responded> {
  const { definition } = call.parts;
  const place = call.at(target);
  const { offer, model } = place;
  if (!offer) throw new GatewayError('unsupported_provider', `The provider "${target.provider}" does not exist.`);
  if (!definition) throw new TypeError(`the operation "${call.operation}" has no definition`);
  const work = new AttemptWork(deps, call, target, offer);
  const facts = { target, offer, model, price: place.priceAt() };
  const { sentTo, metered, target: before } = call.record;
  const sentBefore = sentTo.length;
  try {
    const response = await definition.attempt({ ...facts, ...work.tools() } as Attempt);
    return { response, headers: work.headers(), destroy: () => work.destroy() };
  } catch (error) {
    work.destroy();
    // An attempt owes nothing if it was not sent, or was rejected before its operation metered anything. Earlier ones
    // still do.
    if (sentTo.length === sentBefore) call.record.metered = metered;
    else if (call.record.metered === metered) forgetRefused(call, error);
    // Costs that an earlier target has metered are owed to that target.
    if (metered && call.record.metered === metered) call.record.target = before;
    throw error;
  }
}

/** Tools of an operation for one target. */
class AttemptWork {
  readonly #deps: CallDeps;
  readonly #call: Call;
  readonly #target: Target;
  readonly #offer: Offer;
  #upstream: UpstreamResponse | undefined;

  constructor(deps: CallDeps, call: Call, target: Target, offer: Offer) {
    this.#deps = deps;
    this.#call = call;
    this.#target = target;
    this.#offer = offer;
  }

  async #send(http: HttpRequest, by?: SentBy): Promise<UpstreamResponse> {
    this.#call.record.dropped = http.dropped?.length ? http.dropped : undefined;
    const response = await sendAttempt(this.#deps, this.#call, this.#target, this.#offer, http, by);
    this.#call.record.providerHeaders = response.headers;
    this.#upstream = response;
    return response;
  }

  tools(): Omit<Attempt, 'target' | 'offer' | 'model' | 'price'> {
    const call = this.#call;
    const { request } = call;
    const requestOfTarget =
      'model' in request && request.model !== this.#target.model ? { ...request, model: this.#target.model } : request;
    return {
      call,
      request: requestOfTarget,
      codecCall: codecCallOf(call, this.#target),
      abortSignal: call.signal,
      send: (http, by) => this.#send(http, by),
      sendForJson: async (http) => readJson(await this.#send(http)),
      bill: (reported, performed = requestOfTarget) => this.#bill(reported, performed),
      meter: (metered) => {
        call.record.metered = this.#charged(metered);
      },
      isChecked: call.hooks.receive !== undefined && call.texts?.response?.length !== 0,
      whileStreaming: (source, onEnd) => {
        call.record.goesOn = true;
        return this.#passOn(source, onEnd);
      },
    };
  }

  #bill(reported: ReportedUsage | undefined, request: RequestOf<Operation>): void {
    const { definition } = this.#call.parts;
    if (!definition) return;
    const place = this.#call.at(this.#target);
    const price = place.priceAt();
    const most = definition.maxUsage(request, { target: this.#target, offer: this.#offer, model: place.model, price });
    this.#call.record.metered = this.#charged(priceUsage(most, reported, price));
  }

  #charged({ providerCost, ...metered }: Metered): Metered {
    if (!isPossible(metered)) return { ...estimateAt(this.#deps, this.#call, this.#target), estimated: true };
    const { hasOwnPrice } = this.#call.at(this.#target);
    if (providerCost === undefined || (metered.estimated && providerCost === 0) || hasOwnPrice) return metered;
    const cost = reportedCost({ cost: providerCost });
    return cost === undefined
      ? metered
      : { ...metered, cost, parts: [{ unit: 'vendor_charge', quantity: 1, usd: providerCost }] };
  }

  headers(): Readonly<Record<string, string>> {
    const headers = responseHeaders(this.#call);
    // The cost of a running response is not known yet.
    if (this.#call.record.goesOn) delete headers['x-tollgate-cost-usd'];
    return headers;
  }

  destroy(): void {
    this.#upstream?.destroy();
  }

  /** Reports the interruption of a response like other failures. */
  #brokenBy(thrown: unknown): GatewayError {
    const failed = readFailedAttempt(thrown, this.#target, this.#offer);
    reportBroken(this.#deps, this.#call, this.#target, failed);
    return failed.error;
  }

  async *#passOn<T>(source: AsyncIterable<T>, onEnd: () => void): AsyncGenerator<T, void, undefined> {
    const call = this.#call;
    try {
      yield* source;
      onEnd();
      call.finish('ok');
    } catch (thrown) {
      onEnd();
      throw await endWithError(this.#deps, call, call.signal.aborted ? thrown : this.#brokenBy(thrown));
    } finally {
      onEnd();
      call.finish('aborted');
    }
  }
}
