import {
  type CallFacts,
  type CallRow,
  type CommandIo,
  type CostPart,
  formatUsd,
  type Principal,
  type Schema,
} from '../../../contract/index.ts';
import { CALL_FIELDS, type CallFieldType, END_USER_TAG, hasScope, tagName, UNKNOWN_FACTS } from '../kit/index.ts';
import { printable } from '../kit/printable.ts';

/** Possible outcomes of a call. */
export const OUTCOMES: readonly CallFacts['outcome'][] = Object.freeze([
  ...(['ok', 'error', 'aborted', 'refused', 'expired', 'unknown'] as const),
]);

/** Fields in lists of calls, with their names there. */
const SHOWN = Object.freeze(
  Object.entries(CALL_FIELDS).flatMap(([name, { shown, type, about }]) =>
    shown === undefined ? [] : [{ name: name as keyof CallRow, shown, type, about }],
  ),
);

/** Converts a call's record to the API's form. */
export function tellCall(call: CallRow): Readonly<Record<string, unknown>> {
  const free = isCostUnknown(call) ? 'cost' : undefined;
  const fields = SHOWN.map(({ name, shown, type }) => {
    const value = name === 'tags' ? call.tags.filter(isOwnTag) : call[name];
    return [shown, showValue(type, name === free ? undefined : value)];
  });
  return { ...Object.fromEntries(fields), phases: phasesOf(call) };
}

/** True for tags other than the end user, which has a field of its own. */
function isOwnTag(tag: string): boolean {
  return tagName(tag) !== END_USER_TAG;
}

/** Hook that holds the cost of a call in the store. */
const STORE_HOOK = 'reserve';

/** Divides the time of a call, from the arrival of its request to its end. Null in records of builds that did not measure it. */
function phasesOf(call: CallRow): Readonly<Record<string, number>> | null {
  const { durationMs, upstreamMs, receiveMs = 0, queueMs = 0, retryWaitMs = 0, hookTimes = [] } = call;
  if (upstreamMs === undefined) return null;
  const sumOf = (isWanted: (hook: string) => boolean): number =>
    hookTimes.reduce((sum, { hook, ms }) => (isWanted(hook) ? sum + ms : sum), 0);
  const vendor = Math.min(upstreamMs, durationMs);
  const store = sumOf((hook) => hook === STORE_HOOK);
  const hooks = sumOf((hook) => hook !== STORE_HOOK);
  return {
    queue_ms: queueMs,
    receive_ms: Math.max(receiveMs - queueMs, 0),
    hooks_ms: hooks,
    store_ms: store,
    retry_wait_ms: retryWaitMs,
    vendor_ms: vendor,
    // Hooks of a stream run while the vendor sends, so that the parts may exceed the whole.
    gateway_ms: Math.max(durationMs - vendor - store - hooks - retryWaitMs, 0),
  };
}

/** Shows calls to an operator. Error messages of vendors may quote prompts, so that they need the scope `bodies:read`. */
export function showCallsTo(principal: Principal): (call: CallRow) => Readonly<Record<string, unknown>> {
  return hasScope(principal, 'bodies:read') ? tellCall : (call) => tellCall(withoutVendorMessages(call));
}

/** Shows a call to its caller, who has received its error: without what vendors reported to the operator. */
export function tellOwnCall(call: CallRow): Readonly<Record<string, unknown>> {
  const { errorMessage } = call;
  return tellCall({ ...withoutVendorMessages(call), ...(errorMessage !== undefined && { errorMessage }) });
}

/** An attempt without a status failed in the network, and its reason is the gateway's own. */
function withoutVendorMessages(call: CallRow): CallRow {
  if (!call.attempts.some(isVendorMessage)) return call;
  const { errorMessage: _message, ...rest } = call;
  const attempts = call.attempts.map((attempt) => {
    if (!isVendorMessage(attempt)) return attempt;
    const { reason: _reason, ...shown } = attempt;
    return shown;
  });
  return { ...rest, attempts };
}

function isVendorMessage({ status, reason }: CallRow['attempts'][number]): boolean {
  return status !== undefined && reason !== undefined;
}

/** True if nothing was charged because the cost is unknown, which must not be shown as zero. */
function isCostUnknown({ priced, cost }: CallRow): boolean {
  return !priced && cost === 0;
}

function showValue(type: CallFieldType, value: unknown): unknown {
  if (value === undefined) return null;
  if (type === 'usd') return formatUsd(Number(value));
  if (type === 'parts')
    return (value as readonly CostPart[]).map((part) => ({
      ...part,
      usd: part.usd === null ? null : showPart(part.usd),
    }));
  return type === 'time' ? new Date(Number(value)).toISOString() : value;
}

/** Not rounded like a charge: a part may be less than the smallest charge. */
function showPart(usd: number): string {
  return usd.toFixed(12).replace(/0{1,10}$/, '');
}

const COUNT: Schema = { type: 'integer', minimum: 0 };

const ATTEMPT: Schema = {
  type: 'object',
  required: ['target', 'ms'],
  properties: {
    target: { type: 'string', description: '`provider/model`.' },
    key: { type: 'string', description: 'Name of the provider’s key, if it has several.' },
    status: { type: 'integer', description: 'HTTP status; absent if the provider sent none.' },
    class: { type: 'string', description: 'Class of the failure; absent if there was none.' },
    reason: {
      type: 'string',
      description:
        'Error message of the provider (needs the scope `bodies:read`) or the network, without keys and addresses.',
    },
    ms: { ...COUNT, description: 'Time to the response or the failure.' },
  },
};

