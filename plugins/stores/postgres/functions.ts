import { SUM_NAMES } from '../kit/call-rows.ts';
import { LAST_PART, PART_MS } from '../kit/call-terms.ts';
import { TURN_MS } from '../kit/versioned-ledger.ts';
import { SKEW_MS } from './schema.ts';

// Database functions for atomic operations: one round trip, one transaction, rows locked in a fixed order.

/** SQLSTATE of a call that arrived after its deadline. Its detail is the server's time. */
export const LATE = 'TG001';
/** SQLSTATE of a schema that this version cannot read. Its detail is the version of the schema. */
export const UNREADABLE = 'TG002';
/** SQLSTATE of conflicting changes. */
export const CONFLICT = 'TG003';

/** Arbitrary number of the lock that the journal's move transaction holds. */
export const MOVE_LOCK = 7_070_655_084;
/** Maximum rows and bytes that one transaction moves from the journal. */
const ROWS_AT_ONCE = 50;
const BYTES_AT_ONCE = 1_000_000;
/** Time after which one transaction moves no further row: a busy server takes longer for each. */
const MOVE_MS = 25;

const DAY_PARTS = LAST_PART + 1;
const SUMS_ADDED = SUM_NAMES.map((name) => `${name} = r.${name} + excluded.${name}`).join(', ');
const CALL_COLUMNS =
  'account ref at counted_at name user_id key tags operation provider model request_id session outcome sums facts'.split(
    ' ',
  );
const CALL = CALL_COLUMNS.join(', ');

