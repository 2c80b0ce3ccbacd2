import { type CommandInput, type CommandOption, GatewayError, parseDuration } from '../../../core/index.ts';
import { parseKeyBudgets } from './key-budgets.ts';
import type { KeyRequest } from './request.ts';

type Options = CommandInput['options'];

/** As the API takes them. */
const MAX_NAME = 100;
const MAX_LIST = 100;
const MAX_ENTRY = 200;

/** What a key may, as options of the command line. */
export const LIMIT_OPTIONS: readonly CommandOption[] = Object.freeze([
  { flags: '--name <text>', summary: 'what it is for' },
  { flags: '--expires <when>', summary: 'a duration such as 30d, or a date-time' },
  { flags: '--models <list>', summary: 'models it may use, with commas between' },
  { flags: '--providers <list>', summary: 'providers it may use, with commas between' },
  { flags: '--server-tools <list>', summary: 'tools that vendors run with your account, such as web_search' },
  { flags: '--plan <name>', summary: 'the plan whose limits hold' },
  { flags: '--rpm <n>', summary: 'requests a minute' },
  { flags: '--tpm <n>', summary: 'tokens a minute' },
  { flags: '--budget <usd>', summary: 'US dollars it may spend in all' },
  { flags: '--budgets <list>', summary: 'US dollars by calendar period: day=2,month=20@Europe/Berlin' },
  { flags: '--tag <list>', summary: 'what its calls are booked under: team=search,project=x' },
]);

/** The options as a request of the API; null for what is not given. */
export function readOptions(options: Options, now: number): KeyRequest {
  const expires = readText(options, 'expires');
  return {
    name: readName(options),
    expires_at: expires === undefined ? null : readExpiry(expires, now),
    models: readList(options, 'models'),
    providers: readList(options, 'providers'),
    server_tools: readList(options, 'serverTools', 'server-tools'),
    plan: readText(options, 'plan') ?? null,
    rpm: readCount(options, 'rpm') ?? null,
    tpm: readCount(options, 'tpm') ?? null,
    budget_usd: readText(options, 'budget') ?? null,
    budgets: readBudgets(options),
    tags: readList(options, 'tag'),
  };
}

function readName(options: Options): string | null {
  const name = readText(options, 'name') ?? null;
  if (name === null || name.length <= MAX_NAME) return name;
  throw wrongOption('--name', `is longer than ${MAX_NAME} characters`);
}

function readBudgets(options: Options): NonNullable<KeyRequest['budgets']> | null {
  const entries = readList(options, 'budgets');
  if (!entries) return null;
  const budgets = parseKeyBudgets(entries);
  if (budgets) return budgets;
  throw wrongOption('--budgets', 'is not of the form day=2,month=20@Europe/Berlin');
}

/** A duration from now, or a date-time as the API takes it. */
function readExpiry(text: string, now: number): string {
  if (text.includes('T')) return text;
  try {
    return new Date(now + parseDuration(text)).toISOString();
  } catch {
    throw wrongOption('--expires', 'is neither a duration such as 30d nor a date-time such as 2027-01-31T12:00:00Z');
  }
}

export function readText(options: Options, name: string): string | undefined {
  const value = options[name];
  return typeof value === 'string' ? value : undefined;
}

function readList(options: Options, name: string, flag = name): readonly string[] | null {
  const entries = readText(options, name)
    ?.split(',')
    .map((entry) => entry.trim());
  if (entries?.some((entry) => entry === '')) throw wrongOption(`--${flag}`, 'holds an empty name; write a,b,c');
  if (entries && (entries.length > MAX_LIST || entries.some((entry) => entry.length > MAX_ENTRY)))
    throw wrongOption(`--${flag}`, `takes up to ${MAX_LIST} names of up to ${MAX_ENTRY} characters`);
  return entries ?? null;
}

export function readCount(options: Options, name: string): number | undefined {
  const text = readText(options, name);
  if (text === undefined) return undefined;
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text);
  throw wrongOption(`--${name}`, 'is not a whole number of 1 or more');
}

export function wrongOption(flag: string, reason: string): GatewayError {
  return new GatewayError('invalid_request', `${flag} ${reason}.`, { param: flag });
}
