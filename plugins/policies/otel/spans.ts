import { createHash, randomBytes } from 'node:crypto';
import {
  type AttemptReport,
  type Call,
  formatUsd,
  type HookTime,
  type Outcome,
  type Target,
} from '../../../contract/index.ts';
import { CALL_FIELDS, type CallSummary, describeHooks, summaryOf } from '../kit/index.ts';
import { type AttributeValue, attributesOf, type Message } from './messages.ts';
import { ATTRIBUTES as A, OPERATIONS, PROVIDERS } from './names.ts';

/** Sent attempt: its span is the parent of the provider's own. */
export interface SentAttempt {
  readonly spanId: string;
  readonly target: Target;
  readonly startedAt: number;
  report?: AttemptReport;
}

/** State of a call in this plugin. */
export interface CallTrace {
  readonly spanId: string;
  readonly attempts: SentAttempt[];
  /** JSON of the messages, if content is recorded. */
  input?: () => string;
  output?: () => string;
}

/** Span kinds and states, by OTLP numbers. */
const INTERNAL = 1;
const CLIENT = 3;
const FAILED = 2;

/** Maximum child spans of a call, which may try a provider often. */
const MAX_ATTEMPTS = 100;

/** Longest text of a caller, vendor or model; the rest is cut. */
const MAX_TEXT = 1000;

export function createSpanId(): string {
  return randomBytes(8).toString('hex');
}

/** Id of the span for a request in which agents make calls; each call derives it from the request id. */
export function requestSpanId(requestId: string): string {
  return createHash('sha256').update(requestId).digest('hex').slice(0, 16);
}

/** True if a call was made by an agent, within its own request. */
export function isMadeByAgent({ client, operation }: Call): boolean {
  return operation === 'chat' && client === undefined;
}

/** Spans of a call: the call itself, its provider requests, and the hooks that it waited for. */
export function spansOf(call: Call, outcome: Outcome, trace: CallTrace): readonly Message[] {
  const { traceId, parentId, state: traceState } = call.trace;
  const summary = summaryOf(call, outcome);
  const endedAt = call.startedAt + outcome.durationMs;
  const operation = OPERATIONS[call.operation] ?? call.operation;
  const parent = isMadeByAgent(call) ? requestSpanId(call.requestId) : parentId;
  const span = {
    traceId,
    spanId: trace.spanId,
    traceState,
    parentSpanId: parent,
    name: `${operation} ${cut(summary.model)}`,
    kind: CLIENT,
    startTimeUnixNano: call.startedAt,
    endTimeUnixNano: endedAt,
    attributes: attributesOf({
      [A.operation]: operation,
      [A.provider]: PROVIDERS[summary.provider] ?? summary.provider,
      [A.requestModel]: cut(summary.model),
      [A.responseModel]: outcome.target === undefined ? undefined : cut(outcome.target.model),
      ...recordAttributes(summary),
      ...requestAttributes(call),
      [A.firstChunk]: outcome.firstTokenMs === undefined ? undefined : outcome.firstTokenMs / 1000,
      ...usageAttributes(outcome),
      [A.key]: call.principal.keyId,
      [A.account]: call.principal.account,
      [A.inputMessages]: trace.input?.(),
      [A.outputMessages]: trace.output?.(),
    }),
    status: outcome.error ? { code: FAILED, message: cut(outcome.error.message) } : undefined,
    flags: 1,
  };
  return [
    span,
    ...trace.attempts.slice(0, MAX_ATTEMPTS).map((attempt) => attemptSpan(call, span.spanId, attempt, endedAt)),
    ...(outcome.hookTimes ?? []).map((time) => hookSpan(call, span.spanId, time)),
  ];
}

/** Fields of a call's record that a span contains unchanged, with their names there. */
const RECORDED = Object.freeze(
  (Object.keys(CALL_FIELDS) as (keyof CallSummary)[]).flatMap((name) => {
    const { trace, type } = CALL_FIELDS[name];
    return trace === undefined ? [] : [{ name, trace, type }];
  }),
);

