import type { CallClient, Target } from '../../contract/call.ts';
import type { ChatRequest } from '../../contract/chat.ts';
import { normalChat } from '../../contract/chat-form.ts';
import type {
  DialectContext,
  DialectDefinition,
  DialectInput,
  DialectNeed,
  DialectRequest,
  NativeChange,
} from '../../contract/dialect.ts';
import { GatewayError, isGatewayError, rewordError } from '../../contract/errors.ts';
import { bodyFactsOf, factsOf, type MediaAddress } from '../../contract/facts.ts';
import type { HttpRequest, NativeRow } from '../../contract/provider.ts';
import type { RouteState } from '../../contract/route.ts';
import { attribute } from '../plugins/attribution.ts';
import type { Attributed } from '../plugins/registry.ts';
import type { CallDeps } from './call-deps.ts';
import { isAtCallersPlace } from './error-marks.ts';
import { createId } from './ids.ts';
import { placeInBody } from './native-texts.ts';
import { shareOwnToken } from './own-token.ts';
import { deploymentOf } from './seals.ts';

/** Maximum total length of the caller's headers that a provider may receive, in characters. */
const MAX_PASSED = 4096;

const NO_NAMES: readonly never[] = Object.freeze([]);
const NO_HEADERS: Readonly<Record<string, string>> = Object.freeze({});

/**
 * Caller's side of a chat that came over HTTP: its format, body and headers. Hooks see it as `call.client`, the
 * dialect's writers as their context. A vendor that speaks the format gets the body by {@link requestFor}.
 */
export class InboundChat implements CallClient, DialectContext {
  /** Name of the dialect. */
  readonly dialect: string;
  /** The dialect, with its plugin. */
  readonly format: Attributed<DialectDefinition>;
  /** True if a vendor that speaks the format may get the caller's own body; codecs write a canonical one as it is. */
  readonly isNative: boolean;
  /** Name of the providers' rows for this endpoint. */
  readonly row: string;
  readonly input: DialectInput;
  readonly body: unknown;
  readonly requestId: string;
  /** Unix seconds. */
  readonly created: number;
  /** Canonical request as the dialect read it. */
  readonly request: ChatRequest;
  /** Provider that the caller named separately from the model. */
  readonly provider: string | undefined;
  readonly needs: readonly DialectNeed[];
  /** URLs in the caller's body, if it may be forwarded unchanged. */
  readonly media: readonly MediaAddress[];
  /** Fields of the body that the canonical request cannot express. */
  readonly dropped: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  readonly cacheControl: string | undefined;
  readonly demandsLimit: boolean | undefined;
  readonly ownSubscription: boolean;
  readonly #deps: CallDeps;
  readonly #account: string;
  readonly #placeOf: DialectRequest['place'];
  #id: string | undefined;
  #responder: Target | undefined;
  #omitted: Set<string> | undefined;

  /**
   * Reads a request. Throws the error of its dialect, with the path in the caller's body. `http`: the request that
   * brought it, maybe with a token of the caller's own.
   */
  constructor(
    deps: CallDeps,
    dialect: Attributed<DialectDefinition>,
    input: DialectInput,
    { principal, requestId }: Pick<RouteState, 'principal' | 'requestId'>,
    http: object,
  ) {
    const { name, native, demandsLimit } = dialect.value;
    const { request, provider, needs = NO_NAMES, dropped = NO_NAMES, place } = readRequest(dialect, input);
    const facts = native?.effects && bodyFactsOf(input.body, native.effects);
    this.dialect = name;
    this.format = dialect;
    this.isNative = native !== undefined;
    this.row = input.route.native ?? name;
    this.input = input;
    this.body = input.body;
    this.requestId = requestId;
    this.created = Math.floor(Date.now() / 1000);
    this.request = request;
    this.provider = provider;
    this.needs = facts ? joinNeeds(needs, facts.needs) : needs;
    this.media = facts?.media ?? NO_NAMES;
    this.dropped = dropped;
    this.headers = native?.headers ? passedHeaders(native.headers, input.headers) : NO_HEADERS;
    this.cacheControl = input.headers['cache-control']?.toString();
    this.demandsLimit = demandsLimit;
    this.ownSubscription = shareOwnToken(http, this);
    this.#deps = deps;
    this.#account = principal.account;
    this.#placeOf = place;
    Object.freeze(this);
  }

  get follows(): Target | undefined {
    return this.input.follows;
  }

  get isIdempotent(): boolean {
    return Boolean(this.input.headers['idempotency-key']);
  }

  get id(): string {
    this.#id ??= createId('');
    return this.#id;
  }

  get estimatedInputTokens(): number {
    return factsOf(this.request).inputTokens;
  }

  /** Sets the target that responds, whose deployment can read what the response seals. */
  respondFrom(target: Target | undefined): void {
    this.#responder = target;
  }

  // Dialects may detach these functions from the object, so each is bound when it is read.
  get responder(): () => Target | undefined {
    return () => this.#responder;
  }

