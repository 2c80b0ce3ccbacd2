import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import {
  type Answered,
  type AssistantMessage,
  type Call,
  type ChatChoice,
  type ChatChunk,
  type ChatResponse,
  type ChunkChoice,
  definePlugin,
  formatUsd,
  type HookFunctions,
  isObject,
  type NativeFinish,
  type Outcome,
  type Principal,
  parseDuration,
  parseSize,
  type ToolCall,
  type ToolCallDelta,
  type Usage,
} from '../../../contract/index.ts';

/** Fields of a delta that can be joined; a stream with others is not cached. */
const KNOWN: ReadonlySet<string> = new Set(
  'role content refusal reasoning_content reasoning_details annotations tool_calls'.split(' '),
);

/** Choice of a stream so far. */
interface JoinedChoice {
  content: string | null;
  refusal: string | null;
  reasoning: string | undefined;
  readonly details: NonNullable<AssistantMessage['reasoning_details']>[number][];
  readonly annotations: NonNullable<AssistantMessage['annotations']>[number][];
  readonly calls: Map<number, { id: string; name: string; text: string; more: object }>;
  finish: ChatChoice['finish_reason'] | undefined;
  native: NativeFinish | undefined;
}

/** Joins the chunks of a stream into a response. */
interface ChunkJoiner {
  push(chunk: ChatChunk): void;
  /** Undefined if the stream did not end, or has fields that cannot be joined. */
  response(): ChatResponse | undefined;
}

function createChunkJoiner(): ChunkJoiner {
  const choices = new Map<number, JoinedChoice>();
  let head: Pick<ChatChunk, 'id' | 'created' | 'model'> | undefined;
  let usage: Usage | undefined;
  let isKnown = true;
  const add = (choice: ChunkChoice): void => {
    const known = choices.get(choice.index) ?? emptyChoice();
    choices.set(choice.index, known);
    const hasOther = Object.entries(choice.delta).some(([name, value]) => !KNOWN.has(name) && value !== null);
    if (hasOther || (choice.logprobs ?? null) !== null) isKnown = false;
    addDelta(known, choice);
  };
  return {
    push({ id, created, model, choices: parts, usage: reported }) {
      head ??= { id, created, model };
      usage = reported ?? usage;
      for (const choice of parts) add(choice);
    },
    response() {
      const joined = [...choices]
        .sort(([a], [b]) => a - b)
        .flatMap(([index, choice]) => joinChoice(index, choice) ?? []);
      if (!head || !isKnown || joined.length === 0 || joined.length < choices.size) return undefined;
      return { ...head, object: 'chat.completion', choices: joined, ...(usage && { usage }) };
    },
  };
}

function emptyChoice(): JoinedChoice {
  return {
    content: null,
    refusal: null,
    reasoning: undefined,
    finish: undefined,
    native: undefined,
    details: [],
    annotations: [],
    calls: new Map(),
  };
}

function addDelta(choice: JoinedChoice, { delta, finish_reason, finish }: ChunkChoice): void {
  const { content, refusal, reasoning_content, reasoning_details = [], annotations = [], tool_calls = [] } = delta;
  if (typeof content === 'string') choice.content = (choice.content ?? '') + content;
  if (typeof refusal === 'string') choice.refusal = (choice.refusal ?? '') + refusal;
  if (typeof reasoning_content === 'string') choice.reasoning = (choice.reasoning ?? '') + reasoning_content;
  choice.details.push(...reasoning_details);
  choice.annotations.push(...annotations);
  for (const call of tool_calls) addCall(choice, call);
  choice.finish = finish_reason ?? choice.finish;
  choice.native = finish ?? choice.native;
}

function addCall({ calls }: JoinedChoice, { index, id, type: _type, function: part, ...more }: ToolCallDelta): void {
  const known = calls.get(index) ?? { id: '', name: '', text: '', more: {} };
  calls.set(index, {
    id: id ?? known.id,
    name: known.name + (part?.name ?? ''),
    text: known.text + (part?.arguments ?? ''),
    more: { ...known.more, ...more },
  });
}

