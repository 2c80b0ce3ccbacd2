/**
 * Goes on with a stream that its vendor broke off, for an alias with `resume: true`: the next target whose vendor declares that it can is
 * sent the prompt with what was said so far, and says the rest. Text alone goes on; a call that needs none of this runs none of it.
 */
import { CHAT, type Target } from '../../contract/call.ts';
import type { ChatChunk, ChatRequest, ChunkChoice, Usage } from '../../contract/chat.ts';
import type { ChunkHead } from '../../contract/chunks.ts';
import { factsOf } from '../../contract/facts.ts';
import { readObject } from '../../contract/json.ts';
import { type Continuation, type Provider, StreamFailure } from '../../contract/provider.ts';
import { redact } from '../../contract/redaction.ts';
import { BYTES_PER_TOKEN } from '../../contract/units.ts';
import { readFailedAttempt } from './attempt.ts';
import { type Call, owedBy } from './call.ts';
import type { CallDeps } from './call-deps.ts';
import { isFinished } from './chat-chunks.ts';
import { reportBroken, tryTargets } from './failover.ts';
import type { SendTo } from './hedge.ts';
import { meterUnfinished } from './meter.ts';

/** The longest text that another target is asked to go on with, in characters. */
const MAX_SAID = 1_000_000;

/** What a stream has said so far, as its vendors sent it. */
export class Said {
  text = '';
  /** Whether it is nothing but text that has not ended. */
  isOpen = true;
  /** What all chunks of the stream repeat, whoever writes them. */
  head: ChunkHead | undefined;
  /** The error of a vendor that broke off, once that was reported. */
  reported: unknown;

  note({ id, model, created, choices }: ChatChunk): void {
    this.head ??= { id, model, created };
    for (const { index, delta, finish_reason: reason } of choices) {
      const { role: _, content, ...others } = delta;
      this.text += content ?? '';
      const isText = Object.values(others).every(isNothing);
      this.isOpen &&= index === 0 && reason === null && isText && this.text.length <= MAX_SAID;
    }
    if (!this.isOpen) this.text = '';
  }
}

/** Fields that some vendors write in every chunk. */
function isNothing(value: unknown): boolean {
  return (value ?? '') === '' || (Array.isArray(value) && value.length === 0);
}

/** What fields of a request may say, as JSON, where its response is one text and nothing else; a field that is not there, or null, says so. */
const PLAIN: Readonly<Record<string, RegExp>> = Object.freeze({
  audio: /^false$/,
  logprobs: /^false$/,
  modalities: /^\["text"\]$/,
  n: /^1$/,
  output_config: /^\{\}$/,
  reasoning: /^\{"effort":"none"\}$/,
  reasoning_effort: /^"none"$/,
  response_format: /^\{"type":"text"\}$/,
  thinking: /^\{"type":"disabled"\}$/,
  tool_choice: /^"(?:auto|none)"$/,
});

/** Begins to note what a stream says; undefined where nobody could go on with it. */
export function noteSaid(deps: CallDeps, call: Call): Said | undefined {
  const request = call.request as ChatRequest;
  const fields = { ...request, ...readObject(request['extra_body']) } as Readonly<Record<string, unknown>>;
  const isPlain = Object.entries(PLAIN).every(
    ([name, plain]) => (fields[name] ?? null) === null || plain.test(JSON.stringify(fields[name])),
  );
  const isBegun = request.messages.at(-1)?.role === 'assistant';
  const hasNeeds = (call.client?.needs.length ?? 0) > 0 || factsOf(request).reasoning.length > 0;
  return isPlain && !isBegun && !hasNeeds && successors(deps, call).length > 0 ? new Said() : undefined;
}

/** The targets that were not tried yet and can go on with a text, in order. */
function successors({ partsOf }: CallDeps, { targets, record }: Call): readonly Target[] {
  const { offers } = partsOf(CHAT);
  return targets.filter((target) => {
    const provider: Provider | undefined = offers.get(target.provider);
    return !record.attempts.some((tried) => tried.target === target) && provider?.continues?.(target.model);
  });
}

/** A stream whose vendor broke it off. */
interface Broken<T extends object> {
  readonly said: Said;
  readonly target: Target;
  readonly thrown: unknown;
  /** Notes what it used. */
  meter(): void;
  /** Asks another target. */
  readonly open: SendTo<T>;
}

interface Resumed<T> {
  readonly opened: T;
  readonly seam: Seam;
  /** What all before it have used. */
  readonly before: Usage | undefined;
}

/**
 * Asks the next target that can go on. What the broken stream used is owed, and what the next one may cost is reserved before it is asked.
 * Throws what the stream broke off with where none goes on.
 */
