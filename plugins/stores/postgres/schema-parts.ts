/** Functions of documents, sets and counters; see `schema.ts`, whose functions are those of the ledger. */
export const PART_FUNCTIONS = `
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
  -- Makes, restarts and locks all windows, in order of their keys: calls that share some wait instead of deadlocking.
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