function joinChoice(index: number, choice: JoinedChoice): ChatChoice | undefined {
  const { content, refusal, reasoning, details, annotations, calls, finish, native } = choice;
  if (!finish) return undefined;
  const tools = [...calls]
    .sort(([a], [b]) => a - b)
    .map(
      ([, { id, name, text, more }]): ToolCall => ({
        ...more,
        id,
        type: 'function',
        function: { name, arguments: text },
      }),
    );
  const message: AssistantMessage = {
    role: 'assistant',
    content,
    refusal,
    ...(reasoning !== undefined && { reasoning_content: reasoning }),
    ...(details.length > 0 && { reasoning_details: details }),
    ...(annotations.length > 0 && { annotations }),
    ...(tools.length > 0 && { tool_calls: tools }),
  };
  return { index, message, finish_reason: finish, ...(native && { finish: native }), logprobs: null };
}

/** Callers that share a cached response. */
type SharedBy = 'user' | 'account' | 'everyone';

/** Fields that affect the form of a response, not its content. */
const MANNER: ReadonlySet<string> = new Set(['stream', 'stream_options']);

/**
 * Key of a request. It covers the callers that may share it, the client's format, the headers that a provider sees, and
 * the targets. It also covers every field of the request, after hooks and as sent. Two requests match only if all of
 * these are equal, never by similarity.
 */
function requestKey({ principal, client, targets, request }: Call<'chat'>, sharedBy: SharedBy): string {
  const { dialect, headers, body } = client ?? {};
  const facts = [ownerOf(principal, sharedBy), dialect, headers, targets, withoutManner(request), withoutManner(body)];
  return createHash('sha256')
    .update(JSON.stringify(sortKeys(facts)))
    .digest('base64url');
}

function ownerOf({ account, userId }: Principal, sharedBy: SharedBy): readonly string[] {
  if (sharedBy === 'everyone') return [];
  return sharedBy === 'account' ? [account] : [account, userId];
}

function withoutManner(request: unknown): object {
  if (!isObject(request)) return {};
  return Object.fromEntries(Object.entries(request).filter(([field, value]) => !MANNER.has(field) && value !== null));
}

/** Sorts the keys of all objects: clients write equal values in different orders. */
function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (typeof value !== 'object' || value === null) return value ?? null;
  const entries = Object.entries(value).filter(([, member]) => member !== undefined);
  return Object.fromEntries(
    entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, member]) => [name, sortKeys(member)]),
  );
}

/** Cached response. */
interface CachedResponse {
  readonly response: ChatResponse;
  /** Cost of the original call in nano-dollars; undefined if unknown. */
  readonly cost: number | undefined;
  /** Unix milliseconds. */
  readonly keptAt: number;
}

interface ResponseCache {
  find(key: string): CachedResponse | undefined;
  /** Stores the response, charged to the storage of the call's account. */
  keep(account: string, key: string, kept: CachedResponse): void;
}

interface CacheBounds {
  readonly ttlMs: number;
  readonly maxBytes: number;
  readonly maxResponseBytes: number;
}

/** Share of the cache that one account may use. */
const ACCOUNT_SHARE = 1 / 2;

/**
 * Caches responses in the memory of this process, as text, so that their size is known and they cannot be modified. An
 * account that has used its share evicts its own responses, the least recently stored first.
 */
