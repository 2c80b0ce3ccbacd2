import { SUM_NAMES } from '../kit/call-rows.ts';

/*
 * What takes a schema of version 2 to version 3, around the making of the new tables. There a budget was a purse of one
 * account, a user's budget an account whose name began with a control character and `user:`, and usage was counted by day.
 */

/** Before the new tables: puts those of version 2 that have another form aside. Its functions go; they are made anew. */
export const BEFORE = `
DO $before$ DECLARE old regprocedure; BEGIN
  IF to_regclass('tollgate.purses') IS NULL THEN RETURN; END IF;
  FOR old IN SELECT oid::regprocedure FROM pg_proc WHERE pronamespace = 'tollgate'::regnamespace LOOP
    EXECUTE 'DROP FUNCTION ' || old;
  END LOOP;
  DROP INDEX tollgate.holds_expires;
  ALTER TABLE tollgate.holds RENAME TO holds_2;
  ALTER TABLE tollgate.swept RENAME TO swept_2;
END $before$;
`;

const USER = "E'\\x01user:'";
const OF_USER = `left(account, 6) = ${USER}`;
/** The budgets of a held or swept request, as an array: its key's, and its user's when it was held there too. */
const budgetsOf = (
  table: string,
): string => `array_remove(ARRAY['key:' || o.purse, (SELECT 'user:' || substr(u.account, 7)
  FROM tollgate.${table} AS u WHERE u.ref = o.ref AND left(u.account, 6) = ${USER} LIMIT 1)], NULL)`;
/** What users' accounts hold for calls whose own account holds nothing any more: the sweeper would have charged it. */
const ORPHANS = `(SELECT coalesce(sum(u.amount), 0) FROM tollgate.holds_2 AS u WHERE u.account = a.id
    AND NOT EXISTS (SELECT FROM tollgate.holds_2 AS h WHERE h.ref = u.ref AND h.account <> u.account))`;
const dayStart = (day: string): string => `(extract(epoch FROM (${day} || 'T00:00:00Z')::timestamptz) * 1000)::bigint`;
const ROW = `'2:' || md5(concat_ws(E'\\x01', account, operation, provider, model, key))`;
/** The sums of a row of version 2, which knew fewer of them. */
const sumsOf = (known: Readonly<Record<string, string>>): string =>
  SUM_NAMES.map((name) => known[name] ?? '0').join(', ');

const USAGE_SUMS = sumsOf({
  requests: 'requests',
  prompt_tokens: 'prompt_tokens',
  completion_tokens: 'completion_tokens',
  characters: 'characters',
  cost: 'cost',
});

/**
 * After them: takes the rows over. A day of usage is in the first hour of its day, and no records are known before the next hour.
 * The user of usage is not known: it is taken for the account, which it is unless a key or a claim names another.
 */
export const AFTER = `
DO $after$ BEGIN
  IF to_regclass('tollgate.purses') IS NULL THEN RETURN; END IF;
  INSERT INTO tollgate.holds (account, ref, amount, expires_at, budgets, facts)
    SELECT account, ref, amount, expires_at, ${budgetsOf('holds_2')}, facts FROM tollgate.holds_2 AS o WHERE NOT ${OF_USER};
  INSERT INTO tollgate.swept (account, ref, amount, budgets, reason, at, rollup_id, dimensions, sums, until)
    SELECT account, ref, amount, ${budgetsOf('swept_2')}, reason, ${dayStart('day')}, ${ROW},
      ARRAY[account, account, key, '[]', operation, provider, model], ARRAY[${sumsOf({ requests: '1', cost: 'amount' })}]::bigint[], until
    FROM tollgate.swept_2 AS o WHERE NOT ${OF_USER};
  INSERT INTO tollgate.budgets (id, spent)
    SELECT 'key:' || id, sum(spent) FROM tollgate.purses WHERE left(id, 1) <> '~' GROUP BY id
    UNION ALL SELECT 'user:' || substr(id, 7), spent + ${ORPHANS} FROM tollgate.accounts AS a WHERE left(id, 6) = ${USER};
  INSERT INTO tollgate.budgets AS b (id, held)
    SELECT id, sum(amount) FROM tollgate.holds, unnest(budgets) AS id GROUP BY id
    ON CONFLICT (id) DO UPDATE SET held = excluded.held;
  INSERT INTO tollgate.rollup (hour, id, account, user_id, key, tags, operation, provider, model, ${SUM_NAMES.join(', ')})
    SELECT ${dayStart('day')}, ${ROW}, account, account, key, '[]', operation, provider, model, ${USAGE_SUMS}
    FROM tollgate.usage WHERE NOT ${OF_USER};
  DELETE FROM tollgate.entries WHERE ${OF_USER};
  DELETE FROM tollgate.released WHERE ${OF_USER};
  DELETE FROM tollgate.accounts WHERE left(id, 6) = ${USER};
  INSERT INTO tollgate.meta SELECT 'records_from', coalesce(max(hour) + 3600000, 0) FROM tollgate.rollup;
  DROP TABLE tollgate.purses, tollgate.usage, tollgate.holds_2, tollgate.swept_2;
END $after$;
`;
