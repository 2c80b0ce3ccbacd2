import type { CallRow, Command, CommandInput, Ledger, Subcommand } from '../../../core/index.ts';
import { formatCallHead, formatCallLine, formatCalls, tellCall } from './call-shapes.ts';
import { listCalls, readCallsQuery } from './calls-query.ts';
import type { FindBodies } from './calls-routes.ts';
import { findCall } from './find-call.ts';
import { followCalls } from './follow-calls.ts';
import { chooseOptions } from './usage-command.ts';
import { FILTER_WORDS, type Words, wordsOfOptions, wrongWord } from './words.ts';

type Calls = Pick<Ledger, 'calls'>;

/** How long a page looks for calls: nothing else waits in this process. */
const MOST_MS = 5000;

/** How many calls come before those that are followed. */
const DEFAULT_RECENT = 10;

/** `tollgate calls`: what was called, from the configured store. */
export function callsCommand(ledger: Calls, findBodies: FindBodies): Command {
  return {
    name: 'calls',
    summary: 'Recent calls, newest first',
    changesStore: false,
    options: [
      ...chooseOptions(FILTER_WORDS),
      { flags: '--outcome <how>', summary: 'ok, error, aborted, expired or unknown' },
      { flags: '--request <id>', summary: 'made for the HTTP request with this id (x-request-id)' },
      { flags: '--since <when>', summary: 'a duration until now, such as 1h, or as --from' },
      { flags: '--limit <n>', summary: 'how many; 50 by default, 10 with --follow' },
      { flags: '--after <cursor>', summary: 'goes on after that page' },
      { flags: '--follow', summary: 'goes on with each call as it is settled, until Ctrl-C' },
    ],
    async run(input) {
      const words = readSince(wordsOfOptions(input.options));
      if (input.options['follow'] === true) return follow(ledger, words, input);
      const { calls, next } = await listCalls(ledger, readCallsQuery(words, Date.now()), MOST_MS);
      const data = { object: 'list', data: calls.map(tellCall), has_more: next !== undefined };
      input.io.result({ ...data, ...(next !== undefined && { next }) }, formatCalls(calls, input.io));
      if (next !== undefined) input.io.note(`There may be more: --after ${next}`);
    },
    subcommands: [showCommand(ledger, findBodies)],
  };
}

function showCommand(ledger: Calls, findBodies: FindBodies): Subcommand {
  return {
    name: 'show',
    summary: 'Show all that is known of a call, what was said included where calls.bodies kept it',
    args: [{ name: '<id>', summary: 'the id of the call, as in the list' }],
    async run({ args: [id = ''], io }) {
      const call = { ...tellCall(await findCall(ledger, id)), bodies: (await findBodies(id)) ?? null };
      const { bodies, ...facts } = call;
      const rows = Object.entries(facts).map(([name, value]) => [name, tellValue(value)]);
      const said = bodies === null ? '' : `\n\n${JSON.stringify(bodies, null, 2)}`;
      io.result(call, io.table(['FIELD', 'VALUE'], rows) + said);
    },
  };
}

function tellValue(value: unknown): string {
  if (value === null) return '-';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** `--since 1h` is `--last 1h`, `--since 2026-11-01` is `--from 2026-11-01`. */
function readSince({ since, ...words }: Words): Words {
  if (since === undefined) return words;
  if (words['from'] !== undefined || words['last'] !== undefined || words['period'] !== undefined)
    throw wrongWord('since', 'stands beside another range; give one of them.');
  if (!/^\d{4}-/.test(since)) return { ...words, last: since };
  // Without an end: what is settled while the command runs counts too.
  return { ...words, from: since, to: words['to'] ?? '2100-01-01' };
}

async function follow(ledger: Calls, words: Words, { io, signal }: CommandInput): Promise<void> {
  const wrong = ['from', 'to', 'last', 'period', 'tz', 'after', 'request'].find((word) => words[word] !== undefined);
  if (wrong !== undefined) throw wrongWord(wrong, 'has no meaning with --follow; --limit says how many come first.');
  const { filter, limit } = readCallsQuery(words, Date.now());
  const recent = words['limit'] === undefined ? DEFAULT_RECENT : limit;
  const write = (call: CallRow): void =>
    io.write(`${io.json ? JSON.stringify(tellCall(call)) : formatCallLine(call)}\n`);
  if (!io.json) io.write(`${formatCallHead()}\n`);
  for await (const { calls, isCut } of followCalls(ledger, { filter, recent, signal })) {
    if (isCut) io.note('Some calls came too fast to be told here; the list has them.');
    for (const call of calls) write(call);
  }
}
