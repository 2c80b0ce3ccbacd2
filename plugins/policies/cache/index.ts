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

/** The fields of a delta that are put together here; a stream with others is not kept. */
const KNOWN: ReadonlySet<string> = new Set(
  'role content refusal reasoning_content reasoning_details annotations tool_calls'.split(' '),
);

/** One choice as far as it has come. */
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

/** Puts the chunks of a stream together to the response that it is. */
interface ChunkJoiner {
  push(chunk: ChatChunk): void;
  /** Undefined when it did not come to an end, or has what cannot be put together. */
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
    push({ id, created, model, choices: parts, usage: told }) {
      head ??= { id, created, model };
      usage = told ?? usage;
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
    ...{ content: null, refusal: null, reasoning: undefined, finish: undefined, native: undefined },
    ...{ details: [], annotations: [], calls: new Map() },
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
    ...{ role: 'assistant', content, refusal },
    ...(reasoning !== undefined && { reasoning_content: reasoning }),
    ...(details.length > 0 && { reasoning_details: details }),
    ...(annotations.length > 0 && { annotations }),
    ...(tools.length > 0 && { tool_calls: tools }),
  };
  return { index, message, finish_reason: finish, ...(native && { finish: native }), logprobs: null };
}

/** Who gets a kept response. */
type SharedBy = 'user' | 'account' | 'everyone';

/** How the response is wanted, not which one. */
const MANNER: ReadonlySet<string> = new Set(['stream', 'stream_options']);

/**
 * What makes two requests the same one: who may share it, the client's format, the headers that a provider sees, the targets, the
 * request as hooks left it and as the caller wrote it, every field of both. Equal only when all of that is equal: nothing is compared by likeness.
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

/** The same value with the names of all objects in order: clients write the same thing in different ones. */
function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (typeof value !== 'object' || value === null) return value ?? null;
  const entries = Object.entries(value).filter(([, member]) => member !== undefined);
  return Object.fromEntries(
    entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, member]) => [name, sortKeys(member)]),
  );
}

/** A response that is kept. */
interface CachedResponse {
  readonly response: ChatResponse;
  /** What it cost, in nano-dollars; undefined where that is not known. */
  readonly cost: number | undefined;
  /** Unix milliseconds. */
  readonly keptAt: number;
}

interface ResponseCache {
  find(key: string): CachedResponse | undefined;
  /** Books the response under the account whose call it was. */
  keep(account: string, key: string, kept: CachedResponse): void;
}

interface CacheBounds {
  readonly ttlMs: number;
  readonly maxBytes: number;
  readonly maxResponseBytes: number;
}

/** The part of the cache that one account may have. */
const ACCOUNT_SHARE = 1 / 2;

/**
 * Responses in the memory of this process, as text: so their size is known, and nobody can change what is kept. An account that has its share
 * gives up its own, what it kept least recently first.
 */
function createResponseCache({ ttlMs, maxBytes, maxResponseBytes }: CacheBounds): ResponseCache {
  /** The keys of each account with their bytes, those kept least recently first. */
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

/** A response as text, and whose it is. */
interface BookedText {
  readonly account: string;
  readonly text: string;
  readonly bytes: number;
}

interface CacheRules {
  readonly sharedBy: SharedBy;
  /** Whether only requests count that say that they want the same response again. */
  readonly isDeterministicOnly: boolean;
}

/** What is known of a call whose response may be kept. */
interface Candidate {
  readonly key: string;
  /** The response as the provider gave it; undefined before that, and for one that is not to be kept. */
  response(): ChatResponse | undefined;
}

type ChatHooks = Pick<HookFunctions<'chat'>, 'answer' | 'receive' | 'stream' | 'finish'>;

const CANDIDATE = Symbol('cache.candidate');

/** The hooks: look a request up, watch what a provider responds to one that is not there, and keep it when the call ended well. */
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

/** A kept response as one of this call. */
function giveAgain(
  call: Call,
  { response, cost, keptAt }: NonNullable<ReturnType<ResponseCache['find']>>,
): Answered<'chat'> {
  const now = Date.now();
  const saved = Math.max(0, Math.round(cost ?? 0));
  return {
    response: { ...response, id: call.id, created: Math.floor(now / 1000) },
    saved,
    headers: {
      'x-tollgate-cache': 'hit',
      ...(cost !== undefined && { 'x-tollgate-saved-usd': formatUsd(saved) }),
      age: String(Math.max(0, Math.floor((now - keptAt) / 1000))),
    },
  };
}

function isCacheable({ client, request }: Call<'chat'>, { isDeterministicOnly }: CacheRules): boolean {
  // Calls that plugins make themselves are steps of something larger; what a subscription of the caller's paid for is theirs.
  if (!client || client.ownSubscription || /\bno-store\b/i.test(client.cacheControl ?? '') || request.logprobs)
    return false;
  return !isDeterministicOnly || request.temperature === 0 || (request.seed ?? null) !== null;
}

/** Whether the caller wants a response that was made now; it is kept for the next one all the same. */
function isFreshWanted({ client }: Call): boolean {
  return /\bno-cache\b|\bmax-age=0\b/i.test(client?.cacheControl ?? '');
}

const WHOLE: ReadonlySet<string> = new Set(['stop', 'tool_calls', 'function_call']);

/** Whether a response may be given again: one that came to its end, says something, and holds nothing that is sealed for one account. */
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

/** Gives the response to a chat again, for nothing, when the very same request comes again. Off unless the section is there. */
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
    // Other bounds are another cache; else what is kept outlives a reload.
    const cache = api.keep(`responses ${JSON.stringify(bounds)}`, () => createResponseCache(bounds));
    const policy = cachePolicy(cache, { sharedBy, isDeterministicOnly: requests === 'deterministic' });
    api.hook('answer', { operations: ['chat'], handler: policy.answer });
    // Before others change it: what is given again passes them again.
    api.hook('receive', { operations: ['chat'], order: 'post', handler: policy.receive });
    api.hook('stream', { operations: ['chat'], order: 'post', handler: policy.stream });
    api.hook('finish', { operations: ['chat'], handler: policy.finish });
  },
});