  get omit(): (what: string) => void {
    return (what) => {
      this.#omitted ??= new Set();
      if (this.#omitted.has(what)) return;
      this.#omitted.add(what);
      this.#deps.log.info(
        { request_id: this.requestId, left_out: what },
        'the response has parts that its format does not support',
      );
    };
  }

  get seal(): (data: string) => string {
    return (data) => {
      const { provider: instance = '' } = this.#responder ?? {};
      const deployment = deploymentOf(this.#deps.partsOf('chat').offers.get(instance), instance);
      return this.#deps.seals.seal(this.#account, deployment, data);
    };
  }

  /** Parts of the response that the caller's format cannot express. */
  get omitted(): readonly string[] {
    return this.#omitted ? [...this.#omitted] : NO_NAMES;
  }

  /** Request with the caller's own body, to a vendor that speaks the format; undefined if it has to be translated. */
  requestFor(row: NativeRow, change: NativeChange): HttpRequest | undefined {
    if (!isPatchable(change.before, change.after)) return undefined;
    const written = this.format.value.native?.patch(this.input.body, change);
    if (!written) return undefined;
    const headers = row.headers?.(this.headers) ?? {};
    const own = row.body?.(written.body);
    const dropped = [...(written.dropped ?? []), ...(own?.dropped ?? [])];
    return { path: row.path, headers, ...written, ...own, ...(dropped.length > 0 && { dropped }) };
  }

  /** Returns an error with its path in the caller's body. A call ends in a GatewayError only, so other errors come from the dialect. */
  locate(thrown: unknown): unknown {
    return atCallersPlace(thrown, this.format.owner, this.#placeOf);
  }
}

/** Reads a request in its normal form, which hooks, checks and vendors all receive. */
function readRequest({ owner, value: dialect }: Attributed<DialectDefinition>, input: DialectInput): DialectRequest {
  let read: DialectRequest;
  try {
    read = dialect.read(input);
  } catch (thrown) {
    throw attribute(thrown, owner);
  }
  factsOf(read.request, true);
  try {
    const request = normalChat(read.request);
    factsOf(request, true);
    return request === read.request ? read : { ...read, request };
  } catch (thrown) {
    throw atCallersPlace(thrown, owner, read.place);
  }
}

function atCallersPlace(thrown: unknown, owner: string, placeOf: DialectRequest['place']): unknown {
  if (!isGatewayError(thrown)) return attribute(thrown, owner);
  if (thrown.param === undefined || isAtCallersPlace(thrown)) return thrown;
  const param = placeInBody(thrown.param) ?? placeOf?.(thrown.param) ?? thrown.param;
  if (param === thrown.param) return thrown;
  return rewordError(thrown, { message: thrown.message.replaceAll(thrown.param, param), param });
}

/** Headers of a request that a provider may receive. */
function passedHeaders(names: readonly string[], sent: DialectInput['headers']): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {};
  let length = 0;
  for (const name of names) {
    const value = sent[name];
    if (value === undefined) continue;
    headers[name] = [value].flat().join(',');
    length += headers[name].length;
  }
  if (length > MAX_PASSED)
    throw new GatewayError('headers_too_large', `The headers ${Object.keys(headers).join(', ')} are over 4 KiB.`);
  return headers;
}

/** Fields in which the request may differ from what the dialect read without leaving the native lane. */
const PATCHABLE: ReadonlySet<string> = new Set(
  'model max_completion_tokens max_tokens temperature top_p stop user metadata service_tier reasoning_effort dialect_fields'.split(
    ' ',
  ),
);

/** Lists that may have grown at either end. */
const GROWING: ReadonlySet<string> = new Set(['messages', 'tools']);

/**
 * Returns whether a dialect's `patch` can express the changes of a request. Fields are compared by identity, since
 * everything that hooks get is frozen.
 */
function isPatchable(before: ChatRequest, after: ChatRequest): boolean {
  if (before === after) return true;
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].every(
    (field) =>
      before[field] === after[field] ||
      PATCHABLE.has(field) ||
      (GROWING.has(field) && hasGrown(before[field] ?? [], after[field] ?? [])),
  );
}

/**
 * Returns whether `after` is `before` with elements added at the start or the end. Old elements must be the same
 * objects.
 */
function hasGrown(before: unknown, after: unknown): boolean {
  if (!Array.isArray(before) || !Array.isArray(after) || after.length < before.length) return false;
  const start = before.length === 0 ? 0 : after.indexOf(before[0]);
  return start >= 0 && before.every((element, at) => element === after[start + at]);
}

/** Adds the needs found in a body to those that its dialect reported, without duplicates. */
function joinNeeds(needs: readonly DialectNeed[], found: readonly DialectNeed[]): readonly DialectNeed[] {
  const isNew = (need: DialectNeed): boolean =>
    !needs.some((known) => known.kind === need.kind && isWithin(need.param, known.param));
  return found.length === 0 ? needs : [...needs, ...found.filter(isNew)];
}

/** Returns whether a path equals another one or is below it. */
function isWithin(path: string, other: string): boolean {
  return path.startsWith(other) && /^(?:$|[.[])/.test(path.slice(other.length));
}
