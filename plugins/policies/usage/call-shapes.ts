import { type CallRow, type CommandIo, formatUsd, type Schema } from '../../../core/index.ts';
import { printable } from '../kit/printable.ts';

/** A call's record as the API tells it. */
export function tellCall(call: CallRow): Readonly<Record<string, unknown>> {
  return {
    id: call.id,
    request_id: call.requestId,
    at: new Date(call.at).toISOString(),
    started_at: new Date(call.startedAt).toISOString(),
    account: call.account,
    user_id: call.userId,
    key: call.key,
    tags: call.tags,
    session: call.session ?? null,
    operation: call.operation,
    provider: call.provider,
    model: call.model,
    requested: call.requested ?? null,
    stream: call.stream,
    outcome: call.outcome,
    error_code: call.errorCode ?? null,
    attempts: call.attempts,
    lane: call.lane ?? null,
    duration_ms: call.durationMs,
    first_byte_ms: call.firstByteMs ?? null,
    units: call.units,
    cost_usd: formatUsd(call.cost),
    saved_usd: call.saved === undefined ? null : formatUsd(call.saved),
    estimated: call.estimated,
    priced: call.priced,
  };
}

const TEXT = { type: 'string' } as const;
const TEXT_OR_NULL = { type: ['string', 'null'] } as const;
const COUNT = { type: 'integer', minimum: 0 } as const;

export const CALL: Schema = Object.freeze({
  type: 'object',
  properties: {
    id: TEXT,
    request_id: TEXT,
    at: { type: 'string', format: 'date-time', description: 'When it was settled: reports count it then.' },
    started_at: { type: 'string', format: 'date-time' },
    ...{ account: TEXT, user_id: TEXT, key: TEXT, tags: { type: 'array', items: TEXT }, session: TEXT_OR_NULL },
    ...{ operation: TEXT, provider: TEXT, model: TEXT, requested: TEXT_OR_NULL, stream: { type: 'boolean' } },
    outcome: {
      enum: ['ok', 'error', 'aborted', 'expired', 'unknown'],
      description: '`expired`: nobody told its end, and it was charged at its estimate.',
    },
    ...{ error_code: TEXT_OR_NULL, attempts: COUNT, lane: TEXT_OR_NULL, duration_ms: COUNT },
    first_byte_ms: { type: ['integer', 'null'] },
    units: { type: 'object', additionalProperties: COUNT },
    ...{ cost_usd: TEXT, saved_usd: TEXT_OR_NULL },
    estimated: { type: 'boolean', description: 'Whether the units are an estimate.' },
    priced: { type: 'boolean', description: 'Whether the price was known; otherwise nothing was charged.' },
  },
});

/** The head of a table of calls, each column with its unit. */
const HEAD = Object.freeze([
  ...['TIME UTC', 'ID', 'USER', 'KEY', 'PROVIDER/MODEL', 'OUTCOME', 'ATTEMPTS', 'LATENCY MS'],
  ...['TOKENS IN', 'TOKENS OUT', 'COST USD', 'TAGS'],
]);

/** Calls as a table. */
export function formatCalls(calls: readonly CallRow[], io: CommandIo): string {
  return io.table(HEAD, calls.map(cellsOf));
}

/** The widths of {@link formatCallLine}: what most values of a column need. */
const WIDTHS = Object.freeze([23, 31, 12, 12, 28, 16, 8, 10, 9, 10, 10]);

/** The head of lines that come one after the other, so that none can know how wide the next one is. */
export function formatCallHead(): string {
  return formatLine(HEAD);
}

/** A call as one such line. */
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
    String(call.attempts),
    String(call.durationMs),
    String(prompt_tokens ?? '-'),
    String(completion_tokens ?? '-'),
    `${formatUsd(call.cost)}${call.priced ? '' : ' unpriced'}${call.estimated ? ' estimated' : ''}`,
    printable(call.tags.join(',') || '-', 80),
  ];
}
