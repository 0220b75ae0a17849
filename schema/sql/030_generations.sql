-- What needs the whole table, first part: run after loading, in the loader's transaction, and after load --append for all
-- of it again, behind 029. The loader then counts d_flight, runs 031 where anything tells of a start, and 032.

-- d_gen holds the generations with what the steps below ask for: a arrival, f first token else end, e end.
-- A row of request_facts has so many columns that writing one takes long: what is found about a request is gathered here
-- and in d_first and d_flight, and written once, in 032.
CREATE TEMP TABLE d_gen (id INTEGER PRIMARY KEY, recording, request, upstream, model, path, a, f, e, outcome, status, loading,
  cached_tokens, reported_load_ns, finish_reason, api, server, matched_stop_seen, class, life, zero);
INSERT INTO d_gen
SELECT id, recording, request, upstream, model, path, t_arrive_mono_ns, COALESCE(t_first_token_ns, t_done_ns),
  COALESCE(t_done_ns, t_end_ns, CASE WHEN outcome = 'lost' THEN t_lost_ns END), outcome, status, loading,
  cached_tokens, reported_load_ns, finish_reason, api, server, matched_stop_seen, NULL, 0, NULL
FROM (SELECT r.*, f.t_lost_ns, f.id FROM requests r JOIN request_facts f ON f.recording = r.recording AND f.request = r.request)
WHERE generation = 1;

-- The first request of a connection has the connect inside.
CREATE TEMP TABLE d_connection AS
SELECT recording, connection, COUNT(*) AS n, MIN(request), id FROM request_facts WHERE connection IS NOT NULL GROUP BY 1, 2;
UPDATE connections SET requests = d.n FROM d_connection d
WHERE connections.recording = d.recording AND connections.connection = d.connection;
CREATE TEMP TABLE d_first (id INTEGER PRIMARY KEY, t_connect_ns, upstream_connect_ns);
INSERT INTO d_first SELECT d.id, c.t_connect_ns, c.t_upstream_connected_ns - c.t_upstream_start_ns
FROM d_connection d JOIN connections c ON c.recording = d.recording AND c.connection = d.connection;

-- concurrent: the loader fills in how many others of the same upstream are in flight at a.
CREATE TEMP TABLE d_flight (id INTEGER PRIMARY KEY, n);
CREATE TEMP TABLE d_upstream AS SELECT recording, upstream FROM d_gen GROUP BY 1, 2;