function createResponseCache({ ttlMs, maxBytes, maxResponseBytes }: CacheBounds): ResponseCache {
  /** Keys of each account with their bytes, the least recently stored first. */
  const booked = new Map<string, Map<string, number>>();
  const release = ({ account }: BookedText, key: string): void => {
    const own = booked.get(account);
    own?.delete(key);
    if (own?.size === 0) booked.delete(account);
  };
  const texts = new LRUCache<string, BookedText>({
    ttl: ttlMs,
    maxSize: maxBytes,
    maxEntrySize: Math.min(maxResponseBytes, maxBytes * ACCOUNT_SHARE),
    sizeCalculation: ({ bytes }) => bytes,
    dispose: release,
  });
  const makeRoom = (account: string): void => {
    const own = booked.get(account) ?? new Map<string, number>();
    let sum = [...own.values()].reduce((total, bytes) => total + bytes, 0);
    for (const [key, bytes] of own) {
      if (sum <= maxBytes * ACCOUNT_SHARE) return;
      sum -= bytes;
      texts.delete(key);
    }
  };
  return {
    find(key) {
      const text = texts.get(key)?.text;
      return text === undefined ? undefined : (JSON.parse(text) as CachedResponse);
    },
    keep(account, key, kept) {
      const text = JSON.stringify(kept);
      const bytes = Buffer.byteLength(text);
      texts.set(key, { account, text, bytes });
      if (!texts.has(key)) return;
      booked.set(account, (booked.get(account) ?? new Map<string, number>()).set(key, bytes));
      makeRoom(account);
    },
  };
}

/** Response as text, with its account. */
interface BookedText {
  readonly account: string;
  readonly text: string;
  readonly bytes: number;
}

interface CacheRules {
  readonly sharedBy: SharedBy;
  /** True if only requests count that ask for a deterministic response. */
  readonly isDeterministicOnly: boolean;
}

/** Call whose response may be cached. */
interface Candidate {
  readonly key: string;
  /** Response of the provider; undefined before, and if it must not be cached. */
  response(): ChatResponse | undefined;
}

type ChatHooks = Pick<HookFunctions<'chat'>, 'answer' | 'receive' | 'stream' | 'finish'>;

const CANDIDATE = Symbol('cache.candidate');

/**
 * Hooks that look a request up, collect the provider's response to a missing one, and cache it after the call
 * succeeded.
 */
function cachePolicy(cache: ResponseCache, rules: CacheRules): ChatHooks {
  const candidateOf = ({ state }: Call): Candidate | undefined => state.get(CANDIDATE) as Candidate | undefined;
  return {
    answer(call) {
      if (!isCacheable(call, rules)) return undefined;
      const key = requestKey(call, rules.sharedBy);
      const kept = isFreshWanted(call) ? undefined : cache.find(key);
      if (!kept) call.state.set(CANDIDATE, { key, response: () => undefined } satisfies Candidate);
      return kept && giveAgain(call, kept);
    },
    receive(call, response) {
      const candidate = candidateOf(call);
      if (candidate) call.state.set(CANDIDATE, { ...candidate, response: () => response } satisfies Candidate);
      return undefined;
    },
    stream(call) {
      const candidate = candidateOf(call);
      if (!candidate) return undefined;
      const joiner = createChunkJoiner();
      call.state.set(CANDIDATE, { ...candidate, response: joiner.response } satisfies Candidate);
      return {
        observes: true,
        push(chunk) {
          joiner.push(chunk);
          return [];
        },
      };
    },
    finish(call, outcome: Outcome) {
      const candidate = candidateOf(call);
      if (!candidate || outcome.status !== 'ok' || !outcome.sent) return;
      const response = candidate.response();
      if (response && isKeepable(response))
        cache.keep(call.principal.account, candidate.key, { response, cost: outcome.cost, keptAt: Date.now() });
    },
  };
}

/** Converts a cached response to one of this call. */
function giveAgain(
  call: Call,
  { response, cost, keptAt: storedAt }: NonNullable<ReturnType<ResponseCache['find']>>,
): Answered<'chat'> {
  const now = Date.now();
  const saved = Math.max(0, Math.round(cost ?? 0));
  return {
    response: { ...response, id: call.id, created: Math.floor(now / 1000) },
    saved,
    headers: {
      'x-tollgate-cache': 'hit',
      ...(cost !== undefined && { 'x-tollgate-saved-usd': formatUsd(saved) }),
      age: String(Math.max(0, Math.floor((now - storedAt) / 1000))),
    },
  };
}