/** Functions; `deadline` is in milliseconds of the server's clock. */
export const FUNCTIONS = `
CREATE OR REPLACE FUNCTION tollgate.in_time(deadline double precision) RETURNS void LANGUAGE plpgsql AS $$
DECLARE now_ms double precision := extract(epoch FROM clock_timestamp()) * 1000;
BEGIN
  IF now_ms > deadline THEN RAISE EXCEPTION 'late' USING ERRCODE = '${LATE}', DETAIL = floor(now_ms)::bigint::text; END IF;
END $$;

-- Writes rows of the ledger if all rows still have the expected versions ('' for a missing row) and no other process has the turn.
-- Appends the ends of calls to the journal. Returns NULL after a write; else the current rows, and gives the turn to the process
-- that requests it.
CREATE OR REPLACE FUNCTION tollgate.change_ledger(deadline double precision, schema_ text, ids text[], versions text[],
  version_ text, rows_ jsonb, ends_ text, turn_ text) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE found_version text := (SELECT value FROM tollgate.meta WHERE name = 'version'); there bigint; same bigint; written bigint;
  now_ms double precision := extract(epoch FROM clock_timestamp()) * 1000;
  owner_ text := (SELECT owner FROM tollgate.turn WHERE until > now_ms);
BEGIN
  PERFORM tollgate.in_time(deadline);
  IF schema_ = '7' AND found_version = '8' THEN
    -- A gateway of schema 7 writes no terms: records until now are searched without them.
    IF ends_ IS NOT NULL THEN
      UPDATE tollgate.meta SET value = (floor(now_ms)::bigint + ${2 * SKEW_MS})::text
        WHERE name = 'terms_from' AND value::bigint < now_ms + ${SKEW_MS};
    END IF;
  ELSIF found_version <> schema_ THEN
    RAISE EXCEPTION 'another version' USING ERRCODE = '${UNREADABLE}', DETAIL = found_version;
  END IF;
  SELECT count(*), count(*) FILTER (WHERE l.version = expected.version) INTO there, same
    FROM (SELECT id, version FROM tollgate.ledger WHERE id = ANY (ids) ORDER BY id FOR UPDATE) AS l
    JOIN unnest(ids, versions) AS expected (id, version) ON expected.id = l.id;
  IF owner_ <> coalesce(turn_, '') OR there <> same OR there <> cardinality(array_remove(versions, '')) THEN
    INSERT INTO tollgate.turn AS t (owner, until) SELECT turn_, now_ms + ${TURN_MS} WHERE turn_ IS NOT NULL
      ON CONFLICT (id) DO UPDATE SET owner = excluded.owner, until = excluded.until WHERE t.until <= now_ms;
    RETURN (SELECT coalesce(jsonb_agg(jsonb_build_object('id', id, 'version', version, 'text', row)), '[]')
      FROM tollgate.ledger WHERE id = ANY (ids));
  END IF;
  INSERT INTO tollgate.ledger AS l (id, version, row, due, until)
    SELECT id, version_, "text", due, until FROM jsonb_to_recordset(rows_)
      AS r (id text, "text" text, due bigint, until bigint) ORDER BY id COLLATE "C"
    ON CONFLICT (id) DO UPDATE SET version = excluded.version, row = excluded.row, due = excluded.due, until = excluded.until
    WHERE l.version = ANY (versions);
  GET DIAGNOSTICS written = ROW_COUNT;
  -- Another transaction inserted a missing row in the meantime.
  IF written <> jsonb_array_length(rows_) THEN RAISE EXCEPTION 'conflict' USING ERRCODE = '${CONFLICT}'; END IF;
  IF owner_ = turn_ THEN UPDATE tollgate.turn SET until = 0 WHERE owner = turn_; END IF;
  IF ends_ IS NOT NULL THEN
    INSERT INTO tollgate.journal (checksum, data) VALUES (sha256(convert_to(ends_, 'UTF8')), ends_);
  END IF;
  RETURN NULL;
END $$;

-- Moves a small number of rows from the journal to entries, calls and rollup, oldest first. One transaction at a time
-- moves rows; others do not wait for it. An unreadable row is moved to its own table.
CREATE OR REPLACE FUNCTION tollgate.move_journal(deadline double precision, OUT state text, OUT damaged bigint) LANGUAGE plpgsql AS $$
DECLARE one tollgate.journal; ends json; moved bigint[] := '{}'; size bigint := 0; left_ int := ${ROWS_AT_ONCE};
  ends_at timestamptz := clock_timestamp() + interval '${MOVE_MS} milliseconds';
BEGIN
  PERFORM tollgate.in_time(deadline);
  damaged := 0;
  IF NOT pg_try_advisory_xact_lock(${MOVE_LOCK}) THEN state := 'busy'; RETURN; END IF;
  FOR one IN SELECT * FROM tollgate.journal ORDER BY n LIMIT ${ROWS_AT_ONCE} LOOP
    EXIT WHEN size > ${BYTES_AT_ONCE} OR clock_timestamp() > ends_at;
    left_ := left_ - 1;
    size := size + octet_length(one.data);
    moved := moved || one.n;
    BEGIN
      IF sha256(convert_to(one.data, 'UTF8')) <> one.checksum THEN RAISE data_exception; END IF;
      ends := one.data;
      INSERT INTO tollgate.entries SELECT * FROM json_populate_recordset(NULL::tollgate.entries, ends -> 'entries');
      INSERT INTO tollgate.calls (${CALL})
        SELECT ${CALL} FROM json_populate_recordset(NULL::tollgate.calls, ends -> 'calls')
        ON CONFLICT (account, ref) DO UPDATE SET ${CALL_COLUMNS.map((name) => `${name} = excluded.${name}`).join(', ')};
      -- Do not restore a deleted record.
      UPDATE tollgate.calls AS c SET (${CALL}) = ROW (${CALL_COLUMNS.map((name) => `r.${name}`).join(', ')})
        FROM json_populate_recordset(NULL::tollgate.calls, ends -> 'corrected') AS r
        WHERE c.account = r.account AND c.ref = r.ref;
      INSERT INTO tollgate.rollup AS r SELECT * FROM json_populate_recordset(NULL::tollgate.rollup, ends -> 'rollup') ORDER BY hour, id
        ON CONFLICT (hour, id) DO UPDATE SET ${SUMS_ADDED};
      INSERT INTO tollgate.hours AS r SELECT hour, ${SUM_NAMES.map((name) => `sum(${name})`).join(', ')}
        FROM json_populate_recordset(NULL::tollgate.rollup, coalesce(ends -> 'rollup', '[]')) GROUP BY hour
        ON CONFLICT (hour) DO UPDATE SET ${SUMS_ADDED};
      INSERT INTO tollgate.call_terms SELECT * FROM json_populate_recordset(NULL::tollgate.call_terms, coalesce(ends -> 'terms', '[]'))
        ON CONFLICT DO NOTHING;
    EXCEPTION WHEN data_exception OR integrity_constraint_violation THEN
      INSERT INTO tollgate.damaged_journal VALUES
        (one.n, floor(extract(epoch FROM clock_timestamp()) * 1000), one.checksum, one.data);
      damaged := damaged + 1;
    END;
  END LOOP;
  -- Deletes by number: rows that other transactions committed in the meantime may have smaller numbers.
  DELETE FROM tollgate.journal WHERE n = ANY (moved);
  state := CASE WHEN left_ = 0 OR size > ${BYTES_AT_ONCE} OR clock_timestamp() > ends_at THEN 'more' ELSE 'done' END;
END $$;

-- Deletes up to a thousand calls settled before a time, and stores the time from which records are complete.
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

-- Deletes up to two thousand terms of the days before a day.
CREATE OR REPLACE FUNCTION tollgate.forget_terms(deadline double precision, before_ int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE forgotten bigint;
BEGIN
  PERFORM tollgate.in_time(deadline);
  DELETE FROM tollgate.call_terms
    WHERE ctid = ANY (ARRAY(SELECT ctid FROM tollgate.call_terms WHERE day < before_ ORDER BY day LIMIT 2000));
  GET DIAGNOSTICS forgotten = ROW_COUNT;
  RETURN forgotten;
END $$;

-- Records of some parts of time, at least from_ and before a position. A loop, because the planner expects too many rows of a join.
CREATE OR REPLACE FUNCTION tollgate.calls_of_parts(starts bigint[], from_ bigint, at_ bigint, n_ bigint, only_failed boolean)
  RETURNS SETOF tollgate.calls LANGUAGE plpgsql STABLE ROWS 1000 AS $$
DECLARE start bigint;
BEGIN
  FOREACH start IN ARRAY starts LOOP
    IF only_failed THEN
      RETURN QUERY SELECT * FROM tollgate.calls AS c WHERE c.outcome <> 'ok'
        AND c.at >= greatest(start, from_) AND c.at < start + ${PART_MS} AND (c.at, c.n) < (at_, n_);
    ELSE
      RETURN QUERY SELECT * FROM tollgate.calls AS c
        WHERE c.at >= greatest(start, from_) AND c.at < start + ${PART_MS} AND (c.at, c.n) < (at_, n_);
    END IF;
  END LOOP;
END $$;

-- Starts of the parts of time from since_ to until_ in which each list of terms has a term, newest first. The rarest list of a day
-- decides which parts are looked up. Stops after most_ parts, or fewer where each has many records.
CREATE OR REPLACE FUNCTION tollgate.find_parts(lists jsonb, since_ bigint, until_ bigint, most_ int) RETURNS SETOF bigint
  LANGUAGE plpgsql STABLE AS $$
DECLARE first_day int := since_ / ${DAY_PARTS}; last_day int := until_ / ${DAY_PARTS}; day_ int := last_day;
  low int; high int; rarest jsonb; terms bigint[]; left_ int := most_; rows_ int; dense bigint;
BEGIN
  LOOP
    SELECT max(t.day) INTO day_ FROM tollgate.call_terms AS t WHERE t.day <= day_;
    EXIT WHEN day_ IS NULL OR day_ < first_day;
    low := CASE WHEN day_ = first_day THEN since_ % ${DAY_PARTS} ELSE 0 END;
    high := CASE WHEN day_ = last_day THEN until_ % ${DAY_PARTS} ELSE ${DAY_PARTS - 1} END;
    rarest := lists -> 0;
    IF jsonb_array_length(lists) > 1 THEN SELECT l.list INTO rarest FROM jsonb_array_elements(lists) WITH ORDINALITY AS l (list, place) ORDER BY (SELECT count(*) FROM
      (SELECT FROM tollgate.call_terms AS t WHERE t.day = day_ AND t.term = ANY (ARRAY(SELECT e::bigint FROM jsonb_array_elements_text(l.list) AS e))
        AND t.part BETWEEN low AND high LIMIT 1000) AS counted), l.place LIMIT 1;
    END IF;
    terms := ARRAY(SELECT e::bigint FROM jsonb_array_elements_text(rarest) AS e);
    SELECT sum(h.requests) INTO dense FROM tollgate.hours AS h
      WHERE h.hour >= day_::bigint * ${DAY_PARTS * PART_MS} AND h.hour < (day_ + 1)::bigint * ${DAY_PARTS * PART_MS};
    left_ := least(left_, greatest(1, 2000 * ${DAY_PARTS} / greatest(1, dense)));
    RETURN QUERY SELECT DISTINCT (day_::bigint * ${DAY_PARTS} + t.part) * ${PART_MS} FROM tollgate.call_terms AS t
      WHERE t.day = day_ AND t.term = ANY (terms) AND t.part BETWEEN low AND high
        AND (jsonb_array_length(lists) = 1 OR NOT EXISTS (SELECT FROM jsonb_array_elements(lists) AS l (list) WHERE l.list <> rarest AND NOT EXISTS (
          SELECT FROM tollgate.call_terms AS o WHERE o.day = day_ AND o.part = t.part
            AND o.term = ANY (ARRAY(SELECT e::bigint FROM jsonb_array_elements_text(l.list) AS e)))))
      ORDER BY 1 DESC LIMIT left_;
    GET DIAGNOSTICS rows_ = ROW_COUNT;
    left_ := left_ - rows_;
    EXIT WHEN left_ <= 0;
    day_ := day_ - 1;
  END LOOP;
  -- More parts may follow.
  IF left_ <= 0 THEN RETURN NEXT -1; END IF;
END $$;

CREATE OR REPLACE FUNCTION tollgate.put_document(deadline double precision, key_ text, value_ text, expires_ bigint)
  RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tollgate.in_time(deadline);
  INSERT INTO tollgate.documents VALUES (key_, value_, expires_)
    ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires = excluded.expires;
  RETURN true;
END $$;

CREATE OR REPLACE FUNCTION tollgate.drop_document(deadline double precision, key_ text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tollgate.in_time(deadline);
  DELETE FROM tollgate.documents WHERE key = key_;
  RETURN FOUND;
END $$;

CREATE OR REPLACE FUNCTION tollgate.add_member(deadline double precision, name_ text, member_ text, max_ bigint)
  RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tollgate.in_time(deadline);
  IF max_ IS NOT NULL THEN
    PERFORM pg_advisory_xact_lock(hashtextextended('tollgate set ' || name_, 0));
    IF EXISTS (SELECT FROM tollgate.members WHERE name = name_ AND member = member_) THEN RETURN 'present'; END IF;
    IF (SELECT count(*) FROM tollgate.members WHERE name = name_) >= max_ THEN RETURN 'full'; END IF;
  END IF;
  INSERT INTO tollgate.members VALUES (name_, member_) ON CONFLICT DO NOTHING;
  RETURN CASE WHEN FOUND THEN 'added' ELSE 'present' END;
END $$;

CREATE OR REPLACE FUNCTION tollgate.drop_member(deadline double precision, name_ text, member_ text)
  RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tollgate.in_time(deadline);
  DELETE FROM tollgate.members WHERE name = name_ AND member = member_;
  RETURN FOUND;
END $$;

CREATE OR REPLACE FUNCTION tollgate.take(deadline double precision, now_ bigint, keys text[], limits bigint[],
  lengths bigint[], amounts bigint[], OUT refused int, OUT used_ bigint[], OUT ends bigint[]) LANGUAGE plpgsql AS $$
DECLARE w tollgate.windows; used_by jsonb := '{}'; ends_by jsonb := '{}'; before jsonb;
BEGIN
  PERFORM tollgate.in_time(deadline);
  -- Creates, restarts and locks all windows in key order, so that calls with common windows do not deadlock.
  FOR w IN INSERT INTO tollgate.windows AS old
      SELECT k, 0, now_ + length FROM (SELECT DISTINCT ON (k) k COLLATE "C" AS k, length FROM unnest(keys, lengths) AS u (k, length)) AS wanted
      ORDER BY k
      ON CONFLICT (key) DO UPDATE SET used = CASE WHEN old.resets_at > now_ THEN old.used ELSE 0 END,
        resets_at = CASE WHEN old.resets_at > now_ THEN old.resets_at ELSE excluded.resets_at END RETURNING * LOOP
    used_by := used_by || jsonb_build_object(w.key, w.used);
    ends_by := ends_by || jsonb_build_object(w.key, w.resets_at);
  END LOOP;
  before := used_by;
  refused := 0;
  FOR i IN 1 .. cardinality(keys) LOOP
    IF (used_by ->> keys[i])::bigint + amounts[i] > limits[i] THEN refused := i; EXIT; END IF;
    used_by := used_by || jsonb_build_object(keys[i], (used_by ->> keys[i])::bigint + amounts[i]);
  END LOOP;
  IF refused > 0 THEN used_by := before; END IF;
  FOR i IN 1 .. cardinality(keys) LOOP
    used_[i] := (used_by ->> keys[i])::bigint;
    ends[i] := (ends_by ->> keys[i])::bigint;
    IF refused = 0 AND amounts[i] <> 0 THEN UPDATE tollgate.windows SET used = used_[i] WHERE key = keys[i]; END IF;
  END LOOP;
END $$;

CREATE OR REPLACE FUNCTION tollgate.adjust(deadline double precision, now_ bigint, key_ text, delta bigint)
  RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tollgate.in_time(deadline);
  UPDATE tollgate.windows SET used = greatest(0, used + delta) WHERE key = key_ AND resets_at > now_;
  RETURN FOUND;
END $$;

CREATE OR REPLACE FUNCTION tollgate.lease(deadline double precision, now_ bigint, key_ text, id_ text, limit_ bigint,
  ttl bigint) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tollgate.in_time(deadline);
  PERFORM pg_advisory_xact_lock(hashtextextended('tollgate lease ' || key_, 0));
  DELETE FROM tollgate.leases WHERE key = key_ AND expires_at <= now_;
  UPDATE tollgate.leases SET expires_at = now_ + ttl WHERE key = key_ AND id = id_;
  IF FOUND THEN RETURN true; END IF;
  IF (SELECT count(*) FROM tollgate.leases WHERE key = key_) >= limit_ THEN RETURN false; END IF;
  INSERT INTO tollgate.leases VALUES (key_, id_, now_ + ttl);
  RETURN true;
END $$;

CREATE OR REPLACE FUNCTION tollgate.end_lease(deadline double precision, key_ text, id_ text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
  PERFORM tollgate.in_time(deadline);
  DELETE FROM tollgate.leases WHERE key = key_ AND id = id_;
  RETURN FOUND;
END $$;

CREATE OR REPLACE FUNCTION tollgate.next(deadline double precision, key_ text, by_ bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE result bigint;
BEGIN
  PERFORM tollgate.in_time(deadline);
  INSERT INTO tollgate.numbers AS n VALUES (key_, by_) ON CONFLICT (key) DO UPDATE SET value = n.value + by_ RETURNING value INTO result;
  RETURN result;
END $$;
`;

/**
 * Function for concurrent gateways of schema 6, which call it with six arguments. Their changes also go to the journal.
 */
export const FUNCTIONS_FOR_6 = `
CREATE OR REPLACE FUNCTION tollgate.change_ledger(deadline double precision, schema_ text, ids text[], versions text[],
  version_ text, changes jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
  RETURN tollgate.change_ledger(deadline, '7', ids, versions, version_, changes -> 'rows', nullif((changes - 'rows')::text, '{}'), NULL);
END $$;
`;
