-- The view `requests`: one row a request, every fact and every metric of one request. Durations are whole _ns.
-- A metric is an entry that begins with METRIC; its lines are what `traceanalyze definitions` prints:
--   is (one sentence), from, to, formula, unit, absent (when), grade, peers (what others call so), short (in reports).
-- COLUMN entries give the sentence of a column that is no metric. Only SQL that DuckDB binds, too.
-- VIEW requests: one row a request: facts, counts and metrics
CREATE VIEW requests AS
SELECT
  recording,
  request,
  recorder,
  arrived_wall_ns,
  t_arrive_ns AS t_arrive_mono_ns, -- COLUMN t_arrive_mono_ns: t_arrive on the recorder's monotonic clock
  -- COLUMN outcome: how it ended, the first that holds of: upstream_refused, http_error, stream_error, ok, lost, client_abort, upstream_reset, upstream_timeout, in_flight, truncated; upgraded and opaque are no HTTP exchanges
  CAST(outcome AS TEXT) AS outcome,
  -- COLUMN generation: 1: a generation; 0: other, upgraded or opaque, in no latency, rate or concurrency
  CAST(generation AS BIGINT) AS generation,
  -- COLUMN error: code, else type, of the error told, else why there was no answer
  CAST(COALESCE(error_code, error_type,
      CASE WHEN outcome IN ('upstream_refused', 'upstream_reset', 'upstream_timeout', 'client_abort', 'lost') THEN end_by END,
      CASE WHEN outcome = 'http_error' THEN CAST(status AS TEXT) END) AS TEXT) AS error,
  output_tokens,
  hidden_tokens,
  token_source,
  grade,
  token_events,
  arrivals,
  series,
  tokens_seen,
  tokens_first,
  series_tokens,
  series_arrivals,
  series_span_ns,
  gap_max_ns,
  backpressured,
  buffered,
  itl_absent,
  token_mismatch,
  concurrent,
  lost,
  losses,
  ended,
  -- COLUMN t_intended_ns: the client meant to send
  CAST(t_intended_ns AS BIGINT) AS t_intended_ns,
  -- COLUMN t_intended_source: replay (the schedule) or header (X-Request-Start, X-Queue-Start)
  CAST(CASE WHEN t_intended_ns IS NOT NULL THEN 'header' END AS TEXT) AS t_intended_source,
  t_connect_ns,
  t_first_token_ns,
  t_first_answer_ns,
  -- COLUMN t_last_token_ns: the last arrival
  CAST(CASE WHEN lost = 0 THEN t_last_token_ns END AS BIGINT) AS t_last_token_ns,
  -- COLUMN t_done_ns: t_end as the metrics take it: the client's leaving for client_abort, absent for lost
  CAST(done_ns AS BIGINT) AS t_done_ns,
  -- COLUMN early_response: 1: a response byte came before t_forwarded: all _server figures are absent
  CAST(early_response AS BIGINT) AS early_response,

  -- METRIC client_queue
  --   is       time spent in queues before the client's request reached the recorder
  --   from     t_intended
  --   to       t_arrive
  --   formula  t_arrive - t_intended
  --   unit     ms
  --   absent   without a replay's schedule or a header X-Request-Start or X-Queue-Start; on a clock fault
  --   short    due -> 1st byte in
  CAST(t_arrive_ns - t_intended_ns AS BIGINT) AS client_queue_ns,

  -- METRIC ttft_queued
  --   is       time to first token with client queueing inside
  --   from     t_intended
  --   to       t_first_token
  --   formula  t_first_token - t_intended
  --   unit     ms
  --   absent   needs a schedule or a header; not streamed, no token, buffered
  --   peers    mlperf's TTFT starts here; most load generators leave the wait at their own gate out
  --   short    due -> 1st token
  CAST(CASE WHEN buffered = 0 THEN t_first_token_ns - t_intended_ns END AS BIGINT) AS ttft_queued_ns,

  -- METRIC ttft_client
  --   is       time to first token as the client sees it, from its first byte on; upload inside
  --   from     t_arrive
  --   to       t_first_token
  --   formula  t_first_token - t_arrive
  --   unit     ms
  --   absent   not streamed, no token, buffered
  --   peers    "TTFT" of vllm-bench counts a role-only chunk as the first token; of aiperf does not
  --   short    1st byte in -> 1st token
  CAST(CASE WHEN buffered = 0 THEN t_first_token_ns - t_arrive_ns END AS BIGINT) AS ttft_client_ns,

  -- METRIC ttft_server
  --   is       time to first token without client queueing: the stack has the whole request; its queue and prefill inside
  --   from     t_forwarded
  --   to       t_first_token
  --   formula  t_first_token - t_forwarded
  --   unit     ms
  --   absent   not streamed, no token, buffered, or a response byte before t_forwarded
  --   peers    engines' own time_to_first_token counts from their scheduler or API server: reported_ttft
  --   short    all sent -> 1st token
  CAST(CASE WHEN buffered = 0 THEN t_first_token_ns - server_ns END AS BIGINT) AS ttft_server_ns,

  -- METRIC ttfa_server
  --   is       time to the first answer text or tool call: reasoning time included
  --   from     t_forwarded
  --   to       t_first_answer
  --   formula  t_first_answer - t_forwarded
  --   unit     ms
  --   absent   not streamed, no answer token, buffered, or a response byte before t_forwarded
  --   peers    "time to first output token" of some tools
  --   short    all sent -> 1st answer token
  CAST(CASE WHEN buffered = 0 THEN t_first_answer_ns - server_ns END AS BIGINT) AS ttfa_server_ns,

  -- METRIC ttfb_server
  --   is       time to the response's first byte; says nothing of tokens
  --   from     t_forwarded
  --   to       t_first_byte
  --   formula  t_first_byte - t_forwarded
  --   unit     ms
  --   absent   no response, or a response byte before t_forwarded
  --   short    all sent -> 1st byte back
  CAST(t_first_byte_ns - server_ns AS BIGINT) AS ttfb_server_ns,

  -- METRIC tpot
  --   is       time per output token after the first arrival, corrected for a first arrival of several tokens
  --   from     first arrival
  --   to       last arrival
  --   formula  sum over choices (t_last_token - t_first arrival) / sum (N_seen - k1)
  --   unit     ms
  --   absent   when no token follows the first arrival; not streamed, lost, buffered, reasoning only as an uncounted summary
  --   grade    summarised per grade: exact first, prorated and events on lines of their own
  --   peers    vllm-bench and sglang-bench divide (e2e - ttft) by (N - 1): a first event of several tokens makes theirs lower
  --   short    token after 1st arrival
  CAST(ROUND(tpot_ns) AS BIGINT) AS tpot_ns,

  -- METRIC e2e_queued
  --   is       end to end with client queueing inside
  --   from     t_intended
  --   to       t_end
  --   formula  t_end - t_intended
  --   unit     ms
  --   absent   needs a schedule or a header; no end seen
  --   short    due -> end
  CAST(done_ns - t_intended_ns AS BIGINT) AS e2e_queued_ns,

  -- METRIC e2e_client
  --   is       end to end as the client sees it, from its first byte on
  --   from     t_arrive
  --   to       t_end
  --   formula  t_end - t_arrive
  --   unit     ms
  --   absent   no end seen, or lost
  --   peers    "E2EL" or "request latency"; some end it at the last token, not at the response's end
  --   short    1st byte in -> end
  CAST(done_ns - t_arrive_ns AS BIGINT) AS e2e_client_ns,

  -- METRIC e2e_server
  --   is       end to end from the moment the stack has the whole request
  --   from     t_forwarded
  --   to       t_end
  --   formula  t_end - t_forwarded
  --   unit     ms
  --   absent   no end seen, lost, or a response byte before t_forwarded
  --   short    all sent -> end
  CAST(done_ns - server_ns AS BIGINT) AS e2e_server_ns,

  -- METRIC upload
  --   is       time in which the client sent its request; with 100-continue it contains the server's wait
  --   from     t_arrive
  --   to       t_received
  --   formula  t_received - t_arrive
  --   unit     ms
  --   absent   the request was never whole
  --   short    1st byte in -> all in
  CAST(t_received_ns - t_arrive_ns AS BIGINT) AS upload_ns,

  -- METRIC forward_lag
  --   is       time the recorder took to pass the whole request on; of it upstream_connect
  --   from     t_received
  --   to       t_forwarded
  --   formula  t_forwarded - t_received
  --   unit     ms
  --   absent   the request was never forwarded
  --   short    all in -> all sent
  CAST(t_forwarded_ns - t_received_ns AS BIGINT) AS forward_lag_ns,

  -- METRIC upstream_connect
  --   is       time to connect to the upstream
  --   formula  connect finished - connect began
  --   unit     ms
  --   absent   except on a connection's first request
  --   short    connect to upstream
  upstream_connect_ns,

  -- METRIC tail
  --   is       time between the last token and the end of the response
  --   from     t_last_token
  --   to       t_end
  --   formula  t_end - t_last_token
  --   unit     ms
  --   absent   not streamed, no token, lost
  --   short    last token -> end
  CAST(CASE WHEN lost = 0 THEN done_ns - t_last_token_ns END AS BIGINT) AS tail_ns,

  -- METRIC delivery_lag
  --   is       time until the client had the last byte: a slow client, not a slow server
  --   from     t_end
  --   to       t_delivered
  --   formula  t_delivered - t_end
  --   unit     ms
  --   absent   delivery was not seen
  --   short    end -> client has it
  CAST(t_delivered_ns - done_ns AS BIGINT) AS delivery_lag_ns,

  -- METRIC decode_tps
  --   is       tokens a second of one request after its first arrival
  --   formula  1 / tpot
  --   unit     tok/s
  --   absent   where tpot is
  --   grade    as tpot
  --   peers    "output token throughput per user" of aiperf
  --   short    1 / tpot
  CAST(1000000000.0 / NULLIF(tpot_ns, 0) AS DOUBLE) AS decode_tps,

  -- METRIC e2e_tps
  --   is       output tokens a second of one request, waiting included
  --   formula  output_tokens / e2e_client
  --   unit     tok/s
  --   absent   output_tokens or the end is not known
  --   short    N / e2e_client
  CAST(1000000000.0 * output_tokens / NULLIF(done_ns - t_arrive_ns, 0) AS DOUBLE) AS e2e_tps,

  -- METRIC prefill_tps
  --   is       uncached prompt tokens a second until the first token: a lower bound, queueing is inside
  --   formula  (prompt_tokens - cached_tokens) / ttft_server
  --   unit     tok/s
  --   absent   cached_tokens is not known (0 for miss_inferred), a list of prompts, no ttft_server
  --   peers    most tools divide all prompt tokens, cached ones too
  --   short    uncached prompt / ttft_server
  CAST(CASE WHEN buffered = 0 AND COALESCE(prompts, 1) = 1 THEN
      1000000000.0 * (prompt_tokens - COALESCE(cached_tokens, CASE WHEN cache_class = 'miss_inferred' THEN 0 END))
      / NULLIF(t_first_token_ns - server_ns, 0) END AS DOUBLE) AS prefill_tps,

  -- METRIC decode_tps_reported
  --   is       the engine's own decode speed
  --   formula  (output_tokens - 1) / reported_decode
  --   unit     tok/s
  --   absent   the engine tells no decode time
  --   short    the engine's own
  CAST(1000000000.0 * (output_tokens - 1) / NULLIF(reported_decode_ns, 0) AS DOUBLE) AS decode_tps_reported,

  -- METRIC tokens_per_arrival
  --   is       tokens of an arrival after the first; not an accept rate
  --   formula  sum of k / arrivals, over i >= 2
  --   unit     1
  --   absent   fewer than two arrivals
  --   grade    as tpot
  --   short    tokens in an arrival
  CAST(CASE WHEN itl_absent IS NULL THEN 1.0 * series_tokens / NULLIF(series_arrivals, 0) END AS DOUBLE) AS tokens_per_arrival,

  -- COLUMN draft_tokens: drafted tokens of speculative decoding, as told
  CAST(drafted AS BIGINT) AS draft_tokens,
  -- COLUMN accepted_tokens: accepted draft tokens, as told
  CAST(accepted AS BIGINT) AS accepted_tokens,
  -- COLUMN predicted_accepted: tokens of the request's predicted output that were taken
  CAST(CASE WHEN COALESCE(prediction, 0) = 1 THEN accepted_prediction_tokens END AS BIGINT) AS predicted_accepted,
  -- COLUMN predicted_rejected: tokens of the request's predicted output that were rejected; billed, inside output_tokens
  CAST(CASE WHEN COALESCE(prediction, 0) = 1 THEN rejected_prediction_tokens END AS BIGINT) AS predicted_rejected,

  -- METRIC accept_rate
  --   is       share of drafted tokens that were accepted
  --   formula  accepted draft tokens / drafted tokens
  --   unit     share
  --   absent   nothing was drafted, or the engine does not say
  --   peers    rates over emitted tokens, or with bonus tokens as accepted, are other figures
  --   short    accepted / drafted
  CAST(1.0 * accepted / NULLIF(drafted, 0) AS DOUBLE) AS accept_rate,

  -- METRIC accept_length
  --   is       tokens gained per verify step: the bonus token in, the prefill token out
  --   formula  1 + accepted / verify steps; steps untold: N - 1 - accepted (one choice, finished by its length)
  --   unit     tokens
  --   absent   no verify steps, or the engine does not say
  --   peers    reported_accept_length is the engine's own
  --   short    1 + accepted / steps
  CAST(1.0 + 1.0 * accepted / NULLIF(COALESCE(spec_steps, steps_derived), 0) AS DOUBLE) AS accept_length,
  -- COLUMN accept_length_source: told or derived: where the number of verify steps comes from
  CAST(CASE WHEN accepted IS NULL THEN NULL WHEN spec_steps > 0 THEN 'told' WHEN steps_derived > 0 THEN 'derived' END AS TEXT) AS accept_length_source,
  -- COLUMN verify_steps: verify steps, told or derived
  CAST(CASE WHEN accepted IS NOT NULL THEN COALESCE(spec_steps, steps_derived) END AS BIGINT) AS verify_steps,

  -- METRIC cache_class
  --   is       what the prompt met: cold, warmup, hit, miss, miss_inferred, unreported
  --   formula  the first that holds: cold or warmup by evidence of a start or a load; cached > 0; cached = 0 told; not told but told elsewhere by this upstream, model and route; else unreported
  --   unit     class
  --   absent   without a response, and for other than generations
  CAST(CASE WHEN generation = 1 AND t_first_byte_ns IS NOT NULL THEN cache_class END AS TEXT) AS cache_class,

  -- METRIC hit_ratio
  --   is       share of the prompt that came from a cache
  --   formula  cached_tokens / prompt_tokens
  --   unit     share
  --   absent   cached_tokens is not told
  --   short    cached / prompt
  CAST(1.0 * cached_tokens / NULLIF(prompt_tokens, 0) AS DOUBLE) AS hit_ratio,
  -- COLUMN hit_band: hit_ratio in bands: 0, 0-25, 25-50, 50-75, 75-100 %
  CAST(CASE WHEN cached_tokens IS NULL OR COALESCE(prompt_tokens, 0) = 0 THEN NULL WHEN cached_tokens = 0 THEN '0'
      WHEN cached_tokens * 4 <= prompt_tokens THEN '0-25' WHEN cached_tokens * 2 <= prompt_tokens THEN '25-50'
      WHEN cached_tokens * 4 <= prompt_tokens * 3 THEN '50-75' ELSE '75-100' END AS TEXT) AS hit_band,

  -- METRIC prefix_seen
  --   is       share of the prompt's leading blocks seen before in this trace: an estimate, a bound in neither direction
  --   formula  leading blocks of 2 KiB seen before / blocks of the prompt
  --   unit     share
  --   absent   the recording holds no fingerprints of prompts
  CAST(NULL AS DOUBLE) AS prefix_seen,

  -- COLUMN attempt: 1 + x-stainless-retry-count: 1 is the first attempt, 2 the first retry; absent: the client does not say
  CAST(1 + retry_count AS BIGINT) AS attempt,
  -- COLUMN prompt_band: prompt_tokens in bands: up to 256, 2k, 8k, 32k, more
  CAST(CASE WHEN prompt_tokens IS NULL THEN NULL WHEN prompt_tokens <= 256 THEN '0-256' WHEN prompt_tokens <= 2048 THEN '257-2k'
      WHEN prompt_tokens <= 8192 THEN '2k-8k' WHEN prompt_tokens <= 32768 THEN '8k-32k' ELSE '32k-' END AS TEXT) AS prompt_band,
  -- COLUMN output_band: output_tokens in the same bands
  CAST(CASE WHEN output_tokens IS NULL THEN NULL WHEN output_tokens <= 256 THEN '0-256' WHEN output_tokens <= 2048 THEN '257-2k'
      WHEN output_tokens <= 8192 THEN '2k-8k' WHEN output_tokens <= 32768 THEN '8k-32k' ELSE '32k-' END AS TEXT) AS output_band,
  /* FACTS R */
  arrivals_base_ns,
  -- COLUMN arrivals_blob: its arrivals, delta-coded; read them through the table `arrivals`
  CAST((SELECT b.arrivals_blob FROM request_blobs b WHERE b.id = facts.id) AS BLOB) AS arrivals_blob
