import {
  type Answered,
  type Call,
  type ChatResponse,
  formatUsd,
  type HookFunctions,
  type Outcome,
} from '../../../core/index.ts';
import { createChunkJoiner } from './join-chunks.ts';
import { type ResponseCache, requestKey, type SharedBy } from './response-cache.ts';

export interface CacheRules {
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
export function cachePolicy(cache: ResponseCache, rules: CacheRules): ChatHooks {
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
        cache.keep(candidate.key, { response, cost: outcome.cost, keptAt: Date.now() });
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
  // Calls that plugins make themselves are steps of something larger.
  if (!client || /\bno-store\b/i.test(client.cacheControl ?? '') || request.logprobs) return false;
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
    choices.every(({ finish_reason, message }) => {
      const { content, tool_calls = [], refusal, reasoning_details = [] } = message;
      const isSealed = reasoning_details.some(({ data, signature }) => (data ?? signature) !== undefined);
      return WHOLE.has(finish_reason) && !isSealed && !refusal && ((content ?? '') !== '' || tool_calls.length > 0);
    })
  );
}
