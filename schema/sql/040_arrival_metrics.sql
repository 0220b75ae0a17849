-- Metrics over arrivals, as an SQL reference: TEMP views over the table `arrivals`, never stored. The figures of a report
-- come from the blobs; a test holds the two equal. Requests whose itl_absent says why are in none of them.
-- VIEW gaps: one row for each arrival after the first of its choice, with the gap before it; backpressured ones left out
CREATE TEMP VIEW gaps AS
SELECT
  recording,       -- UUID of the recording
  request,         -- ordinal of the request
  choice,          -- index of the choice
  arrival,         -- ordinal of the arrival within the choice, from 1 here
  gap_ns,          -- time since the arrival before it
  tokens,          -- its tokens, k
  grade            -- grade of the request
FROM (
  SELECT a.recording, a.request, a.choice, a.arrival, a.tokens, a.backpressured, r.grade,
    a.t_ns - LAG(a.t_ns) OVER (PARTITION BY a.recording, a.request, a.choice ORDER BY a.arrival) AS gap_ns
  FROM arrivals a JOIN requests r ON r.recording = a.recording AND r.request = a.request
  WHERE r.itl_absent IS NULL)
WHERE gap_ns IS NOT NULL AND backpressured = 0;

-- METRIC itl
--   is       inter-token latency, chunk-corrected: how fast do tokens come
--   from     the arrival before
--   to       an arrival
--   formula  k samples of gap / k for each arrival of k tokens after the first of its choice; pooled over tokens
--   unit     ms
--   absent   not streamed, fewer than two arrivals; backpressured gaps, lost and buffered requests are left out
--   grade    summarised per grade: exact; prorated and events on lines of their own
--   peers    most tools print the gap between events as "ITL": here chunk_gap
--   short    gap / tokens in it

-- METRIC itl_burst
--   is       inter-token latency as a reader of single tokens sees it: the gap, then the rest of the burst at once
--   from     the arrival before
--   to       an arrival
--   formula  one sample of the gap and k - 1 of 0 for each arrival of k tokens after the first of its choice
--   unit     ms
--   absent   as itl
--   grade    as itl
--   short    gap, then 0 for the rest

-- METRIC chunk_gap
--   is       time between arrivals: how long is the screen still
--   from     the arrival before
--   to       an arrival
--   formula  one sample of the gap for each arrival after the first of its choice
--   unit     ms
--   absent   as itl
--   peers    called ITL by most tools
--   short    arrival -> next arrival

-- METRIC stall
--   is       a gap far above the usual one
--   formula  a chunk_gap above max(200 ms, 5 x the median gap of the request); with fewer than 10 gaps, of its model in the trace
--   unit     gaps
--   absent   as itl
