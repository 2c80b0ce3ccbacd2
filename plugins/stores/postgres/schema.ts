/*
 * Everything lives in the schema `tollgate`. What must be atomic is a function: one round trip, one transaction, and the
 * same rows locked in the same order (the account first), so that calls wait for each other and never deadlock.
 */

/** The version of {@link SCHEMA} and {@link FUNCTIONS}; raise it with every change of either. */
export const VERSION = 2;

/** The oldest version that {@link SCHEMA} updates. Version 1 was an unreleased build's, whose documents have other names. */
export const OLDEST_VERSION = 2;

/** Tables, made once. Windows and leases are unlogged: a crash of the server may forget who called in the last minute. */
export const SCHEMA = `
CREATE TABLE IF NOT EXISTS tollgate.documents (key varchar(255) COLLATE "C" PRIMARY KEY, value text, expires bigint);
CREATE INDEX IF NOT EXISTS documents_expires ON tollgate.documents (expires) WHERE expires IS NOT NULL;

CREATE TABLE IF NOT EXISTS tollgate.accounts (id text PRIMARY KEY, balance bigint NOT NULL DEFAULT 0,
  held bigint NOT NULL DEFAULT 0, spent bigint NOT NULL DEFAULT 0, credited bigint NOT NULL DEFAULT 0,
  last_entry bigint NOT NULL DEFAULT 0, updated_at bigint NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS tollgate.purses (account text, id text, spent bigint NOT NULL DEFAULT 0,
  held bigint NOT NULL DEFAULT 0, PRIMARY KEY (account, id));
CREATE TABLE IF NOT EXISTS tollgate.holds (account text, ref text, amount bigint NOT NULL, expires_at bigint NOT NULL,
  purse text, facts text NOT NULL, PRIMARY KEY (account, ref));
CREATE INDEX IF NOT EXISTS holds_expires ON tollgate.holds (expires_at);
CREATE TABLE IF NOT EXISTS tollgate.released (account text, ref text, until bigint NOT NULL, PRIMARY KEY (account, ref));
CREATE TABLE IF NOT EXISTS tollgate.swept (account text, ref text, amount bigint NOT NULL, purse text, reason text NOT NULL,
  day text NOT NULL, operation text NOT NULL, provider text NOT NULL, model text NOT NULL, key text NOT NULL,
  until bigint NOT NULL, PRIMARY KEY (account, ref));
CREATE TABLE IF NOT EXISTS tollgate.entries (account text, n bigint, kind text NOT NULL, ref text NOT NULL,
  amount bigint NOT NULL, reason text NOT NULL, at bigint NOT NULL, PRIMARY KEY (account, n), UNIQUE (account, ref, kind));
CREATE TABLE IF NOT EXISTS tollgate.usage (account text, day text, operation text, provider text, model text, key text,
  requests bigint NOT NULL, prompt_tokens bigint NOT NULL, completion_tokens bigint NOT NULL,
  characters bigint NOT NULL, cost bigint NOT NULL, PRIMARY KEY (account, day, operation, provider, model, key));

CREATE TABLE IF NOT EXISTS tollgate.members (name text, member text COLLATE "C", PRIMARY KEY (name, member));
CREATE UNLOGGED TABLE IF NOT EXISTS tollgate.windows (key text COLLATE "C" PRIMARY KEY, used bigint NOT NULL,
  resets_at bigint NOT NULL) WITH (fillfactor = 50);
CREATE UNLOGGED TABLE IF NOT EXISTS tollgate.leases (key text, id text, expires_at bigint NOT NULL, PRIMARY KEY (key, id));
CREATE TABLE IF NOT EXISTS tollgate.numbers (key text PRIMARY KEY, value bigint NOT NULL) WITH (fillfactor = 50);
`;

/** The SQLSTATE of a call that reached the server after its caller had given up. */
export const LATE = 'TG001';

