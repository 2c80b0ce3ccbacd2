/** Begins the names of accounts that version 3 counted budgets of users in. */
const USERS = "char(1) || 'user:'";
const isUsers = (column: string): string => `substr(${column}, 1, 6) = ${USERS}`;

/** The budgets that a hold or a swept charge of version 3 counts in, as a JSON list: its purse, and that of its user. */
const budgetsOf = (table: string): string => `(SELECT json_group_array(id) FROM (
    SELECT 'key:' || h.purse AS id WHERE h.purse IS NOT NULL
    UNION ALL SELECT 'user:' || substr(u.account, 7) FROM ${table} AS u WHERE u.ref = h.ref AND ${isUsers('u.account')}))`;

/** The facts of version 3, which knew no user; what cannot be read stays as it is. */
const FACTS = "CASE WHEN json_valid(facts) THEN json_set(facts, '$.userId', account) ELSE facts END";

/** What users' accounts hold for calls whose own account holds nothing any more: the sweeper would have charged it. */
const ORPHANS = `(SELECT coalesce(sum(u.amount), 0) FROM holds AS u WHERE u.account = a.id
    AND NOT EXISTS (SELECT 1 FROM holds AS h WHERE h.ref = u.ref AND h.account <> u.account))`;

/**
 * Budgets by id over all accounts in place of purses and of accounts that counted for users; records of calls, and their rollup by
 * hour in place of usage by day. Of usage by day the user is not known: it is taken for the account, which it is unless a key or
 * a claim names another.
 */
export const STEP_4 = `
  CREATE TABLE budgets (id TEXT PRIMARY KEY, spent INTEGER NOT NULL, held INTEGER NOT NULL, until INTEGER) WITHOUT ROWID;
  INSERT INTO budgets (id, spent, held)
    SELECT 'key:' || id, sum(spent), sum(held) FROM purses WHERE substr(id, 1, 1) <> '~' GROUP BY id;
  INSERT INTO budgets (id, spent, held)
    SELECT 'user:' || substr(id, 7), spent + ${ORPHANS}, held - ${ORPHANS} FROM accounts AS a WHERE ${isUsers('id')};

  CREATE TABLE new_holds (account TEXT NOT NULL, ref TEXT NOT NULL, amount INTEGER NOT NULL, expires_at INTEGER NOT NULL,
    budgets TEXT NOT NULL, facts TEXT NOT NULL, PRIMARY KEY (account, ref)) WITHOUT ROWID;
  INSERT INTO new_holds SELECT account, ref, amount, expires_at, ${budgetsOf('holds')}, ${FACTS} FROM holds AS h
    WHERE NOT ${isUsers('account')};
  DROP TABLE holds;
  ALTER TABLE new_holds RENAME TO holds;

  CREATE TABLE new_swept (ref TEXT NOT NULL, account TEXT NOT NULL, amount INTEGER NOT NULL, budgets TEXT NOT NULL,
    facts TEXT NOT NULL, at INTEGER NOT NULL, until INTEGER NOT NULL, PRIMARY KEY (ref, account)) WITHOUT ROWID;
  -- Where the rollup has their day.
  INSERT INTO new_swept SELECT ref, account, amount, ${budgetsOf('swept')}, ${FACTS}, at - at % 86400000, until FROM swept AS h
    WHERE NOT ${isUsers('account')};
  DROP TABLE swept;
  ALTER TABLE new_swept RENAME TO swept;

  -- What calls are counted by. Rows are few, and stay: the rollup and the records name them by their number.
  CREATE TABLE call_groups (id INTEGER PRIMARY KEY, account TEXT NOT NULL, user TEXT NOT NULL, key TEXT NOT NULL,
    tags TEXT NOT NULL, operation TEXT NOT NULL, provider TEXT NOT NULL, model TEXT NOT NULL,
    UNIQUE (account, user, key, tags, operation, provider, model));
  -- The hour comes first, so that all rows that change now are neighbours.
  CREATE TABLE rollup (hour INTEGER NOT NULL, group_id INTEGER NOT NULL, requests INTEGER NOT NULL, errors INTEGER NOT NULL,
    estimated INTEGER NOT NULL, unpriced INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL, reasoning_tokens INTEGER NOT NULL,
    characters INTEGER NOT NULL, cost INTEGER NOT NULL, saved INTEGER NOT NULL,
    PRIMARY KEY (hour, group_id)) WITHOUT ROWID;
  -- One table in the order of time and no index: a record costs the page that the record before it is in.
  CREATE TABLE calls (at INTEGER NOT NULL, tie TEXT NOT NULL, group_id INTEGER NOT NULL, session TEXT, outcome TEXT NOT NULL,
    errors INTEGER NOT NULL, estimated INTEGER NOT NULL, unpriced INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL, reasoning_tokens INTEGER NOT NULL,
    characters INTEGER NOT NULL, cost INTEGER NOT NULL, saved INTEGER NOT NULL, facts TEXT NOT NULL,
    PRIMARY KEY (at, tie)) WITHOUT ROWID;
  CREATE TABLE marks (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;

  INSERT INTO call_groups (account, user, key, tags, operation, provider, model)
    SELECT DISTINCT account, account, key, '[]', operation, provider, model FROM usage WHERE NOT ${isUsers('account')};
  INSERT INTO rollup SELECT CAST(strftime('%s', u.day) AS INTEGER) * 1000, g.id, u.requests, 0, 0, 0, u.prompt_tokens,
      u.completion_tokens, 0, 0, u.characters, u.cost, 0
    FROM usage AS u JOIN call_groups AS g ON g.account = u.account AND g.user = u.account AND g.key = u.key
      AND g.tags = '[]' AND g.operation = u.operation AND g.provider = u.provider AND g.model = u.model;
  -- Of what was before, only whole days are known, in their first hour.
  INSERT INTO marks SELECT 'whole_before', coalesce(max(hour) + 3600000, 0) FROM rollup;

  DELETE FROM finished WHERE ${isUsers('account')};
  DELETE FROM entries WHERE ${isUsers('account')};
  DELETE FROM accounts WHERE ${isUsers('id')};
  DROP TABLE purses;
  DROP TABLE usage;
  -- The whole name as JSON, of accounts whose id is not their name.
  ALTER TABLE accounts ADD COLUMN name TEXT;
`;