FROM (
  SELECT *,
    -- this form of CASE finds the outcome once
    CASE outcome WHEN 'lost' THEN NULL WHEN 'in_flight' THEN NULL WHEN 'client_abort' THEN COALESCE(t_client_gone_ns, t_end_ns)
      ELSE t_end_ns END AS done_ns,
    CASE WHEN early_response = 1 THEN NULL ELSE t_forwarded_ns END AS server_ns,
    CASE WHEN start_class IS NOT NULL THEN start_class
      WHEN cached_tokens > 0 THEN 'hit'
      WHEN cached_tokens = 0 AND NOT zero_is_fixed THEN 'miss'
      WHEN cached_tokens IS NULL AND COALESCE(zeros_left_out, 0) = 1 THEN 'miss_inferred'
      ELSE 'unreported' END AS cache_class,
    CASE WHEN itl_absent IS NULL AND series_tokens > 0 THEN 1.0 * series_span_ns / series_tokens END AS tpot_ns,
    CASE WHEN COALESCE(choices, finished_choices, 1) = 1 AND COALESCE(finished_choices, 1) = 1 AND COALESCE(length_finishes, finish_reason = 'length') = 1 AND output_tokens - 1 - accepted > 0
      THEN output_tokens - 1 - accepted END AS steps_derived
  FROM (
    SELECT *,
      CASE WHEN api IS NULL OR api IN ('other', 'upgraded', 'opaque') THEN 0 ELSE 1 END AS generation,
      CASE WHEN t_first_byte_ns < t_forwarded_ns THEN 1 ELSE 0 END AS early_response,
      -- Ollama's /v1/responses always says 0 cached: no measurement
      (COALESCE(path, '') = '/v1/responses' AND COALESCE(upstream, '') LIKE '%:11434') AS zero_is_fixed,
      CASE WHEN arrive_wall_ns - queue_start_wall_ns < -1000000 OR arrive_wall_ns - queue_start_wall_ns > 3600000000000 THEN NULL
        WHEN arrive_wall_ns < queue_start_wall_ns THEN t_arrive_ns
        ELSE t_arrive_ns - (arrive_wall_ns - queue_start_wall_ns) END AS t_intended_ns,
      -- accepted_prediction_tokens is speculation only where other speculation fields stand beside (SGLang)
      CASE WHEN draft_tokens IS NOT NULL THEN draft_tokens
        WHEN sglang_speculation THEN accepted_prediction_tokens + rejected_prediction_tokens END AS drafted,
      CASE WHEN accepted_tokens IS NOT NULL THEN accepted_tokens
        WHEN sglang_speculation THEN accepted_prediction_tokens END AS accepted,
      CASE
        WHEN api = 'upgraded' THEN 'upgraded'
        WHEN api = 'opaque' THEN 'opaque'
        WHEN end_by = 'refused' THEN 'upstream_refused'
        WHEN status >= 300 THEN 'http_error'
        -- the usual reasons are asked for first, since matching patterns takes long
        WHEN COALESCE(stream_error, 0) = 1 OR finish_reason NOT IN ('stop', 'length', 'tool_calls')
          AND (',' || finish_reason || ',' LIKE '%,error,%' OR ',' || finish_reason || ',' LIKE '%,abort,%'
            OR ',' || finish_reason || ',' LIKE '%,failed,%') THEN 'stream_error'
        WHEN status IS NOT NULL AND end_sign THEN 'ok'
        WHEN lost = 1 OR end_by = 'lost' THEN 'lost'
        WHEN end_by IN ('client_fin', 'client_reset') THEN 'client_abort'
        WHEN end_by = 'upstream_reset' OR end_by = 'upstream_fin' AND t_first_byte_ns IS NULL THEN 'upstream_reset'
        WHEN end_by = 'upstream_timeout' THEN 'upstream_timeout'
        WHEN ended = 0 OR end_by = 'stop' THEN 'in_flight'
        -- whole, but its end sign may stand in what the recorder could not read
        WHEN answer_unread = 1 AND body_whole = 1 THEN 'lost'
        ELSE 'truncated' END AS outcome
    FROM (
      SELECT *,
        -- the API's end sign: a finish reason, [DONE] or a typed end, or the whole body of an answer that has no sign of its own
        (finish_reason IS NOT NULL OR COALESCE(done_marker, 0) = 1 OR COALESCE(typed_end, 0) = 1
          OR COALESCE(body_whole, 0) = 1 AND (COALESCE(streamed, 0) = 0 OR api = 'other')) AS end_sign,
        (COALESCE(prediction, 0) = 0 AND accepted_prediction_tokens IS NOT NULL AND (COALESCE(matched_stop_seen, 0) = 1
          OR spec_steps IS NOT NULL OR spec_histogram IS NOT NULL OR reported_accept_length IS NOT NULL)) AS sglang_speculation
      FROM request_facts WHERE COALESCE(partial, 0) = 0) AS signs) AS ends) AS facts;