function recordAttributes(summary: CallSummary): Readonly<Record<string, AttributeValue | undefined>> {
  return Object.fromEntries(
    RECORDED.map(({ name, trace, type }) => {
      const value = type === 'hooks' ? describeHooks(summary.hooks ?? []) : summary[name];
      if (typeof value === 'number') return [trace, type === 'usd' ? Number(formatUsd(value)) : value];
      if (typeof value === 'string') return [trace, cut(value)];
      // False and empty values are omitted.
      return [trace, Array.isArray(value) && value.length > 0 ? value.map(String) : value === true || undefined];
    }),
  );
}

/** Request parameters that have a name in the conventions. */
function requestAttributes({ request }: Call): Readonly<Record<string, AttributeValue | undefined>> {
  const fields: Readonly<Record<string, unknown>> = { ...request };
  const number = (name: string): number | undefined => {
    const value = fields[name];
    return typeof value === 'number' ? value : undefined;
  };
  const stop = fields['stop'];
  return {
    [A.maxTokens]: number('max_completion_tokens') ?? number('max_tokens'),
    [A.temperature]: number('temperature'),
    [A.topP]: number('top_p'),
    [A.seed]: number('seed'),
    [A.choices]: number('n'),
    [A.stop]: typeof stop === 'string' ? [stop] : Array.isArray(stop) ? stop.map(String) : undefined,
  };
}

function usageAttributes({ usage }: Outcome): Readonly<Record<string, AttributeValue | undefined>> {
  if (!usage) return {};
  const input = usage.prompt_tokens_details;
  return {
    [A.inputTokens]: usage.prompt_tokens,
    [A.outputTokens]: usage.completion_tokens,
    [A.cachedTokens]: input?.cached_tokens || undefined,
    [A.cacheWrittenTokens]: input?.cache_write_tokens || undefined,
    [A.reasoningTokens]: usage.completion_tokens_details?.reasoning_tokens || undefined,
  };
}

function attemptSpan(call: Call, parentSpanId: string, attempt: SentAttempt, endedAt: number): Message {
  const { spanId, target, startedAt, report } = attempt;
  const { failure, status, durationMs } = report ?? {};
  return {
    traceId: call.trace.traceId,
    spanId,
    parentSpanId,
    name: `attempt ${cut(`${target.provider}/${target.model}`)}`,
    kind: CLIENT,
    startTimeUnixNano: startedAt,
    endTimeUnixNano: durationMs === undefined ? endedAt : startedAt + durationMs,
    attributes: attributesOf({
      [A.provider]: PROVIDERS[target.provider] ?? target.provider,
      [A.requestModel]: cut(target.model),
      [A.httpStatus]: status,
      [A.errorType]: failure && (failure.class ?? failure.error.code),
      [A.reason]: failure && cut(failure.message),
    }),
    status: failure ? { code: FAILED } : undefined,
    flags: 1,
  };
}

function hookSpan(call: Call, parentSpanId: string, { plugin, hook, startMs, ms }: HookTime): Message {
  const startedAt = call.startedAt + startMs;
  return {
    traceId: call.trace.traceId,
    spanId: createSpanId(),
    parentSpanId,
    name: `hook ${plugin} ${hook}`,
    kind: INTERNAL,
    startTimeUnixNano: startedAt,
    endTimeUnixNano: startedAt + ms,
    attributes: attributesOf({ [A.plugin]: plugin, [A.hook]: hook }),
    flags: 1,
  };
}

/** Parent span of the calls that agents made for one request. */
export function requestSpan(
  calls: readonly { readonly call: Call; readonly outcome: Outcome }[],
  route: string,
): Message | undefined {
  const [first] = calls;
  if (!first || !isMadeByAgent(first.call)) return undefined;
  const { requestId, trace, startedAt, principal } = first.call;
  const ends = calls.map(({ call, outcome }) => call.startedAt + outcome.durationMs);
  const failed = calls.every(({ outcome }) => outcome.status === 'error');
  return {
    traceId: trace.traceId,
    spanId: requestSpanId(requestId),
    parentSpanId: trace.parentId,
    name: `invoke_agent ${route}`,
    kind: INTERNAL,
    startTimeUnixNano: startedAt,
    endTimeUnixNano: Math.max(...ends),
    attributes: attributesOf({
      [A.operation]: 'invoke_agent',
      [A.agent]: route,
      [A.requestId]: requestId,
      [A.user]: principal.userId,
    }),
    status: failed ? { code: FAILED } : undefined,
    flags: 1,
  };
}

function cut(text: string): string {
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text;
}
