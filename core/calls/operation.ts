import type { Operation, RequestOf, ResponseOf, Target } from '../../contract/call.ts';
import { GatewayError } from '../../contract/errors.ts';
import type { Attempt, CallResult, Metered, OperationDefinition, SentBy } from '../../contract/operation.ts';
import type { OperationContext } from '../../contract/plugin.ts';
import { MAX_TOKENS, reportedCost } from '../../contract/prices.ts';
import type { HttpRequest, Offer } from '../../contract/provider.ts';
import type { UpstreamResponse } from '../../egress/upstream.ts';
import { targetOfPath, targetsOfRequest } from '../../models/catalog.ts';
import { codecCallOf, forgetRefused, readFailedAttempt, readJson, responseNotes, sendAttempt } from './attempt.ts';
import type { Call, CallInput, Destination } from './call.ts';
import type { CallDeps, OperationParts } from './call-deps.ts';
import { reportBroken, tryTargets } from './failover.ts';
import { estimateAt } from './meter.ts';
import { endWithError, runCall } from './run-call.ts';

/** A call of an operation that a plugin registered. Resolves when its first target has responded. */
export async function callOperation<O extends Operation>(
  deps: CallDeps,
  operation: O,
  request: RequestOf<O>,
  context: OperationContext,
): Promise<CallResult<O>> {
  const parts = deps.partsOf(operation);
  const { definition } = parts;
  if (!definition) throw new TypeError(`"${operation}" is core's own: api.chat calls a model`);
  const input: CallInput = {
    operation,
    request,
    stream: 'stream' in request && request.stream === true,
    caller: context,
    findTargets: () => findTargets(deps, parts, request, context),
  };
  return runCall(deps, input, {
    respondEarly(call, { response, cost = 0, headers = {} }): Responded {
      call.record.metered = { units: {}, cost };
      return { response, isStreaming: false, headers, destroy() {} };
    },
    callTargets: (_deps, call) =>
      tryTargets(deps, call, (_, own, target) => callTarget(deps, own, parts, definition, target)),
    respond: (_deps, call, responded) => respond<O>(call, responded),
  });
}

/** Where a call goes: as the caller of `api.models.call` says, or by the model that its request names. */
function findTargets(
  deps: CallDeps,
  { catalog }: OperationParts,
  request: object,
  { targets, requested }: OperationContext,
): Destination {
  if (targets) {
    const known = targets.map(({ provider, model }) => targetOfPath(catalog, provider, model));
    return { targets: known, ...(requested !== undefined && { requested }) };
  }
  const model = 'model' in request && typeof request.model === 'string' ? request.model : '';
  return targetsOfRequest({ catalog, aliases: deps.aliases }, model);
}

interface Responded {
  readonly response: ResponseOf<Operation>;
  /** Whether the response goes on after the call: then its end ends the call. */
  readonly isStreaming: boolean;
  readonly headers: Readonly<Record<string, string>>;
  /** Hangs up on a provider whose response is not read. */
  destroy(): void;
}

async function callTarget(
  deps: CallDeps,
  call: Call,
  { catalog, offers }: OperationParts,
  definition: OperationDefinition,
  target: Target,
): Promise<Responded> {
  const offer = offers.get(target.provider);
  if (!offer) throw new GatewayError('unsupported_provider', `The provider "${target.provider}" does not exist.`);
  const model = catalog.find(target.provider, target.model);
  const work = new AttemptWork(deps, call, target, offer);
  const facts = { target, offer, model, price: catalog.priceOf(target, model) };
  const { sentTo, metered, target: before } = call.record;
  const sentBefore = sentTo.length;
  try {
    const response = await definition.attempt({ ...facts, ...work.tools() } as Attempt);
    return { response, isStreaming: work.isStreaming, headers: work.headers(), destroy: () => work.destroy() };
  } catch (error) {
    work.destroy();
    // An attempt that was not sent, or was refused before its operation metered anything, owes nothing; earlier ones still do.
    if (sentTo.length === sentBefore) call.record.metered = metered;
    else if (call.record.metered === metered) forgetRefused(call, error);
    // What an earlier target has metered is owed to that one.
    if (metered && call.record.metered === metered) call.record.target = before;
    throw error;
  }
}

/** What an operation works with on one target. */
class AttemptWork {
  isStreaming = false;
  readonly #deps: CallDeps;
  readonly #call: Call;
  readonly #target: Target;
  readonly #offer: Offer;
  #dropped: readonly string[] = [];
  #upstream: UpstreamResponse | undefined;

  constructor(deps: CallDeps, call: Call, target: Target, offer: Offer) {
    this.#deps = deps;
    this.#call = call;
    this.#target = target;
    this.#offer = offer;
  }

  async #send(http: HttpRequest, by?: SentBy): Promise<UpstreamResponse> {
    const response = await sendAttempt(this.#deps, this.#call, this.#target, this.#offer, http, by);
    this.#dropped = http.dropped ?? [];
    this.#call.record.dropped = http.dropped?.length ? http.dropped : undefined;
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
      meter: (metered) => {
        call.record.metered = this.#charged(metered);
      },
      whileStreaming: (source, onEnd) => {
        this.isStreaming = true;
        return this.#passOn(source, onEnd);
      },
    };
  }

  #charged({ providerCost, ...metered }: Metered): Metered {
    if (!Object.values(metered.units).every(isAmount))
      return { ...estimateAt(this.#deps, this.#call, this.#target), estimated: true };
    const { catalog } = this.#deps.partsOf(this.#call.operation);
    if (providerCost === undefined || (metered.estimated && providerCost === 0) || catalog.hasOwnPrice(this.#target))
      return metered;
    const cost = reportedCost({ cost: providerCost });
    return cost === undefined
      ? metered
      : { ...metered, cost, parts: [{ unit: 'vendor_charge', quantity: 1, usd: providerCost }] };
  }

  headers(): Readonly<Record<string, string>> {
    const input = { dropped: this.#dropped, endpoint: this.#offer, upstream: this.#upstream?.headers ?? {} };
    const headers = responseNotes(this.#call, this.#target, input).headers();
    // What goes on has not come to its cost yet.
    if (this.isStreaming) delete headers['x-tollgate-cost-usd'];
    return headers;
  }

  destroy(): void {
    this.#upstream?.destroy();
  }

  /** What breaks a response off after it began is seen as other failures are. */
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

/** Whether a reported amount is possible: a vendor that reports more than any call has reported nothing. */
function isAmount(amount: number | undefined): boolean {
  return amount === undefined || (amount >= 0 && amount <= MAX_TOKENS);
}

async function respond<O extends Operation>(
  call: Call,
  { response, isStreaming, headers, destroy }: Responded,
): Promise<CallResult<O>> {
  let changed: object = response;
  try {
    if (call.hooks.receive) changed = await call.hooks.receive(call, response);
  } catch (error) {
    destroy();
    throw error;
  }
  if (!isStreaming) call.finish('ok');
  return { response: changed as ResponseOf<O>, headers };
}
