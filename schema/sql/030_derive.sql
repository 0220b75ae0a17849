-- What needs the whole table: run after loading, in the loader's transaction; after load --append for all of it again.
DELETE FROM request_blobs WHERE id NOT IN (SELECT id FROM request_facts);
DELETE FROM losses WHERE loss IN ('partial_request', 'token_mismatch', 'client_clock_skew');
UPDATE request_facts SET losses = NULL, start_class = NULL, zeros_left_out = NULL, concurrent = NULL
WHERE COALESCE(losses, start_class, zeros_left_out, concurrent) IS NOT NULL;

-- d_gen holds the generations with what the steps below ask for: a arrival, f first token else end, e end.
CREATE TEMP TABLE d_gen AS
SELECT recording, request, upstream, model, path, t_arrive_mono_ns AS a, COALESCE(t_first_token_ns, t_done_ns) AS f,
  COALESCE(t_done_ns, t_end_ns, CASE WHEN outcome = 'lost' THEN t_lost_ns END) AS e,
  outcome, status, loading, cached_tokens, reported_load_ns, finish_reason, api, server, matched_stop_seen, NULL AS class, 0 AS life
FROM (SELECT r.*, f.t_lost_ns FROM requests r JOIN request_facts f ON f.recording = r.recording AND f.request = r.request)
WHERE generation = 1;
CREATE INDEX temp.d_gen_key ON d_gen (recording, request);
CREATE INDEX temp.d_gen_model ON d_gen (recording, upstream, model, a);

-- The first request of a connection has the connect inside.
UPDATE connections SET requests = n
FROM (SELECT recording AS rec, connection AS con, COUNT(*) AS n FROM request_facts GROUP BY 1, 2)
WHERE recording = rec AND connection = con;
UPDATE request_facts SET t_connect_ns = c.t_connect_ns, upstream_connect_ns = c.t_upstream_connected_ns - c.t_upstream_start_ns
FROM (SELECT recording AS rec, connection AS con, MIN(request) AS req FROM request_facts GROUP BY 1, 2)
  JOIN connections c ON c.recording = rec AND c.connection = con
WHERE request_facts.recording = rec AND request_facts.request = req;

-- concurrent: a running sum over arrivals (+1) and ends (-1), ends first at equal times, since t_arrive <= t < t_end.
CREATE TEMP TABLE d_flight AS
SELECT recording, request, SUM(d) OVER (PARTITION BY recording, upstream ORDER BY t, kind RANGE UNBOUNDED PRECEDING) - d AS n
FROM (SELECT recording, upstream, a AS t, 1 AS kind, request, CASE WHEN e <= a THEN 0 ELSE 1 END AS d FROM d_gen
  UNION ALL SELECT recording, upstream, e, 0, NULL, -1 FROM d_gen WHERE e > a);
UPDATE request_facts SET concurrent = d.n FROM d_flight d
WHERE d.request IS NOT NULL AND request_facts.recording = d.recording AND request_facts.request = d.request;

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
UPDATE d_gen SET class = 'cold' WHERE finish_reason = 'load' OR api LIKE 'lmstudio%' AND reported_load_ns > 0
  OR reported_load_ns >= 100000000 AND EXISTS (SELECT 1 FROM d_load WHERE rec = recording AND mod IS model
    AND CASE WHEN n = 1 THEN reported_load_ns >= 1000000000 ELSE reported_load_ns >= 5 * least END);
UPDATE d_gen SET class = 'cold' WHERE outcome NOT IN ('upstream_refused') AND EXISTS (SELECT 1 FROM d_episode p
  WHERE p.recording = d_gen.recording AND p.upstream = d_gen.upstream AND p.f IS NOT NULL
    AND d_gen.a < p.f AND (d_gen.a >= p.s OR d_gen.f >= p.s));

-- warmup: the next ones after the latest cold one, until 3 of them have ended and 10 s have passed since its end.
CREATE TEMP TABLE d_after AS
SELECT recording, request, upstream, model, a, cold_a FROM (SELECT *, MAX(CASE WHEN class = 'cold' THEN a END)
  OVER (PARTITION BY recording, upstream, model ORDER BY a ROWS UNBOUNDED PRECEDING) AS cold_a FROM d_gen)
WHERE class IS NULL AND cold_a IS NOT NULL;
UPDATE d_gen SET class = 'warmup' FROM d_after n WHERE d_gen.recording = n.recording AND d_gen.request = n.request
  AND (n.a < (SELECT MAX(COALESCE(c.e, n.a + 1)) FROM d_gen c WHERE c.recording = n.recording AND c.upstream IS n.upstream
      AND c.model IS n.model AND c.a = n.cold_a) + 10000000000
    OR (SELECT COUNT(*) FROM (SELECT 1 FROM d_gen x WHERE x.recording = n.recording AND x.upstream IS n.upstream AND x.model IS n.model
      AND x.a > n.cold_a AND x.a < n.a AND x.e <= n.a LIMIT 3)) < 3);