const HOOK: Schema = {
  type: 'object',
  required: ['plugin', 'hook', 'action'],
  properties: {
    plugin: { type: 'string', description: 'Name of the plugin instance.' },
    hook: { type: 'string' },
    action: { enum: ['changed', 'answered', 'routed', 'refused', 'failed'] },
    ms: { ...COUNT, description: 'Absent for a synchronous hook or one of at most one millisecond.' },
  },
};

const HOOK_TIME: Schema = {
  type: 'object',
  required: ['plugin', 'hook', 'startMs', 'ms'],
  properties: {
    plugin: { type: 'string', description: 'Name of the plugin instance.' },
    hook: { type: 'string' },
    startMs: { ...COUNT, description: 'Start, from the start of the call.' },
    ms: COUNT,
  },
};

const COST_PART: Schema = {
  type: 'object',
  required: ['unit', 'quantity', 'usd'],
  properties: {
    unit: {
      type: 'string',
      description: 'Such as `input_tokens`, `cached_tokens`, `output_tokens`, `web_search_requests`.',
    },
    quantity: { type: 'number', minimum: 0 },
    usd: { type: ['string', 'null'], description: 'Null if the unit has no known price.' },
  },
};

const SCHEMAS: Readonly<Record<CallFieldType, Schema>> = Object.freeze({
  text: { type: 'string' },
  texts: { type: 'array', items: { type: 'string' } },
  flag: { type: 'boolean' },
  count: COUNT,
  ms: COUNT,
  time: { type: 'string', format: 'date-time' },
  usd: { type: 'string' },
  units: { type: 'object', additionalProperties: COUNT },
  attempts: { type: 'array', items: ATTEMPT },
  hooks: { type: 'array', items: HOOK },
  times: { type: 'array', items: HOOK_TIME },
  parts: { type: 'array', items: COST_PART },
});

/** Fields of every record; its cost may be unknown. */
const REQUIRED: ReadonlySet<string> = new Set([...Object.keys(UNKNOWN_FACTS), 'id', 'at', 'account']);

const PHASES: Schema = Object.freeze({
  type: ['object', 'null'],
  description: 'Where the time went, from the arrival of the request; null in records of earlier builds.',
  properties: {
    queue_ms: { ...COUNT, description: 'In the line of the account.' },
    receive_ms: { ...COUNT, description: 'Authentication and reading the body.' },
    hooks_ms: { ...COUNT, description: 'Hooks of plugins; `hook_times` has them by name.' },
    store_ms: { ...COUNT, description: 'Holding the cost in the store.' },
    retry_wait_ms: { ...COUNT, description: 'Pauses before retries.' },
    vendor_ms: { ...COUNT, description: 'Requests to providers.' },
    gateway_ms: { ...COUNT, description: 'The rest: the work of the gateway.' },
  },
});

export const CALL: Schema = Object.freeze({
  type: 'object',
  properties: {
    phases: PHASES,
    ...Object.fromEntries(
      SHOWN.map(({ name, shown, type, about }) => {
        const described = about === undefined ? {} : { description: about };
        if (name === 'outcome') return [shown, { enum: OUTCOMES, ...described }];
        const schema = SCHEMAS[type];
        const typed = REQUIRED.has(name) ? schema : { ...schema, type: [schema['type'], 'null'] };
        return [shown, { ...typed, ...described }];
      }),
    ),
  },
});

/** Header of a table of calls, each column with its unit. */
const HEAD = Object.freeze([
  ...['TIME UTC', 'ID', 'USER', 'KEY', 'PROVIDER/MODEL', 'OUTCOME', 'ATTEMPTS', 'LATENCY MS'],
  ...['TOKENS IN', 'TOKENS OUT', 'COST USD', 'TAGS'],
]);

/** Formats calls as a table. */
export function formatCalls(calls: readonly CallRow[], io: CommandIo): string {
  return io.table(HEAD, calls.map(cellsOf));
}

/** Column widths of {@link formatCallLine}, sufficient for most values. */
const WIDTHS = Object.freeze([23, 31, 12, 12, 28, 16, 8, 10, 9, 10, 10]);

/** Header of streamed lines, whose widths cannot be known in advance. */
export function formatCallHead(): string {
  return formatLine(HEAD);
}

/** Formats a call as a streamed line. */
export function formatCallLine(call: CallRow): string {
  return formatLine(cellsOf(call));
}

function formatLine(cells: readonly string[]): string {
  return cells
    .map((cell, column) => cell.padEnd(WIDTHS[column] ?? 0))
    .join('  ')
    .trimEnd();
}

function cellsOf(call: CallRow): readonly string[] {
  const { prompt_tokens, completion_tokens } = call.units;
  return [
    new Date(call.at).toISOString().slice(0, 23).replace('T', ' '),
    call.id,
    printable(call.userId, 24),
    call.key,
    printable(`${call.provider}/${call.model}`),
    call.errorCode === undefined ? call.outcome : `${call.outcome} ${call.errorCode}`,
    String(call.attempts.length),
    String(call.durationMs),
    String(prompt_tokens ?? '-'),
    String(completion_tokens ?? '-'),
    `${isCostUnknown(call) ? 'unknown' : formatUsd(call.cost)}${call.priced ? '' : ' unpriced'}${call.estimated ? ' estimated' : ''}`,
    printable(call.tags.join(',') || '-', 80),
  ];
}