export async function resume<T extends { readonly target: Target | undefined }>(
  deps: CallDeps,
  call: Call,
  { said, target, thrown, meter, open }: Broken<T>,
): Promise<Resumed<T>> {
  const { offers } = deps.partsOf(CHAT);
  const failed = readFailedAttempt(thrown, target, offers.get(target.provider));
  const [next, ...others] = successors(deps, call);
  if (!failed.failover || !said.isOpen || said.text.trim() === '' || !next) throw thrown;
  reportBroken(deps, call, target, failed, next);
  said.reported = failed.error;
  meter();
  const { record, route } = call;
  const before = record.usage;
  Object.assign(record, { hedged: owedBy(record), metered: undefined, usage: undefined, running: undefined });
  record.sentTo.length = 0;
  Object.assign(route, { hedge: undefined, isResumed: true });
  call.replaceTargets([next, ...others]);
  call.replaceRequest(withBegun(call.request as ChatRequest, said.text));
  try {
    await call.hooks.reserve?.(call);
    const opened = await tryTargets(deps, call, open);
    const by = opened.target ?? next;
    const provider: Provider | undefined = offers.get(by.provider);
    Object.assign(record, { resumedAt: by, lane: 'mixed' });
    return { opened, before, seam: new Seam(said, provider?.continues?.(by.model)) };
  } catch (error) {
    const reason = redact(error instanceof Error ? error.message : String(error));
    deps.log.warn(
      { request_id: call.requestId, reason },
      'an interrupted stream could not be resumed at another target',
    );
    meterUnfinished(deps, call);
    if (!record.metered) Object.assign(record, { metered: record.hedged, hedged: undefined });
    record.usage = addUsage(before, record.usage);
    throw failed.error;
  }
}

/** A request whose response has begun; of its limits of output the rest is left. */
function withBegun(request: ChatRequest, text: string): ChatRequest {
  const written = Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN);
  const { max_tokens: most, max_completion_tokens: mostCompletion } = request;
  return {
    ...request,
    messages: [...request.messages, { role: 'assistant', content: text }],
    ...(most && { max_tokens: Math.max(most - written, 1) }),
    ...(mostCompletion && { max_completion_tokens: Math.max(mostCompletion - written, 1) }),
  };
}

/** A vendor that repeats this much of what it was given, though it is not known to, is taken to repeat all of it. */
const LEAST_REPEATED = 32;

/**
 * Where one target's text ends and another's begins: chunks of the second as those of the first, without what the caller has already. A vendor
 * that repeats what it was given, or not, against what it declares, has failed: its words fit nowhere.
 */
export class Seam {
  /** The model that goes on, as its vendor names it. */
  served: string | undefined;
  readonly #head: ChunkHead | undefined;
  readonly #given: string;
  readonly #echoes: boolean;
  /** What may still be the beginning of a repetition; undefined when it is known. */
  #held: string | undefined = '';
  /** White space that the caller has and the vendor was not given. */
  #blank: string;

  constructor({ text, head }: Said, { echoes = false, trims = false }: Continuation = {}) {
    this.#head = head;
    this.#given = trims ? text.trimEnd() : text;
    this.#blank = text.slice(this.#given.length);
    this.#echoes = echoes;
    if (!echoes && this.#given.length < LEAST_REPEATED) this.#held = undefined;
  }

  push(chunk: ChatChunk): ChatChunk {
    this.served = chunk.model;
    const isEnd = isFinished(chunk);
    return { ...chunk, ...this.#head, choices: chunk.choices.map((choice) => this.#write(choice, isEnd)) };
  }

  #write(choice: ChunkChoice, isEnd: boolean): ChunkChoice {
    // Thinking of the second target would stand within the words of the first.
    const { role: _role, reasoning_content: _text, reasoning_details: _details, content, ...others } = choice.delta;
    const written = this.#unspace(this.#unrepeat(content ?? '', isEnd));
    return { ...choice, delta: written === '' ? others : { ...others, content: written } };
  }

  /** The text without what repeats the given. */
  #unrepeat(text: string, isEnd: boolean): string {
    if (this.#held === undefined) return text;
    const held = this.#held + text;
    const isPart = this.#given.startsWith(held);
    const isAll = held.startsWith(this.#given);
    if (isPart && !isAll && !isEnd) {
      this.#held = held;
      return '';
    }
    if (isAll !== this.#echoes) throw new StreamFailure({ class: 'broken_off', message: MISFIT });
    this.#held = undefined;
    return isAll ? held.slice(this.#given.length) : held;
  }

  /** The text without the white space that the caller has. */
  #unspace(text: string): string {
    let at = 0;
    while (at < text.length && text[at] === this.#blank[at]) at += 1;
    this.#blank = at < text.length ? '' : this.#blank.slice(at);
    return text.slice(at);
  }
}

const MISFIT = 'The provider did not resume the partial response correctly.';

/** What two have used together. */
export function addUsage(one: Usage | undefined, other: Usage | undefined): Usage | undefined {
  if (!one || !other) return one ?? other;
  const sum = (a: unknown, b: unknown): Record<string, number> => {
    const sums = { ...readObject(a) } as Record<string, number>;
    for (const [name, amount] of Object.entries(readObject(b)))
      if (typeof amount === 'number') sums[name] = (sums[name] ?? 0) + amount;
    return sums;
  };
  return {
    ...{ prompt_tokens: one.prompt_tokens + other.prompt_tokens },
    ...{ completion_tokens: one.completion_tokens + other.completion_tokens },
    ...{ total_tokens: one.total_tokens + other.total_tokens },
    prompt_tokens_details: sum(one.prompt_tokens_details, other.prompt_tokens_details),
    completion_tokens_details: sum(one.completion_tokens_details, other.completion_tokens_details),
  };
}
