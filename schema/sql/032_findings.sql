-- Third part: what was found goes to the rows of the requests, then losses.
-- zeros_left_out: told above 0 elsewhere, and never 0, by the same upstream, model and route within one process life, where
-- the engine is one that leaves zeros out: vLLM or SGLang, by --note engine=, SGLang's matched_stop, or their HTTP server.
UPDATE d_gen SET zero = 1 FROM (SELECT recording AS rec, upstream AS up, model AS mod, path AS p, life AS l FROM d_gen g
  WHERE EXISTS (SELECT 1 FROM d_gen WHERE cached_tokens > 0)
  GROUP BY 1, 2, 3, 4, 5 HAVING MIN(cached_tokens) > 0 AND (MAX(matched_stop_seen) = 1 OR MAX(server LIKE 'uvicorn%') = 1
    OR EXISTS (SELECT 1 FROM notes n WHERE n.recording = g.recording AND n.key = 'engine'
      AND (n.value LIKE 'vllm%' OR n.value LIKE 'sglang%'))))
WHERE rec = recording AND up = upstream AND mod IS model AND p = path AND l = life AND cached_tokens IS NULL AND outcome = 'ok';

UPDATE request_facts SET concurrent = d.n, start_class = d.class, zeros_left_out = d.zero,
  t_connect_ns = COALESCE(d.t_connect_ns, request_facts.t_connect_ns),
  upstream_connect_ns = COALESCE(d.upstream_connect_ns, request_facts.upstream_connect_ns)
FROM (SELECT f.id, w.n, g.class, g.zero, c.t_connect_ns, c.upstream_connect_ns FROM request_facts f
    LEFT JOIN d_gen g ON g.id = f.id LEFT JOIN d_flight w ON w.id = f.id LEFT JOIN d_first c ON c.id = f.id
  WHERE COALESCE(g.id, c.id) IS NOT NULL) d
WHERE request_facts.id = d.id;

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

DROP TABLE d_gen; DROP TABLE d_connection; DROP TABLE d_first; DROP TABLE d_flight; DROP TABLE d_upstream;
