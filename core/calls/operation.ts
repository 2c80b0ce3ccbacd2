import type { Operation, RequestOf, ResponseOf, Target } from '../contract/call.ts';
import { GatewayError } from '../contract/errors.ts';
import type { Attempt, CallResult, OperationDefinition, UpstreamAnswer } from '../contract/operation.ts';
import type { OperationContext } from '../contract/plugin.ts';
import type { HttpRequest, Offer } from '../contract/provider.ts';
import {
  codecCallOf,
  forgetRefused,
  MAX_RESPONSE_BYTES,
  parseResponse,
  readFailedAttempt,
  sendAttempt,
} from './attempt.ts';
import type { CallDeps, OperationParts } from './call-deps.ts';
import { callInitOf } from './call-init.ts';
import type { LiveCall } from './live-call.ts';
import { responseNotes } from './response-notes.ts';
import { endWithError, finishBeside, runCall, tryTargets } from './run-call.ts';
import { targetOfPath, targetsOfRequest } from './targets.ts';

/** A call of an operation that a plugin registered. Resolves when its first target has responded. */
export async function callOperation<O extends Operation>(
  deps: CallDeps,
  operation: O,
  request: RequestOf<O>,
  context: OperationContext,
): Promise<CallResult<O>> {
  const parts = deps.partsOf(operation);
  const { definition } = parts;
  if (!definition) throw new TypeError(`"${operation}" is called by api.chat`);
  const asked = {
    operation,
    request,
    stream: 'stream' in request && request.stream === true,
    ...findTargets(deps, parts, request, context),
  };
  return runCall(deps, asked, callInitOf(context), {
    async answered(call, { response, cost = 0, headers = {} }) {
      call.record.metered = { units: {}, cost };
      return respond(deps, call, { response, isStreaming: false, headers });
    },
    ask: async (call) =>
      respond(deps, call, await tryTargets(deps, call, (target) => askTarget(deps, call, parts, definition, target))),
  });
}

/** Where a call goes: as the caller of `api.call` says, or by the model that its request names. */
function findTargets(
  deps: CallDeps,
  { catalog }: OperationParts,
  request: object,
  { targets, requested }: OperationContext,
): { readonly targets: readonly Target[]; readonly requested?: string } {
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
}

async function askTarget(
  deps: CallDeps,
  call: LiveCall,
  { catalog, offers }: OperationParts,
  definition: OperationDefinition,
  target: Target,
): Promise<Responded> {
  const offer = offers.get(target.provider);
  if (!offer) throw new GatewayError('unsupported_provider', `There is no provider "${target.provider}".`);
  const model = catalog.find(target.provider, target.model);
  const work = new AttemptWork(deps, call, target, offer);
  const facts = { target, offer, model, price: catalog.priceOf(target, model) };
  try {
    const response = await definition.attempt({ ...facts, ...work.tools() } as Attempt);
    return { response, isStreaming: work.isStreaming, headers: work.headers() };
  } catch (error) {
    forgetRefused(call, error);
    throw error;
  }
}

/** What an operation works with on one target. */
class AttemptWork {
  isStreaming = false;
  readonly #deps: CallDeps;
  readonly #call: LiveCall;
  readonly #target: Target;
  readonly #offer: Offer;
  #dropped: readonly string[] = [];
  #upstream: UpstreamAnswer['headers'] = {};

  constructor(deps: CallDeps, call: LiveCall, target: Target, offer: Offer) {
    this.#deps = deps;
    this.#call = call;
    this.#target = target;
    this.#offer = offer;
  }

  async #send(http: HttpRequest): Promise<UpstreamAnswer> {
    const response = await sendAttempt(this.#deps, this.#call, this.#target, this.#offer, http);
    this.#dropped = http.dropped ?? [];
    this.#upstream = response.headers;
    return response;
  }

  tools(): Omit<Attempt, 'target' | 'offer' | 'model' | 'price'> {
    const call = this.#call;
    const { request } = call;
    const asked =
      'model' in request && request.model !== this.#target.model ? { ...request, model: this.#target.model } : request;
    return {
      call,
      request: asked,
      codecCall: codecCallOf(call, this.#target),
      abortSignal: call.signal,
      send: (http) => this.#send(http),
      sendForJson: async (http) => parseResponse(await (await this.#send(http)).readAll(MAX_RESPONSE_BYTES)),
      meter: (metered) => {
        call.record.metered = metered;
      },
      whileStreaming: (source, onEnd) => {
        this.isStreaming = true;
        return this.#passOn(source, onEnd);
      },
    };
  }

  headers(): Readonly<Record<string, string>> {
    const input = { dropped: this.#dropped, endpoint: this.#offer, upstream: this.#upstream };
    return responseNotes(this.#call, this.#target, input).headers();
  }

  async *#passOn<T>(source: AsyncIterable<T>, onEnd: () => void): AsyncGenerator<T, void, undefined> {
    const call = this.#call;
    try {
      yield* source;
      onEnd();
      finishBeside(this.#deps, call, 'ok');
    } catch (thrown) {
      onEnd();
      const error = call.signal.aborted ? thrown : readFailedAttempt(thrown, this.#target, this.#offer).error;
      throw await endWithError(this.#deps, call, error);
    } finally {
      onEnd();
      finishBeside(this.#deps, call, 'aborted');
    }
  }
}

async function respond<O extends Operation>(
  deps: CallDeps,
  call: LiveCall,
  { response, isStreaming, headers }: Responded,
): Promise<CallResult<O>> {
  const changed = call.hooks.receive ? await call.hooks.receive(call, response) : response;
  if (!isStreaming) finishBeside(deps, call, 'ok');
  return { response: changed as ResponseOf<O>, headers };
}
