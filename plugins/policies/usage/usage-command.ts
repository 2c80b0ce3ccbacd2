import { type Command, type CommandIo, type CommandOption, formatUsd, type Ledger } from '../../../core/index.ts';
import { printable } from '../kit/printable.ts';
import type { Sums } from './report.ts';
import { descriptions, RANGE_WORDS } from './route-query.ts';
import { readUsageQuery, runUsageQuery, type UsagePage, type UsageQuery } from './usage-query.ts';
import { COLUMNS, csvOfReport, tellReport } from './usage-shapes.ts';
import { FILTER_WORDS, type FilterWord, wordsOfOptions, wrongWord } from './words.ts';

/** The options by which commands choose calls and time. */
export function chooseOptions(filters: readonly FilterWord[]): readonly CommandOption[] {
  const words = { ...RANGE_WORDS, ...descriptions(filters) };
  return Object.entries(words).map(([word, summary]) => ({ flags: `--${word} <${word}>`, summary: plain(summary) }));
}

/** Help has no marks and begins small. */
function plain(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1).replaceAll('`', '').replace(/\.$/, '');
}

/** `tollgate usage`: who spent what, from the configured store. */
export function usageCommand(ledger: Pick<Ledger, 'report'>): Command {
  return {
    name: 'usage',
    summary: 'Who used and spent what',
    changesStore: false,
    options: [
      {
        flags: '--by <words>',
        summary:
          'user, key, tag, provider, model, operation, session, account, hour, day or month, with commas; day by default',
      },
      ...chooseOptions(FILTER_WORDS),
      { flags: '--sort <how>', summary: 'name, or cost: the most expensive first' },
      { flags: '--limit <n>', summary: 'how many rows at most; 100 by default' },
      { flags: '--after <cursor>', summary: 'goes on after that page' },
      { flags: '--csv', summary: 'all rows as CSV' },
    ],
    async run({ options, io }) {
      const isCsv = options['csv'] === true;
      if (isCsv && io.json) throw wrongWord('csv', 'stands beside --json; give one of them.');
      const words = { ...wordsOfOptions(options), ...(isCsv && { format: 'csv' }) };
      const query = readUsageQuery(words, Date.now());
      const page = await runUsageQuery(ledger, query);
      if (isCsv) return io.write(csvOfReport(page, query.by));
      io.result(tellReport(page, query), formatReport(page, query, io));
      if (page.next !== undefined)
        io.note(`There are ${page.rows.length} rows: --limit, --csv, or --after ${page.next}`);
    },
  };
}

/** The columns of the table, each with its unit; those of zeros only are left out, but for the ones that everyone looks for. */
const HEADS: Readonly<Record<keyof typeof COLUMNS, string>> = Object.freeze({
  requests: 'REQUESTS',
  errors: 'ERRORS',
  prompt_tokens: 'TOKENS IN',
  cached_tokens: 'TOKENS CACHED',
  completion_tokens: 'TOKENS OUT',
  reasoning_tokens: 'TOKENS REASONING',
  characters: 'CHARACTERS',
  cost_usd: 'COST USD',
  saved_usd: 'SAVED USD',
  estimated_requests: 'REQUESTS ESTIMATED',
  unpriced_requests: 'REQUESTS UNPRICED',
});
const ALWAYS: ReadonlySet<string> = new Set(['requests', 'prompt_tokens', 'completion_tokens', 'cost_usd']);

function formatReport({ page, totals, shared }: UsagePage, { by }: UsageQuery, io: CommandIo): string {
  const columns = (Object.keys(HEADS) as (keyof typeof HEADS)[]).filter(
    (name) => ALWAYS.has(name) || Number(COLUMNS[name](totals)) !== 0,
  );
  const cells = (sums: Sums): readonly string[] => columns.map((name) => String(COLUMNS[name](sums)));
  const rows = page.map(({ names, sums }) => [...names.map((name) => printable(name)), ...cells(sums)]);
  const total = ['TOTAL', ...by.slice(1).map(() => ''), ...cells(totals)];
  const table = io.table(
    [...by.map((word) => word.toUpperCase()), ...columns.map((name) => HEADS[name])],
    [...rows, total],
  );
  if (!shared || shared.calls.requests === 0) return table;
  const { calls, repeated } = shared;
  return `${table}\n${calls.requests} requests (${formatUsd(calls.cost)} USD) carry several tags and stand in several rows, which have ${formatUsd(repeated.cost)} USD more than the total.`;
}
