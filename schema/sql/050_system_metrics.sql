-- Metrics of a selection of requests, computed in C by the report: their definitions.

-- METRIC output_tps_system
--   is       output tokens a second of the whole stack
--   formula  sum of output_tokens / window; window: first t_arrive -> last t_end of the selected requests, failures included
--   unit     tok/s
--   absent   no request with output_tokens
--   peers    "output token throughput" of most tools; some count requested instead of told tokens

-- METRIC prompt_tps_system
--   is       prompt tokens a second of the whole stack, cached ones included
--   formula  sum of prompt_tokens / window
--   unit     tok/s
--   absent   no request with prompt_tokens

-- METRIC prefill_tps_system
--   is       uncached prompt tokens a second of the whole stack
--   formula  sum of (prompt_tokens - cached_tokens) / window
--   unit     tok/s
--   absent   cached_tokens is not known

-- METRIC request_rate
--   is       completed requests a second
--   formula  completed / window
--   unit     1/s
--   absent   fewer than one completed request

-- METRIC completion_rate
--   is       completed requests a second between the first and the last end
--   formula  (n - 1) / (last t_end - first t_end)
--   unit     1/s
--   absent   fewer than two completed requests

-- METRIC concurrency
--   is       generations of an upstream in flight, as seen by this recorder
--   formula  number with t_arrive <= t < t_end
--   unit     requests
--   absent   no generation

-- METRIC goodput
--   is       share and rate of generations that are ok and meet every limit of --slo
--   formula  good / decided; decided: ok, failed, or gone or in flight having already broken a limit
--   unit     share, 1/s
--   absent   without --slo

-- METRIC time_to_ready
--   is       how long a starting upstream gave no answer
--   from     the first refusal or 503
--   to       t_first_byte of the first ok answer after it
--   formula  first ok t_first_byte - first refusal or 503
--   unit     ms
--   absent   no start in the trace