UPDATE request_facts SET start_class = d.class FROM d_gen d
WHERE d.class IS NOT NULL AND request_facts.recording = d.recording AND request_facts.request = d.request;

-- zeros_left_out: told above 0 elsewhere, and never 0, by the same upstream, model and route within one process life, where
-- the engine is one that leaves zeros out: vLLM or SGLang, by --note engine=, SGLang's matched_stop, or their HTTP server.
UPDATE request_facts SET zeros_left_out = 1
FROM d_gen d JOIN (SELECT recording AS rec, upstream AS up, model AS mod, path AS p, life AS l FROM d_gen g
  GROUP BY 1, 2, 3, 4, 5 HAVING MIN(cached_tokens) > 0 AND (MAX(matched_stop_seen) = 1 OR MAX(server LIKE 'uvicorn%') = 1
    OR EXISTS (SELECT 1 FROM notes n WHERE n.recording = g.recording AND n.key = 'engine'
      AND (n.value LIKE 'vllm%' OR n.value LIKE 'sglang%'))))
  ON rec = d.recording AND up = d.upstream AND mod IS d.model AND p = d.path AND l = d.life
WHERE d.cached_tokens IS NULL AND d.outcome = 'ok' AND request_facts.recording = d.recording AND request_facts.request = d.request;

-- Losses that became known after their request had ended.
UPDATE request_facts SET lost = 1, t_lost_ns = l.from_ns, itl_absent = COALESCE(itl_absent, 'lost')
FROM losses l
WHERE l.request IS NOT NULL AND l.loss IN ('queue_full', 'pieces_dropped') AND request_facts.lost = 0
  AND request_facts.recording = l.recording AND request_facts.request = l.request;

-- Found while loading. loss_texts is the catalogue of losses, put there by the loader.
INSERT INTO losses (recording, loss, severity, side, from_ns, to_ns, count, request, meaning, remedy)
SELECT recording, loss, severity, side, from_ns, to_ns, n, request, meaning, remedy FROM (
    SELECT recording, 'partial_request' AS name, MIN(t_arrive_ns) AS from_ns, MAX(COALESCE(t_end_ns, t_arrive_ns)) AS to_ns,
      COUNT(*) AS n, NULL AS request FROM request_facts WHERE partial = 1 GROUP BY recording
    UNION ALL SELECT recording, 'token_mismatch', t_arrive_ns, COALESCE(t_end_ns, t_arrive_ns), ABS(token_mismatch), request
      FROM request_facts WHERE token_mismatch IS NOT NULL
    UNION ALL SELECT recording, 'client_clock_skew', t_arrive_ns, t_arrive_ns, 1, request FROM request_facts
      WHERE arrive_wall_ns - queue_start_wall_ns < -1000000 OR arrive_wall_ns - queue_start_wall_ns > 3600000000000)
  JOIN loss_texts ON loss = name;
-- Times of day, by the anchor nearest before, else the first one.
UPDATE losses SET
  from_wall_ns = COALESCE((SELECT wall_ns + from_ns - mono_ns FROM anchors a WHERE a.recording = losses.recording AND mono_ns <= from_ns
      ORDER BY mono_ns DESC LIMIT 1),
    (SELECT wall_ns + from_ns - mono_ns FROM anchors a WHERE a.recording = losses.recording ORDER BY mono_ns LIMIT 1)),
  to_wall_ns = COALESCE((SELECT wall_ns + to_ns - mono_ns FROM anchors a WHERE a.recording = losses.recording AND mono_ns <= to_ns
      ORDER BY mono_ns DESC LIMIT 1),
    (SELECT wall_ns + to_ns - mono_ns FROM anchors a WHERE a.recording = losses.recording ORDER BY mono_ns LIMIT 1));

UPDATE request_facts SET losses = names
FROM (SELECT recording AS rec, request AS req, GROUP_CONCAT(DISTINCT loss) AS names FROM losses WHERE request IS NOT NULL GROUP BY 1, 2)
WHERE recording = rec AND request = req;
UPDATE request_facts SET losses = CASE WHEN losses IS NULL THEN names ELSE losses || ',' || names END
FROM (SELECT f.id AS row_id, GROUP_CONCAT(DISTINCT l.loss) AS names FROM losses l JOIN request_facts f ON f.recording = l.recording
    AND f.t_arrive_ns <= l.to_ns AND COALESCE(f.t_end_ns, 9223372036854775807) >= l.from_ns
  WHERE l.request IS NULL AND l.severity = 'loss' AND l.from_ns IS NOT NULL GROUP BY f.id)
WHERE id = row_id;

DROP TABLE d_gen; DROP TABLE d_flight; DROP TABLE d_reset; DROP TABLE d_start; DROP TABLE d_ok; DROP TABLE d_episode; DROP TABLE d_load; DROP TABLE d_after;
