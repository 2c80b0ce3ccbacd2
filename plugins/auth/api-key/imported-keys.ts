import { hash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { LRUCache } from 'lru-cache';
import {
  GatewayError,
  isGatewayError,
  isObject,
  type PluginApi,
  type Principal,
  type Subcommand,
} from '../../../contract/index.ts';
import { maxEntries } from '../../policies/kit/index.ts';
import { printable } from '../../policies/kit/printable.ts';
import { omitUndefined } from '../kit/omit-undefined.ts';
import type { Keyring } from './manage-keys.ts';
import type { Peppers } from './peppers.ts';
import { type KeyLimits, withStore } from './records.ts';
import { type KeyRequest, readKeyRequest, wrongOption } from './request.ts';
import { invalidKey, type Verifier } from './verify-key.ts';

/** Prefix of other gateways' keys; LiteLLM uses no other. */
const FOREIGN = /^sk-[\x21-\x7e]{4,500}$/;
/** LiteLLM's stored form of a key: the SHA-256 of its text. */
const TOKEN = /^[0-9a-f]{64}$/;
const MAX_BYTES = 100 * 1024 * 1024;
const KNOWN_MAX = 10_000;
/** Cache time of a mapping; the key behind it is read again like each of our keys. */
const NOTED_MS = 60_000;
const UNKNOWN_MS = 1000;

/** Mapping from another gateway's keys to ours, stored under the HMAC of the other gateway's hash. */
export interface ImportedKeys {
  /** Authenticates a key of another gateway; undefined for a credential of another form. */
  verify(request: Parameters<Verifier['verify']>[0]): Promise<Principal> | undefined;
  /** Maps the key with this hash to our key with the id. */
  note(token: string, id: string): Promise<void>;
  /** Returns the id of our key for this hash, if it was imported. */
  find(token: string): Promise<string | undefined>;
}

interface Parts {
  readonly verifier: Pick<Verifier, 'admit'>;
  readonly readPeppers: () => Promise<Peppers>;
}

interface Noted {
  readonly id: string | undefined;
  readonly readAt: number;
}

export function createImportedKeys(api: Pick<PluginApi, 'keyv'>, { verifier, readPeppers }: Parts): ImportedKeys {
  const notes = api.keyv<{ readonly id: string }>('keys-imported');
  const known = new LRUCache<string, Noted>(maxEntries(KNOWN_MAX));
  const nameOf = (pepper: Peppers['current'], token: string): string =>
    `litellm:${pepper.hash(`litellm ${token}`).toString('hex')}`;
  const find: ImportedKeys['find'] = async (token) => {
    for (const pepper of (await readPeppers()).all) {
      const note = await withStore(() => notes.get(nameOf(pepper, token)));
      if (note) return note.id;
    }
    return undefined;
  };
  const open = async (request: Parameters<ImportedKeys['verify']>[0]): Promise<Principal> => {
    const token = hash('sha256', request.credential, 'hex');
    const noted = known.get(token);
    const age = noted ? request.now - noted.readAt : -1;
    const isFresh = noted && age >= 0 && age < (noted.id === undefined ? UNKNOWN_MS : NOTED_MS);
    if (!noted?.id && !isFresh) request.beforeLookup();
    const id = isFresh ? noted.id : await find(token);
    if (!isFresh) known.set(token, { id, readAt: request.now });
    if (id === undefined) throw invalidKey();
    return verifier.admit(id, request);
  };
  return {
    verify: (request) => (FOREIGN.test(request.credential) ? open(request) : undefined),
    find,
    async note(token, id) {
      const { current } = await readPeppers();
      await withStore(() => notes.set(nameOf(current, token), { id }));
    },
  };
}

interface CommandParts {
  readonly keyring: Keyring;
  readonly check: (limits: KeyLimits) => Promise<void>;
  /** Absent if the configuration does not accept keys of another gateway. */
  readonly imported: ImportedKeys | undefined;
  readonly audit: PluginApi['operators']['audit'];
}

/** Result for one key of the file. */
interface Outcome {
  readonly key: string;
  readonly user: string;
  readonly state: 'imported' | 'already here' | 'left out';
  readonly note: string;
}

/** `tollgate keys import`: imports LiteLLM's virtual keys, which keep working for their holders. */
export function importKeysCommand(parts: CommandParts): Subcommand {
  return {
    name: 'import',
    summary: 'Import virtual keys of LiteLLM; users keep their keys',
    args: [
      { name: '<file>', summary: 'LiteLLM’s response to GET /key/list?return_full_object=true, or its rows as JSON' },
    ],
    async run({ args: [file = ''], io, actor, signal }) {
      const { imported } = parts;
      if (!imported)
        throw new GatewayError(
          'conflict',
          'Imported keys are disabled in this configuration. Set "importedKeys: litellm" of auth.api-key and run the command again.',
        );
      const rows = readRows(file);
      const outcomes: Outcome[] = [];
      for (const row of rows) {
        if (signal.aborted) break;
        outcomes.push(await importRow({ ...parts, imported }, row, Date.now()));
        if (outcomes.length % 500 === 0) io.note(`${outcomes.length} of ${rows.length}`);
      }
      const counts = countStates(outcomes);
      await parts.audit({ actor, action: 'key.import', subject: 'litellm', after: counts });
      io.result(
        { counts, keys: outcomes },
        io.table(
          ['KEY', 'USER', 'STATE', 'NOTE'],
          outcomes.map(({ key, user, state, note }) => [key, printable(user), state, note]),
        ),
      );
      io.note(
        `${counts['imported']} imported, ${counts['already here']} already present, ${counts['left out']} skipped.`,
      );
    },
  };
}

function countStates(outcomes: readonly Outcome[]): Readonly<Record<Outcome['state'], number>> {
  const count = (state: Outcome['state']): number => outcomes.filter((each) => each.state === state).length;
  return { imported: count('imported'), 'already here': count('already here'), 'left out': count('left out') };
}

type Row = Readonly<Record<string, unknown>>;

function readRows(file: string): readonly Row[] {
  let value: unknown;
  try {
    if (statSync(file).size > MAX_BYTES)
      throw wrongOption('<file>', 'is larger than 100 MiB. Split it into several files');
    value = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    if (isGatewayError(error)) throw error;
    throw wrongOption('<file>', error instanceof SyntaxError ? 'is not valid JSON' : 'cannot be read');
  }
  const rows = isObject(value) ? value['keys'] : value;
  if (!Array.isArray(rows) || !rows.every(isObject))
    throw wrongOption(
      '<file>',
      'contains no list of keys. Use "return_full_object=true", so that LiteLLM returns objects under "keys"',
    );
  return rows;
}

async function importRow(parts: CommandParts & { imported: ImportedKeys }, row: Row, now: number): Promise<Outcome> {
  const { keyring, check, imported } = parts;
  const key = textIn(row, 'key_name') ?? textIn(row, 'key_alias') ?? '-';
  const user = textIn(row, 'user_id') ?? textIn(row, 'team_id') ?? textIn(row, 'key_alias') ?? 'litellm';
  const outcome = (state: Outcome['state'], note: string): Outcome => ({ key: printable(key), user, state, note });
  const token = textIn(row, 'token') ?? '';
  if (!TOKEN.test(token)) return outcome('left out', 'it has no "token", the SHA-256 of the key in 64 hex digits');
  const expires = Date.parse(textIn(row, 'expires') ?? '');
  if (expires <= now) return outcome('left out', 'it has expired');
  try {
    const before = await imported.find(token);
    if (before !== undefined) return outcome('already here', `tg_${before}`);
    const { request, notes } = requestOf(row, expires);
    const limits = readKeyRequest(request, now);
    await check(limits);
    const { key: made } = await keyring.create({ userId: user, account: textIn(row, 'team_id') ?? user }, limits, now);
    if (row['blocked'] === true)
      await keyring.edit(made, (edit) => ({ ...edit, blockedAt: now, blockReason: 'blocked at LiteLLM' }));
    // Store the key first: a mapping without a key would be useless, and would look like a finished import.
    await imported.note(token, made.record.id);
    return outcome('imported', [`tg_${made.record.id}`, ...notes].join('; '));
  } catch (error) {
    if (!isGatewayError(error) || error.status >= 500) throw error;
    return outcome('left out', error.message);
  }
}

/** Converts the limits of a LiteLLM key to ours. */
function requestOf(row: Row, expires: number): { readonly request: KeyRequest; readonly notes: readonly string[] } {
  const notes: string[] = [];
  const models = (Array.isArray(row['models']) ? row['models'] : []).filter(
    (model): model is string => typeof model === 'string' && !EVERY_MODEL.has(model),
  );
  const rate = (field: string): number | undefined => {
    const value = row[field];
    return typeof value === 'number' && value >= 1 ? Math.trunc(value) : undefined;
  };
  const budget = row['max_budget'];
  const every = PERIODS[textIn(row, 'budget_duration') ?? ''];
  const hasBudget = typeof budget === 'number' && budget >= 0;
  if (hasBudget && row['budget_duration'] != null)
    notes.push(
      every
        ? `a budget each ${every}, by the calendar`
        : 'its budget does not reset, since the period is not supported',
    );
  const spent = typeof row['spend'] === 'number' ? row['spend'] : 0;
  const isWhole = hasBudget && every === undefined;
  if (isWhole && spent > 0) notes.push('the budget is the remaining amount');
  if (typeof row['max_parallel_requests'] === 'number') notes.push('concurrent calls are limited only by its plan');
  return {
    notes,
    request: omitUndefined({
      name: (textIn(row, 'key_alias') ?? textIn(row, 'key_name') ?? '').slice(0, 100),
      expires_at: Number.isNaN(expires) ? undefined : new Date(expires).toISOString(),
      models: models.length > 0 ? models : undefined,
      rpm: rate('rpm_limit'),
      tpm: rate('tpm_limit'),
      budget_usd: isWhole ? usd(Math.max(0, budget - spent)) : undefined,
      budgets: hasBudget && every ? [{ amount_usd: usd(budget), every, timezone: 'UTC' }] : undefined,
    }),
  };
}

/** Names that mean no limit, or the limit of a team. */
const EVERY_MODEL: ReadonlySet<string> = new Set(['all-proxy-models', 'all-team-models']);

const PERIODS: Readonly<Record<string, 'day' | 'week' | 'month'>> = Object.freeze({
  '24h': 'day',
  '1d': 'day',
  '7d': 'week',
  '1w': 'week',
  '30d': 'month',
  '31d': 'month',
  '1mo': 'month',
});

/** Rounds an amount to nano-dollars, without binary rounding noise. */
function usd(amount: number): string {
  return amount.toFixed(9).replace(/\.?0+$/, '');
}

function textIn(row: Row, field: string): string | undefined {
  const value = row[field];
  return typeof value === 'string' && value !== '' && value.length <= 256 ? value : undefined;
}
