-- Second part, run where d_gen or connections tell of a start of an engine or a load of a model: d_gen.class and d_gen.life.
CREATE INDEX temp.d_gen_model ON d_gen (recording, upstream, model, a);

-- Starts of an upstream: a refused connection, 503 loading, or all its connections (2 at least) reset within 1 s.
CREATE TEMP TABLE d_reset AS
SELECT recording, c_upstream, t_connect_ns AS a, COALESCE(t_close_ns, 9223372036854775807) AS e, t_upstream_reset_ns AS r
FROM connections WHERE t_upstream_connected_ns IS NOT NULL AND connect_errno IS NULL;
CREATE INDEX temp.d_reset_r ON d_reset (recording, c_upstream, r);
CREATE INDEX temp.d_reset_e ON d_reset (recording, c_upstream, e);
CREATE TEMP TABLE d_start AS
SELECT recording, upstream, COALESCE(e, a) AS t FROM d_gen WHERE outcome = 'upstream_refused' OR status = 503 AND loading = 1
UNION ALL
SELECT x.recording, x.c_upstream, x.r FROM d_reset x
WHERE x.r IS NOT NULL
  AND EXISTS (SELECT 1 FROM d_reset y WHERE y.recording = x.recording AND y.c_upstream = x.c_upstream
    AND y.r BETWEEN x.r AND x.r + 1000000000 AND y.rowid <> x.rowid)
  AND NOT EXISTS (SELECT 1 FROM d_reset y WHERE y.recording = x.recording AND y.c_upstream = x.c_upstream
    AND y.e > x.r + 1000000000 AND y.a <= x.r AND (y.r IS NULL OR y.r > x.r + 1000000000));
-- An episode lasts from its first start to the first token of the first ok answer after it.
CREATE TEMP TABLE d_ok AS SELECT recording, upstream, f FROM d_gen WHERE outcome = 'ok' AND f IS NOT NULL;
CREATE INDEX temp.d_ok_f ON d_ok (recording, upstream, f);
CREATE TEMP TABLE d_episode AS
SELECT recording, upstream, MIN(t) AS s, f FROM (SELECT s.*, (SELECT MIN(f) FROM d_ok o
  WHERE o.recording = s.recording AND o.upstream = s.upstream AND o.f > s.t) AS f FROM d_start s)
GROUP BY recording, upstream, f;
UPDATE d_gen SET life = (SELECT COUNT(*) FROM d_episode p
  WHERE p.recording = d_gen.recording AND p.upstream = d_gen.upstream AND p.s <= d_gen.a)
WHERE EXISTS (SELECT 1 FROM d_episode);

-- cold: the engine tells of a load, or it arrived before the first token after a start.
CREATE TEMP TABLE d_load AS
SELECT recording AS rec, model AS mod, MIN(reported_load_ns) AS least, COUNT(*) AS n FROM d_gen WHERE reported_load_ns IS NOT NULL GROUP BY 1, 2;
UPDATE d_gen SET class = 'cold' WHERE finish_reason = 'load' OR status < 300 AND loading = 1
  OR reported_load_ns >= 100000000 AND EXISTS (SELECT 1 FROM d_load WHERE rec = recording AND mod IS model
    AND CASE WHEN n = 1 THEN reported_load_ns >= 1000000000 ELSE reported_load_ns >= 5 * least END);
UPDATE d_gen SET class = 'cold' WHERE outcome NOT IN ('upstream_refused') AND EXISTS (SELECT 1 FROM d_episode p
  WHERE p.recording = d_gen.recording AND p.upstream = d_gen.upstream AND p.f IS NOT NULL
    AND d_gen.a < p.f AND (d_gen.a >= p.s OR d_gen.f >= p.s));

-- warmup: the next ones after the latest cold one, until 3 of them have ended and 10 s have passed since its end.
CREATE TEMP TABLE d_after AS
SELECT id, recording, upstream, model, a, cold_a FROM (SELECT *, MAX(CASE WHEN class = 'cold' THEN a END)
  OVER (PARTITION BY recording, upstream, model ORDER BY a ROWS UNBOUNDED PRECEDING) AS cold_a FROM d_gen)
WHERE class IS NULL AND cold_a IS NOT NULL;
UPDATE d_gen SET class = 'warmup' FROM d_after n WHERE d_gen.id = n.id
  AND (n.a < (SELECT MAX(COALESCE(c.e, n.a + 1)) FROM d_gen c WHERE c.recording = n.recording AND c.upstream IS n.upstream
      AND c.model IS n.model AND c.a = n.cold_a) + 10000000000
    OR (SELECT COUNT(*) FROM (SELECT 1 FROM d_gen x WHERE x.recording = n.recording AND x.upstream IS n.upstream AND x.model IS n.model
      AND x.a > n.cold_a AND x.a < n.a AND x.e <= n.a LIMIT 3)) < 3);

DROP TABLE d_reset; DROP TABLE d_start; DROP TABLE d_ok; DROP TABLE d_episode; DROP TABLE d_load; DROP TABLE d_after;
