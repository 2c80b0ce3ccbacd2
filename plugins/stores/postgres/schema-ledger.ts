import { SUM_NAMES } from '../kit/call-rows.ts';

/** The SQLSTATE of a call that reached the server after its caller had given up. */
export const LATE = 'TG001';

/** Where the cost is in the sums of a call, counted from 1. */
const COST = SUM_NAMES.indexOf('cost') + 1;
const SUM_VALUES = SUM_NAMES.map((_, index) => `c[${index + 1}]`).join(', ');
const SUMS_ADDED = SUM_NAMES.map((name) => `${name} = r.${name} + excluded.${name}`).join(', ');

/**
 * Functions of the ledger, replaced whenever the version rises. `deadline` is in milliseconds of the server's clock, `d` the
 * dimensions of a call and behind them the id of its request, `c` its sums, as the kit has them; `row_` names its row of the rollup.
 */
export const FUNCTIONS = `
CREATE OR REPLACE FUNCTION tollgate.in_time(deadline double precision) RETURNS void LANGUAGE plpgsql AS $$
DECLARE now_ms double precision := extract(epoch FROM clock_timestamp()) * 1000;
BEGIN
  IF now_ms > deadline THEN RAISE EXCEPTION 'late' USING ERRCODE = '${LATE}', DETAIL = floor(now_ms)::bigint::text; END IF;
END $$;

-- What is used of each budget, in the order asked for; locks them in the order of their ids.
CREATE OR REPLACE FUNCTION tollgate.lock_budgets(ids text[]) RETURNS bigint[] LANGUAGE sql AS $$
  SELECT array_agg(locked.used ORDER BY asked.place) FROM unnest(ids) WITH ORDINALITY AS asked (id, place)
    JOIN (SELECT id, spent + held AS used FROM tollgate.budgets WHERE id = ANY (ids) ORDER BY id FOR UPDATE) AS locked
    ON locked.id = asked.id COLLATE "C";
$$;

CREATE OR REPLACE FUNCTION tollgate.reserve(deadline double precision, account_ text, name_ text, ref_ text, amount_ bigint,
  floor_ bigint, expires_ bigint, budgets_ text[], limits_ bigint[], untils_ bigint[], facts_ text,
  OUT outcome text, OUT refused int, OUT used_ bigint[]) LANGUAGE plpgsql AS $$
DECLARE free bigint;
BEGIN
  PERFORM tollgate.in_time(deadline);
  SELECT balance - held INTO free FROM tollgate.accounts WHERE id = account_ FOR UPDATE;
  IF NOT FOUND THEN
    INSERT INTO tollgate.accounts (id, name) VALUES (account_, name_) ON CONFLICT DO NOTHING;
    SELECT balance - held INTO free FROM tollgate.accounts WHERE id = account_ FOR UPDATE;
  END IF;
  outcome := 'duplicate';
  IF EXISTS (SELECT FROM tollgate.entries WHERE account = account_ AND ref = ref_ AND kind = 'charge')
    OR EXISTS (SELECT FROM tollgate.released WHERE account = account_ AND ref = ref_)
    OR EXISTS (SELECT FROM tollgate.holds WHERE account = account_ AND ref = ref_) THEN RETURN; END IF;
  outcome := 'insufficient';
  IF free - amount_ < floor_ THEN RETURN; END IF;
  used_ := '{}';
  IF cardinality(budgets_) > 0 THEN
    -- Before any is locked: who holds one and waits for a new one would end in a deadlock.
    INSERT INTO tollgate.budgets (id, until) SELECT u.id, u.until FROM unnest(budgets_, untils_) AS u (id, until)
      WHERE NOT EXISTS (SELECT FROM tollgate.budgets AS b WHERE b.id = u.id COLLATE "C")
      ORDER BY u.id COLLATE "C" ON CONFLICT DO NOTHING;
    used_ := tollgate.lock_budgets(budgets_);
    outcome := 'over_budget';
    FOR i IN 1 .. cardinality(budgets_) LOOP
      IF used_[i] + amount_ > limits_[i] THEN refused := i; RETURN; END IF;
      used_[i] := used_[i] + amount_;
    END LOOP;
    UPDATE tollgate.budgets SET held = held + amount_ WHERE id = ANY (budgets_);
  END IF;
  INSERT INTO tollgate.holds VALUES (account_, ref_, amount_, expires_, budgets_, facts_);
  UPDATE tollgate.accounts SET held = held + amount_ WHERE id = account_;
  outcome := 'held';
END $$;

-- Ends what the budgets hold, and charges those that are not in uncharged_.
CREATE OR REPLACE FUNCTION tollgate.charge_budgets(ids text[], uncharged_ text[], released_ bigint, charged bigint)
  RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF cardinality(ids) = 0 THEN RETURN; END IF;
  IF cardinality(ids) > 1 THEN PERFORM tollgate.lock_budgets(ids); END IF;
  UPDATE tollgate.budgets SET held = held - released_,
    spent = spent + CASE WHEN id = ANY (uncharged_) THEN 0 ELSE charged END WHERE id = ANY (ids);
END $$;

-- Adds to a row of the rollup; one of which nothing is left goes.
CREATE OR REPLACE FUNCTION tollgate.count_call(at_ bigint, row_ text, d text[], c bigint[])
  RETURNS void LANGUAGE plpgsql AS $$
DECLARE hour_ bigint := at_ - at_ % 3600000;
BEGIN
  INSERT INTO tollgate.rollup AS r VALUES (hour_, row_, d[1], d[2], d[3], d[4], d[5], d[6], d[7], ${SUM_VALUES})
    ON CONFLICT (hour, id) DO UPDATE SET ${SUMS_ADDED};
  IF c[1] < 0 THEN DELETE FROM tollgate.rollup WHERE hour = hour_ AND id = row_ AND requests = 0; END IF;
END $$;

CREATE OR REPLACE FUNCTION tollgate.record_call(account_ text, ref_ text, at_ bigint, d text[], c bigint[], session_ text,
  outcome_ text, facts_ text) RETURNS void LANGUAGE sql AS $$
  INSERT INTO tollgate.calls AS r (account, ref, at, name, user_id, key, tags, operation, provider, model, request_id, session, outcome,
    sums, facts) VALUES (account_, ref_, at_, d[1], d[2], d[3], d[4], d[5], d[6], d[7], d[8], session_, outcome_, c, facts_)
    ON CONFLICT (account, ref) DO UPDATE SET at = excluded.at, user_id = excluded.user_id, key = excluded.key,
    tags = excluded.tags, operation = excluded.operation, provider = excluded.provider, model = excluded.model,
    request_id = excluded.request_id, session = excluded.session, outcome = excluded.outcome, sums = excluded.sums, facts = excluded.facts;
$$;

-- Replaces what the sweeper charged by what the request came to; its entry is of a kind of its own, which reads as a charge.
-- The record and the rollup change where they are, unless facts_ is NULL: then they only lose the cost.
CREATE OR REPLACE FUNCTION tollgate.correct(account_ text, ref_ text, actual bigint, at_ bigint, uncharged_ text[], row_ text,
  d text[], c bigint[], session_ text, outcome_ text, facts_ text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE s tollgate.swept; back bigint; entry bigint; none bigint[] := array_fill(0::bigint, ARRAY[${SUM_NAMES.length}]);
BEGIN
  DELETE FROM tollgate.swept WHERE account = account_ AND ref = ref_ RETURNING * INTO s;
  IF NOT FOUND THEN RETURN false; END IF;
  back := s.amount - actual;
  UPDATE tollgate.accounts SET balance = balance + back, spent = spent - back, last_entry = last_entry + 1,
    updated_at = at_ WHERE id = account_ RETURNING last_entry INTO entry;
  INSERT INTO tollgate.entries VALUES (account_, entry, 'correction', ref_, back, s.reason, at_);
  IF cardinality(s.budgets) > 1 THEN PERFORM tollgate.lock_budgets(s.budgets); END IF;
  UPDATE tollgate.budgets SET spent = spent - CASE WHEN id = ANY (uncharged_) THEN s.amount ELSE back END
    WHERE id = ANY (s.budgets);
  IF facts_ IS NULL THEN
    none[${COST}] := -back;
    PERFORM tollgate.count_call(s.at, s.rollup_id, s.dimensions, none);
    UPDATE tollgate.calls SET sums[${COST}] = actual WHERE account = account_ AND ref = ref_;
    RETURN true;
  END IF;
  PERFORM tollgate.count_call(s.at, row_, d, c);
  PERFORM tollgate.count_call(s.at, s.rollup_id, s.dimensions,
    ARRAY(SELECT -n FROM unnest(s.sums) WITH ORDINALITY AS u (n, i) ORDER BY i));
  IF EXISTS (SELECT FROM tollgate.calls WHERE account = account_ AND ref = ref_) THEN
    PERFORM tollgate.record_call(account_, ref_, s.at, d, c, session_, outcome_, facts_);
  END IF;
  RETURN true;
END $$;

-- Without an actual cost it is the sweeper's: then correction_ is the reason of what may correct it.
CREATE OR REPLACE FUNCTION tollgate.settle(deadline double precision, account_ text, ref_ text, actual bigint, at_ bigint,
  reason_ text, correction_ text, remember bigint, uncharged_ text[], row_ text, d text[], c bigint[], session_ text,
  outcome_ text, facts_ text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE hold tollgate.holds; cost_ bigint; entry bigint;
BEGIN
  PERFORM tollgate.in_time(deadline);
  PERFORM FROM tollgate.accounts WHERE id = account_ FOR UPDATE;
  DELETE FROM tollgate.holds WHERE account = account_ AND ref = ref_ RETURNING * INTO hold;
  IF NOT FOUND THEN
    RETURN actual IS NOT NULL AND tollgate.correct(account_, ref_, actual, at_, uncharged_, row_, d, c, session_,
      outcome_, facts_);
  END IF;
  cost_ := coalesce(actual, hold.amount);
  c[${COST}] := cost_;
  IF actual IS NULL THEN
    INSERT INTO tollgate.swept VALUES (account_, ref_, cost_, hold.budgets, correction_, at_, row_, d, c, at_ + remember)
      ON CONFLICT DO NOTHING;
  END IF;
  UPDATE tollgate.accounts SET held = held - hold.amount, balance = balance - cost_, spent = spent + cost_,
    last_entry = last_entry + 1, updated_at = at_ WHERE id = account_ RETURNING last_entry INTO entry;
  INSERT INTO tollgate.entries VALUES (account_, entry, 'charge', ref_, -cost_, reason_, at_);
  PERFORM tollgate.count_call(at_, row_, d, c);
  PERFORM tollgate.record_call(account_, ref_, at_, d, c, session_, outcome_, facts_);
  -- Last, because calls of other accounts wait for them.
  PERFORM tollgate.charge_budgets(hold.budgets, uncharged_, hold.amount, cost_);
  RETURN true;
END $$;

CREATE OR REPLACE FUNCTION tollgate.release(deadline double precision, account_ text, ref_ text, at_ bigint, remember bigint,
  row_ text, d text[], c bigint[], session_ text, outcome_ text, facts_ text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE hold tollgate.holds;
BEGIN
  PERFORM tollgate.in_time(deadline);
  PERFORM FROM tollgate.accounts WHERE id = account_ FOR UPDATE;
  DELETE FROM tollgate.holds WHERE account = account_ AND ref = ref_ RETURNING * INTO hold;
  IF NOT FOUND THEN
    RETURN tollgate.correct(account_, ref_, 0, at_, '{}', row_, d, c, session_, outcome_, facts_);
  END IF;
  UPDATE tollgate.accounts SET held = held - hold.amount WHERE id = account_;
  PERFORM tollgate.charge_budgets(hold.budgets, '{}', hold.amount, 0);
  INSERT INTO tollgate.released VALUES (account_, ref_, hold.expires_at + remember) ON CONFLICT DO NOTHING;
  IF facts_ IS NOT NULL THEN
    PERFORM tollgate.count_call(at_, row_, d, c);
    PERFORM tollgate.record_call(account_, ref_, at_, d, c, session_, outcome_, facts_);
  END IF;
  RETURN true;
END $$;

CREATE OR REPLACE FUNCTION tollgate.credit(deadline double precision, account_ text, name_ text, ref_ text, amount_ bigint,
  reason_ text, at_ bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE entry bigint;
BEGIN
  PERFORM tollgate.in_time(deadline);
  INSERT INTO tollgate.accounts (id, name) VALUES (account_, name_) ON CONFLICT DO NOTHING;
  PERFORM FROM tollgate.accounts WHERE id = account_ FOR UPDATE;
  IF EXISTS (SELECT FROM tollgate.entries WHERE account = account_ AND ref = ref_ AND kind = 'credit') THEN RETURN false; END IF;
  UPDATE tollgate.accounts SET balance = balance + amount_, credited = credited + amount_,
    last_entry = last_entry + 1, updated_at = at_ WHERE id = account_ RETURNING last_entry INTO entry;
  INSERT INTO tollgate.entries VALUES (account_, entry, 'credit', ref_, amount_, reason_, at_);
  RETURN true;
END $$;

-- Forgets up to a thousand calls settled before a time, and from when on the records are whole.
CREATE OR REPLACE FUNCTION tollgate.forget_calls(deadline double precision, before_ bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE forgotten bigint;
BEGIN
  PERFORM tollgate.in_time(deadline);
  INSERT INTO tollgate.meta AS m VALUES ('records_from', before_::text) ON CONFLICT (name)
    DO UPDATE SET value = excluded.value WHERE m.value::bigint < before_;
  DELETE FROM tollgate.calls WHERE ctid = ANY (ARRAY(SELECT ctid FROM tollgate.calls WHERE at < before_ ORDER BY at LIMIT 1000));
  GET DIAGNOSTICS forgotten = ROW_COUNT;
  RETURN forgotten;
END $$;
`;