function isCacheable({ client, request }: Call<'chat'>, { isDeterministicOnly }: CacheRules): boolean {
  // Calls of plugins are steps of a larger task, and responses paid by a caller's own subscription belong to the
  // caller.
  if (!client || client.ownSubscription || /\bno-store\b/i.test(client.cacheControl ?? '') || request.logprobs)
    return false;
  return !isDeterministicOnly || request.temperature === 0 || (request.seed ?? null) !== null;
}

/** True if the caller requires a new response, which is still cached for the next request. */
function isFreshWanted({ client }: Call): boolean {
  return /\bno-cache\b|\bmax-age=0\b/i.test(client?.cacheControl ?? '');
}

const WHOLE: ReadonlySet<string> = new Set(['stop', 'tool_calls', 'function_call']);

/** True if a response may be repeated: it is complete, not empty, and has nothing sealed for one account. */
function isKeepable({ choices }: ChatResponse): boolean {
  return (
    choices.length > 0 &&
    choices.every(({ finish_reason, finish, message }) => {
      const { content, tool_calls = [], refusal, reasoning_details = [] } = message;
      const isSealed = reasoning_details.some(({ data, signature }) => (data ?? signature) !== undefined);
      const isWhole = WHOLE.has(finish_reason) && finish?.unmapped !== true;
      return isWhole && !isSealed && !refusal && ((content ?? '') !== '' || tool_calls.length > 0);
    })
  );
}

/** Repeats the response of an identical chat request without charge. Off by default; its section enables it. */
export default definePlugin({
  name: 'cache',
  kind: 'policy',
  apiVersion: 1,
  section: 'responseCache',
  configSchema: {
    type: ['object', 'null'],
    additionalProperties: false,
    description:
      'Stores chat responses in memory and returns them for the same request of the same user, free of charge. Default: off.',
    properties: {
      ttl: { type: 'string', format: 'duration', default: '1h', description: 'Storage time of a response.' },
      maxSize: {
        type: ['string', 'integer'],
        format: 'size',
        default: '64mb',
        description:
          'Maximum total size per process; one account may use half of it. The least recently used responses are removed first.',
      },
      maxResponse: {
        type: ['string', 'integer'],
        format: 'size',
        default: '256kb',
        description: 'Maximum size of a stored response.',
      },
      sharedBy: {
        enum: ['user', 'account', 'everyone'],
        default: 'user',
        description:
          'Scope of a stored response: the user of the request, all users of the account, or everyone who may use the model.',
      },
      requests: {
        enum: ['all', 'deterministic'],
        default: 'all',
        description: '`deterministic` stores only responses to requests with `temperature: 0` or a `seed`.',
      },
    },
  },
  setup(api, config) {
    if (!config) return;
    const { ttl = '1h', maxSize = '64mb', maxResponse = '256kb', sharedBy = 'user', requests = 'all' } = config;
    const bounds = {
      ttlMs: parseDuration(ttl),
      maxBytes: parseSize(maxSize),
      maxResponseBytes: parseSize(maxResponse),
    };
    // Other bounds create another cache; otherwise cached responses survive a reload.
    const cache = api.keep(`responses ${JSON.stringify(bounds)}`, () => createResponseCache(bounds));
    const policy = cachePolicy(cache, { sharedBy, isDeterministicOnly: requests === 'deterministic' });
    api.hook('answer', { operations: ['chat'], handler: policy.answer });
    // Runs before hooks that change the response: a repeated one passes them again.
    api.hook('receive', { operations: ['chat'], order: 'post', handler: policy.receive });
    api.hook('stream', { operations: ['chat'], order: 'post', handler: policy.stream });
    api.hook('finish', { operations: ['chat'], handler: policy.finish });
  },
});
