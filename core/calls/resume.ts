/**
 * Resumes an interrupted stream, for an alias with `resume: true`. The next target whose vendor supports it is sent the
 * prompt with the text so far, and sends the rest. Only text is resumed. Other calls run none of this code.
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
import { type Call, oweMetered } from './call.ts';
import type { CallDeps } from './call-deps.ts';
import { isFinished } from './chat-chunks.ts';
import { reportBroken, tryTargets } from './failover.ts';
import type { SendTo } from './hedge.ts';
import { addUsage, meterUnfinished } from './meter.ts';

/** Maximum length of a text that another target resumes, in characters. */
const MAX_PREFIX = 1_000_000;

/** Text of a stream so far, as its vendors sent it. */
export class StreamPrefix {
  text = '';
  /** True if the stream is text only and has not ended. */
  isOpen = true;
  /** Fields that all chunks of the stream repeat, whichever target sends them. */
  head: ChunkHead | undefined;
  /** Error of an interruption, once it was reported. */
  reported: unknown;

  record({ id, model, created, choices }: ChatChunk): void {
    this.head ??= { id, model, created };
    for (const { index, delta, finish_reason: reason } of choices) {
      const { role: _, content, ...others } = delta;
      this.text += content ?? '';
      const isText = Object.values(others).every(isNothing);
      this.isOpen &&= index === 0 && reason === null && isText && this.text.length <= MAX_PREFIX;
    }
    if (!this.isOpen) this.text = '';
  }
}

/** Returns whether a field is empty. Some vendors send empty fields in every chunk. */
function isNothing(value: unknown): boolean {
  return (value ?? '') === '' || (Array.isArray(value) && value.length === 0);
}

/**
 * Values of request fields, as JSON, for which the response is a single text. Missing fields and null are such values
 * too.
 */
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

/** Starts to record the text of a stream; undefined if no other target could resume it. */
export function recordPrefix(call: Call): StreamPrefix | undefined {
  const request = call.request as ChatRequest;
  const fields = { ...request, ...readObject(request['extra_body']) } as Readonly<Record<string, unknown>>;
  const isPlain = Object.entries(PLAIN).every(
    ([name, plain]) => (fields[name] ?? null) === null || plain.test(JSON.stringify(fields[name])),
  );
  const isBegun = request.messages.at(-1)?.role === 'assistant';
  const hasNeeds = (call.client?.needs.length ?? 0) > 0 || factsOf(request).reasoning.length > 0;
  return isPlain && !isBegun && !hasNeeds && successors(call).length > 0 ? new StreamPrefix() : undefined;
}

/** Untried targets that can resume a text, in order. */
function successors(call: Call): readonly Target[] {
  return call.targets.filter((target) => {
    const { name, offer } = call.at(target);
    const provider: Provider | undefined = offer;
    return !call.record.attempts.some((tried) => tried.target === name) && provider?.continues?.(target.model);
  });
}

/** Interrupted stream. */
interface Broken<T extends object> {
  readonly prefix: StreamPrefix;
  readonly target: Target;
  readonly thrown: unknown;
  /** Meters its usage. */
  meter(): void;
  /** Sends the request to another target. */
  readonly open: SendTo<T>;
}

interface Resumed<T> {
  readonly opened: T;
  readonly resumePoint: ResumePoint;
  /** Total usage of the previous targets. */
  readonly before: Usage | undefined;
}

/**
 * Sends the request to the next target that can resume the stream. The usage of the interrupted stream is owed, and the
 * maximum cost of the next attempt is reserved before. Throws the original error if no target resumes it.
 */
export async function resume<T extends { readonly target: Target | undefined }>(
  deps: CallDeps,
  call: Call,
  { prefix, target, thrown, meter, open }: Broken<T>,
): Promise<Resumed<T>> {
  const { offers } = deps.partsOf(CHAT);
  const failed = readFailedAttempt(thrown, target, offers.get(target.provider));
  const [next, ...others] = successors(call);
  if (!failed.failover || !prefix.isOpen || prefix.text.trim() === '' || !next) throw thrown;
  reportBroken(deps, call, target, failed, next);
  prefix.reported = failed.error;
  meter();
  const { record } = call;
  const before = record.usage;
  oweMetered(record);
  Object.assign(record, { running: undefined, hedge: undefined, isResumed: true });
  call.replaceTargets([next, ...others]);
  call.replaceRequest(withBegun(call.request as ChatRequest, prefix.text));
  try {
    await call.hooks.reserve?.(call);
    const opened = await tryTargets(deps, call, open);
    const by = opened.target ?? next;
    const provider: Provider | undefined = offers.get(by.provider);
    Object.assign(record, { resumedAt: by, lane: 'mixed' });
    return { opened, before, resumePoint: new ResumePoint(prefix, provider?.continues?.(by.model)) };
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

/** Returns a request with a begun response. Its output limits are reduced by the text so far. */
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

/** Minimum length of a text to detect that a vendor repeats it without declaring so, in characters. */
const LEAST_REPEATED = 32;

/**
 * Joins the text of one target to that of the previous one. Chunks continue those of the first target, without text
 * that the caller has already. A vendor that repeats the given text, or does not, contrary to its declaration, has
 * failed: its text does not fit.
 */
export class ResumePoint {
  /** Model that resumes the stream, as its vendor names it. */
  served: string | undefined;
  readonly #head: ChunkHead | undefined;
  readonly #given: string;
  readonly #echoes: boolean;
  /** Text that may be the start of a repetition; undefined once that is decided. */
  #held: string | undefined = '';
  /** White space that the caller has and the vendor was not sent. */
  #blank: string;

  constructor({ text, head }: StreamPrefix, { echoes = false, trims = false }: Continuation = {}) {
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
    // Reasoning of the second target would appear within the text of the first.
    const { role: _role, reasoning_content: _text, reasoning_details: _details, content, ...others } = choice.delta;
    const written = this.#unspace(this.#unrepeat(content ?? '', isEnd));
    return { ...choice, delta: written === '' ? others : { ...others, content: written } };
  }

  /** Removes the repetition of the given text. */
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

  /** Removes white space that the caller has already. */
  #unspace(text: string): string {
    let at = 0;
    while (at < text.length && text[at] === this.#blank[at]) at += 1;
    this.#blank = at < text.length ? '' : this.#blank.slice(at);
    return text.slice(at);
  }
}

const MISFIT = 'The provider did not resume the partial response correctly.';