/** Functions, replaced whenever the version rises. `deadline` is in milliseconds of the server's clock. */
export const FUNCTIONS = `
CREATE OR REPLACE FUNCTION tollgate.in_time(deadline double precision) RETURNS void LANGUAGE plpgsql AS $$
DECLARE now_ms double precision := extract(epoch FROM clock_timestamp()) * 1000;
BEGIN
  IF now_ms > deadline THEN RAISE EXCEPTION 'late' USING ERRCODE = '${LATE}', DETAIL = floor(now_ms)::bigint::text; END IF;
END $$;

CREATE OR REPLACE FUNCTION tollgate.reserve(deadline double precision, account_ text, ref_ text, amount_ bigint,
  floor_ bigint, expires_ bigint, purse_ text, limit_ bigint, facts_ text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE free bigint;
BEGIN
  PERFORM tollgate.in_time(deadline);
  SELECT balance - held INTO free FROM tollgate.accounts WHERE id = account_ FOR UPDATE;
  IF NOT FOUND THEN
    INSERT INTO tollgate.accounts (id) VALUES (account_) ON CONFLICT DO NOTHING;
    SELECT balance - held INTO free FROM tollgate.accounts WHERE id = account_ FOR UPDATE;
  END IF;
  IF EXISTS (SELECT FROM tollgate.entries WHERE account = account_ AND ref = ref_ AND kind = 'charge')
    OR EXISTS (SELECT FROM tollgate.released WHERE account = account_ AND ref = ref_)
    OR EXISTS (SELECT FROM tollgate.holds WHERE account = account_ AND ref = ref_) THEN RETURN 'duplicate'; END IF;
  IF free - amount_ < floor_ THEN RETURN 'insufficient'; END IF;
  IF purse_ IS NOT NULL THEN
    INSERT INTO tollgate.purses (account, id) VALUES (account_, purse_) ON CONFLICT DO NOTHING;
    UPDATE tollgate.purses SET held = held + amount_
      WHERE account = account_ AND id = purse_ AND spent + held + amount_ <= limit_;
    IF NOT FOUND THEN RETURN 'over_budget'; END IF;
  END IF;
  INSERT INTO tollgate.holds VALUES (account_, ref_, amount_, expires_, purse_, facts_);
  UPDATE tollgate.accounts SET held = held + amount_ WHERE id = account_;
  RETURN 'held';
END $$;

-- Replaces what the sweeper charged by what the request came to; its entry is of a kind of its own, which reads as a charge.
CREATE OR REPLACE FUNCTION tollgate.correct(account_ text, ref_ text, actual bigint, at_ bigint, prompt bigint,
  completion bigint, characters_ bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE s tollgate.swept; back bigint; entry bigint;
BEGIN
  DELETE FROM tollgate.swept WHERE account = account_ AND ref = ref_ RETURNING * INTO s;
  IF NOT FOUND THEN RETURN false; END IF;
  back := s.amount - actual;
  UPDATE tollgate.accounts SET balance = balance + back, spent = spent - back, last_entry = last_entry + 1,
    updated_at = at_ WHERE id = account_ RETURNING last_entry INTO entry;
  INSERT INTO tollgate.entries VALUES (account_, entry, 'correction', ref_, back, s.reason, at_);
  IF s.purse IS NOT NULL THEN
    UPDATE tollgate.purses SET spent = spent - back WHERE account = account_ AND id = s.purse;
  END IF;
  UPDATE tollgate.usage AS u SET prompt_tokens = u.prompt_tokens + prompt,
    completion_tokens = u.completion_tokens + completion, characters = u.characters + characters_, cost = u.cost - back
    WHERE u.account = account_ AND u.day = s.day AND u.operation = s.operation AND u.provider = s.provider
    AND u.model = s.model AND u.key = s.key;
  RETURN true;
END $$;

CREATE OR REPLACE FUNCTION tollgate.settle(deadline double precision, account_ text, ref_ text, actual bigint, at_ bigint,
  reason_ text, day_ text, operation_ text, provider_ text, model_ text, key_ text, prompt bigint, completion bigint,
  characters_ bigint, remember bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE hold tollgate.holds; cost_ bigint; entry bigint;
BEGIN
  PERFORM tollgate.in_time(deadline);
  PERFORM FROM tollgate.accounts WHERE id = account_ FOR UPDATE;
  DELETE FROM tollgate.holds WHERE account = account_ AND ref = ref_ RETURNING * INTO hold;
  IF NOT FOUND THEN
    RETURN actual IS NOT NULL AND tollgate.correct(account_, ref_, actual, at_, prompt, completion, characters_);
  END IF;
  IF actual IS NULL THEN
    INSERT INTO tollgate.swept VALUES (account_, ref_, hold.amount, hold.purse,
      operation_ || ' ' || provider_ || '/' || model_ || ' (settled late: corrected)',
      day_, operation_, provider_, model_, key_, at_ + remember) ON CONFLICT DO NOTHING;
  END IF;
  cost_ := coalesce(actual, hold.amount);
  UPDATE tollgate.accounts SET held = held - hold.amount, balance = balance - cost_, spent = spent + cost_,
    last_entry = last_entry + 1, updated_at = at_ WHERE id = account_ RETURNING last_entry INTO entry;
  INSERT INTO tollgate.entries VALUES (account_, entry, 'charge', ref_, -cost_, reason_, at_);
  IF hold.purse IS NOT NULL THEN
    UPDATE tollgate.purses SET held = held - hold.amount, spent = spent + cost_ WHERE account = account_ AND id = hold.purse;
  END IF;
  INSERT INTO tollgate.usage AS u
    VALUES (account_, day_, operation_, provider_, model_, key_, 1, prompt, completion, characters_, cost_)
    ON CONFLICT (account, day, operation, provider, model, key) DO UPDATE SET requests = u.requests + 1,
    prompt_tokens = u.prompt_tokens + prompt, completion_tokens = u.completion_tokens + completion,
    characters = u.characters + characters_, cost = u.cost + cost_;
  RETURN true;
END $$;

CREATE OR REPLACE FUNCTION tollgate.release(deadline double precision, account_ text, ref_ text, remember bigint)
  RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE hold tollgate.holds;
BEGIN
  PERFORM tollgate.in_time(deadline);
  PERFORM FROM tollgate.accounts WHERE id = account_ FOR UPDATE;
  DELETE FROM tollgate.holds WHERE account = account_ AND ref = ref_ RETURNING * INTO hold;
  IF NOT FOUND THEN
    RETURN tollgate.correct(account_, ref_, 0, (extract(epoch FROM clock_timestamp()) * 1000)::bigint, 0, 0, 0);
  END IF;
  UPDATE tollgate.accounts SET held = held - hold.amount WHERE id = account_;
  IF hold.purse IS NOT NULL THEN
    UPDATE tollgate.purses SET held = held - hold.amount WHERE account = account_ AND id = hold.purse;
  END IF;
  INSERT INTO tollgate.released VALUES (account_, ref_, hold.expires_at + remember) ON CONFLICT DO NOTHING;
  RETURN true;
END $$;

CREATE OR REPLACE FUNCTION tollgate.credit(deadline double precision, account_ text, ref_ text, amount_ bigint,
  reason_ text, at_ bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE entry bigint;
BEGIN
  PERFORM tollgate.in_time(deadline);
  INSERT INTO tollgate.accounts (id) VALUES (account_) ON CONFLICT DO NOTHING;
  PERFORM FROM tollgate.accounts WHERE id = account_ FOR UPDATE;
  IF EXISTS (SELECT FROM tollgate.entries WHERE account = account_ AND ref = ref_ AND kind = 'credit') THEN RETURN false; END IF;
  UPDATE tollgate.accounts SET balance = balance + amount_, credited = credited + amount_,
    last_entry = last_entry + 1, updated_at = at_ WHERE id = account_ RETURNING last_entry INTO entry;
  INSERT INTO tollgate.entries VALUES (account_, entry, 'credit', ref_, amount_, reason_, at_);
  RETURN true;
END $$;
`;
