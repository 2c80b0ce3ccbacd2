import { type CallFacts, type CallRow, type CommandIo, formatUsd, type Schema } from '../../../core/index.ts';
import { CALL_FIELDS, type CallFieldType, UNKNOWN_FACTS } from '../kit/index.ts';
import { printable } from '../kit/printable.ts';

/** How a call may have ended. */
export const OUTCOMES: readonly CallFacts['outcome'][] = Object.freeze([
  ...(['ok', 'error', 'aborted', 'refused', 'expired', 'unknown'] as const),
]);

/** The fields that lists of calls have, by the names that they have there. */
const SHOWN = Object.freeze(
  Object.entries(CALL_FIELDS).flatMap(([name, { shown, type, about }]) =>
    shown === undefined ? [] : [{ name: name as keyof CallRow, shown, type, about }],
  ),
);

/** A call's record as the API returns it. */
export function tellCall(call: CallRow): Readonly<Record<string, unknown>> {
  return Object.fromEntries(SHOWN.map(({ name, shown, type }) => [shown, showValue(type, call[name])]));
}

function showValue(type: CallFieldType, value: unknown): unknown {
  if (value === undefined) return null;
  if (type === 'usd') return formatUsd(Number(value));
  return type === 'time' ? new Date(Number(value)).toISOString() : value;
}

const COUNT: Schema = { type: 'integer', minimum: 0 };

const ATTEMPT: Schema = {
  type: 'object',
  required: ['target', 'ms'],
  properties: {
    target: { type: 'string', description: '`provider/model`.' },
    status: { type: 'integer', description: 'The HTTP status; absent when the provider sent none.' },
    class: { type: 'string', description: 'The class of the failure; absent when there was none.' },
    reason: { type: 'string', description: 'The provider’s or the network’s words, keys and addresses cut out.' },
    ms: { ...COUNT, description: 'To the response, or to the failure.' },
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
});

/** What each record has. */
const REQUIRED: ReadonlySet<string> = new Set([...Object.keys(UNKNOWN_FACTS), 'id', 'at', 'account', 'cost']);

export const CALL: Schema = Object.freeze({
  type: 'object',
  properties: Object.fromEntries(
    SHOWN.map(({ name, shown, type, about }) => {
      const described = about === undefined ? {} : { description: about };
      if (name === 'outcome') return [shown, { enum: OUTCOMES, ...described }];
      const schema = SCHEMAS[type];
      const typed = REQUIRED.has(name) ? schema : { ...schema, type: [schema['type'], 'null'] };
      return [shown, { ...typed, ...described }];
    }),
  ),
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
    String(call.attempts.length),
    String(call.durationMs),
    String(prompt_tokens ?? '-'),
    String(completion_tokens ?? '-'),
    `${formatUsd(call.cost)}${call.priced ? '' : ' unpriced'}${call.estimated ? ' estimated' : ''}`,
    printable(call.tags.join(',') || '-', 80),
  ];
}
